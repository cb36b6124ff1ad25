//! The only place that turns nanoseconds into text: integer arithmetic, '.' as the decimal point.

use std::fmt;

const NS_PER_US: u128 = 1_000;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Nanoseconds as milliseconds with three decimals, rounded half away from zero; `-0.000` keeps
/// its sign.
pub(crate) struct Millis(pub(crate) i64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = (u128::from(self.0.unsigned_abs()) + NS_PER_US / 2) / NS_PER_US;
        write_thousandths(f, self.0 < 0, us)
    }
}

/// Nanoseconds as microseconds with three decimals: exact.
pub(crate) struct Micros(pub(crate) i128);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_thousandths(f, self.0 < 0, self.0.unsigned_abs())
    }
}

/// Nanoseconds with three digits and the unit that suits them: `41.9 ms`. For people only.
pub(crate) struct Short(pub(crate) i64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let (sign, ns) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| ns >= *unit) else {
            return write!(f, "{sign}{ns} ns");
        };
        let decimals = match ns / unit {
            0..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        let step = unit / 10_u64.pow(decimals);
        let rounded = (u128::from(ns) + u128::from(step) / 2) / u128::from(step);
        let scale = 10_u128.pow(decimals);
        let (whole, part) = (rounded / scale, rounded % scale);
        match decimals {
            0 => write!(f, "{sign}{whole} {name}"),
            _ => write!(f, "{sign}{whole}.{part:0width$} {name}", width = decimals as usize),
        }
    }
}

fn write_thousandths(f: &mut fmt::Formatter<'_>, negative: bool, value: u128) -> fmt::Result {
    let sign = if negative { "-" } else { "" };
    write!(f, "{sign}{}.{:03}", value / 1_000, value % 1_000)
}

/// Nanoseconds in the notation of the first line of a trace: `P00:00:17.495230` is 17.49523 s.
pub(crate) struct Period(pub(crate) i64);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.unsigned_abs();
        let seconds = ns / NS_PER_SECOND;
        let us = ns % NS_PER_SECOND / 1_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        write!(f, "{sign}P{hours:02}:{minutes:02}:{:02}.{us:06}", seconds % 60)
    }
}

/// Millionths as a percentage with one decimal.
pub(crate) struct Percent(pub(crate) i64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0.unsigned_abs() + 500) / 1_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{}", tenths / 10, tenths % 10)
    }
}

/// `part` of `whole` in millionths, rounded to nearest; `None` where the whole isn't positive.
pub(crate) fn millionths(part: i128, whole: i128) -> Option<i64> {
    if whole <= 0 {
        return None;
    }
    let scaled = part.checked_mul(2_000_000)?.checked_add(whole)?;
    i64::try_from(scaled.div_euclid(whole.checked_mul(2)?)).ok()
}

/// `sum / count` rounded half away from zero; `None` where nothing was counted.
pub(crate) fn mean(sum: i128, count: u64) -> Option<i64> {
    let count = i128::from(count);
    if count == 0 {
        return None;
    }
    let half = count / 2 * sum.signum();
    i64::try_from((sum + half) / count).ok()
}

/// Text of a peer or a file made safe for a terminal: control characters appear as escapes.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|c| match c {
            '"' | '\'' => f.write_char(c),
            _ => write!(f, "{}", c.escape_debug()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_round_half_away_from_zero_and_keep_their_sign() {
        let shown = [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (-400, "-0.000"),
            (-500, "-0.001"),
            (38_010_000, "38.010"),
            (i64::MAX, "9223372036854.776"),
            (i64::MIN, "-9223372036854.776"),
        ];
        for (ns, text) in shown {
            assert_eq!(Millis(ns).to_string(), text, "{ns} ns");
        }
    }

    #[test]
    fn microseconds_are_exact() {
        assert_eq!(Micros(40).to_string(), "0.040");
        assert_eq!(Micros(-1).to_string(), "-0.001");
        assert_eq!(Micros(123_456_789).to_string(), "123456.789");
    }

    #[test]
    fn short_ones_have_three_digits_and_a_unit() {
        let shown = [
            (0, "0 ns"),
            (-999, "-999 ns"),
            (1_000, "1.00 us"),
            (41_931_807, "41.9 ms"),
            (359_500, "360 us"),
            (9_999_999, "10.00 ms"),
            (i64::MIN, "-9223372037 s"),
        ];
        for (ns, text) in shown {
            assert_eq!(Short(ns).to_string(), text, "{ns} ns");
        }
    }

    #[test]
    fn periods_count_hours_beyond_a_day() {
        assert_eq!(Period(17_495_230_000).to_string(), "P00:00:17.495230");
        assert_eq!(Period(-1_000).to_string(), "-P00:00:00.000001");
        assert_eq!(Period(360_000 * 1_000_000_000).to_string(), "P100:00:00.000000");
    }

    #[test]
    fn shares_and_means_are_absent_where_there_is_nothing_to_divide_by() {
        assert_eq!(millionths(1, 0), None);
        assert_eq!(millionths(1, -5), None);
        assert_eq!(millionths(1, 3), Some(333_333));
        assert_eq!(millionths(2, 3), Some(666_667));
        assert_eq!(millionths(-1, 4), Some(-250_000));
        assert_eq!(Percent(333_333).to_string(), "33.3");
        assert_eq!(Percent(-999_950).to_string(), "-100.0");
        assert_eq!(mean(0, 0), None);
        assert_eq!(mean(3, 2), Some(2));
        assert_eq!(mean(-3, 2), Some(-2));
        assert_eq!(mean(10, 3), Some(3));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let hostile = "a\u{1b}[31m\n\"b'";
        assert_eq!(Printable(hostile).to_string(), "a\\u{1b}[31m\\n\"b'");
        assert_eq!(Printable("Z\u{fc}rich").to_string(), "Z\u{fc}rich");
    }
}
