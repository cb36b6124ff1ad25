//! Axes of the pictures.

use std::fmt::{self, Write};

use super::Escaped;

/// The picture in its own units: small enough to be read at a phone's width.
pub(super) const WIDTH: f64 = 400.0;
pub(super) const HEIGHT: f64 = 250.0;
pub(super) const LEFT: f64 = 58.0;
pub(super) const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 30.0;

/// Delays from bottom to top, each power of ten as high as the next.
#[derive(Copy, Clone, Debug)]
pub(super) struct Delays {
    least: u32,
    most: u32,
}

impl Delays {
    /// For delays from the least to the most; what isn't above 1 ns stands at the bottom.
    pub(super) fn new(least_ns: i64, most_ns: i64) -> Self {
        let power = |ns: i64| ns.max(1).ilog10();
        let least = power(least_ns);
        Self { least, most: (power(most_ns) + 1).max(least + 1) }
    }

    pub(super) fn y(&self, ns: i64) -> f64 {
        let power = (ns.max(1) as f64).log10() - f64::from(self.least);
        let part = power / f64::from(self.most - self.least);
        HEIGHT - BOTTOM - part.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    /// A line for each power of ten.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        for power in self.least..=self.most {
            let ns = 10_i64.saturating_pow(power);
            let y = self.y(ns);
            let (end, label) = (WIDTH - RIGHT, Power(power));
            writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            )?;
            let (x, y) = (LEFT - 5.0, y + 4.0);
            writeln!(out, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>")?;
        }
        Ok(())
    }
}

/// A power of ten of nanoseconds in the unit that suits it.
struct Power(u32);

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = ["ns", "us", "ms", "s"].get((self.0 / 3) as usize).unwrap_or(&"s");
        let power = if self.0 < 12 { self.0 % 3 } else { self.0 - 9 };
        write!(f, "{} {unit}", 10_u64.saturating_pow(power))
    }
}

/// A mark on the horizontal axis.
pub(super) fn write_tick(x: f64, label: &str, out: &mut String) -> fmt::Result {
    let (bottom, text) = (HEIGHT - BOTTOM, HEIGHT - 9.0);
    // The outermost one would leave the picture.
    let anchor = if x > WIDTH - 2.0 * RIGHT { "end" } else { "middle" };
    writeln!(
        out,
        "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
    )?;
    writeln!(out, "<text x=\"{x:.1}\" y=\"{text}\" text-anchor=\"{anchor}\">{label}</text>")
}

/// Begins a picture that says to everybody what it shows.
pub(super) fn begin(title: &str, out: &mut String) -> fmt::Result {
    let title = Escaped(title);
    writeln!(out, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_keep_within_the_picture() {
        let delays = Delays::new(950, 41_000_000);
        assert_eq!((delays.least, delays.most), (2, 8));
        assert!((delays.y(100) - (HEIGHT - BOTTOM)).abs() < 0.01);
        assert!((delays.y(100_000_000) - TOP).abs() < 0.01);
        for ns in [i64::MIN, -1, 0, i64::MAX] {
            assert!((TOP..=HEIGHT).contains(&delays.y(ns)), "{ns}");
            assert!((TOP..=HEIGHT).contains(&Delays::new(ns, ns).y(ns)), "{ns}");
        }
    }

    #[test]
    fn powers_have_the_unit_that_suits_them() {
        let shown = [0, 2, 3, 8, 9, 12, 13].map(|power| Power(power).to_string());
        assert_eq!(shown, ["1 ns", "100 ns", "1 us", "100 ms", "1 s", "1000 s", "10000 s"]);
    }
}
