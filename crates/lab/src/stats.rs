//! What repeated rounds say: mean, spread, and how sure a difference is.

use crate::ranks::rank_test;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Above this chance of error a difference is not taken for one.
const SIGNIFICANCE: f64 = 0.05;

/// Figures of equal rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// Takes the figure of one more round; what is no number is left out.
    pub fn push(&mut self, figure: f64) {
        if figure.is_finite() {
            self.0.push(figure);
        }
    }

    /// How many rounds there were.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there was no round.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean; `None` without rounds.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The standard deviation of the rounds (n - 1); `None` with fewer than two.
    pub fn deviation(&self) -> Option<f64> {
        let (mean, n) = (self.mean()?, self.0.len());
        let squares: f64 = self.0.iter().map(|figure| (figure - mean).powi(2)).sum();
        (n > 1).then(|| (squares / (n - 1) as f64).sqrt())
    }

    /// The middle round, or the mean of both; `None` without rounds.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        match sorted.len() % 2 {
            1 => Some(upper),
            _ => sorted.get(middle - 1).map(|lower| (lower + upper) / 2.0),
        }
    }

    /// The least and the greatest; `None` without rounds.
    pub fn range(&self) -> Option<(f64, f64)> {
        let least = self.0.iter().copied().reduce(f64::min)?;
        self.0.iter().copied().reduce(f64::max).map(|greatest| (least, greatest))
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        let mut sample = Self::default();
        figures.into_iter().for_each(|figure| sample.push(figure));
        sample
    }
}

/// How the rounds of two settings differ.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The mean of the first setting.
    pub mean_a: f64,
    /// The mean of the second one.
    pub mean_b: f64,
    /// Second minus first.
    pub difference: f64,
    /// The 95 % confidence interval of the difference (Welch), least and greatest; `None` with
    /// fewer than two rounds of either.
    pub interval: Option<(f64, f64)>,
    /// The chance that rounds which don't differ show ranks at least as far apart (Mann-Whitney,
    /// both sides): exact without ties and up to 100 rounds.
    pub p: f64,
}

impl Comparison {
    /// Compares; `None` without a round of either.
    pub fn new(a: &Sample, b: &Sample) -> Option<Self> {
        let (mean_a, mean_b) = (a.mean()?, b.mean()?);
        let difference = mean_b - mean_a;
        let interval = half_width(a, b).map(|half| (difference - half, difference + half));
        let p = rank_test(&a.0, &b.0);
        Some(Self { mean_a, mean_b, difference, interval, p })
    }

    /// Whether both tests hold the difference for one.
    pub fn is_sure(&self) -> bool {
        let excludes_zero =
            self.interval.is_some_and(|(least, greatest)| least > 0.0 || greatest < 0.0);
        excludes_zero && self.p < SIGNIFICANCE
    }
}

/// A straight line through points, by least squares.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What `y` grows by for each `x`.
    pub slope: f64,
    /// The 95 % confidence interval of the slope, least and greatest; `None` below three points.
    pub interval: Option<(f64, f64)>,
}

impl Line {
    /// Through these points; `None` unless two differ in `x`.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        if !slope.is_finite() {
            return None;
        }
        let left = |point: &(f64, f64)| (point.1 - y - slope * (point.0 - x)).powi(2);
        let left: f64 = points.iter().map(left).sum();
        let interval = (points.len() > 2).then(|| {
            let t = StudentsT::new(0.0, 1.0, n - 2.0).ok()?.inverse_cdf(1.0 - SIGNIFICANCE / 2.0);
            let half = t * (left / (n - 2.0) / spread).sqrt();
            Some((slope - half, slope + half))
        });
        Some(Self { slope, interval: interval.flatten() })
    }
}

/// Half of Welch's 95 % interval, with the degrees of freedom of Satterthwaite.
fn half_width(a: &Sample, b: &Sample) -> Option<f64> {
    let share = |sample: &Sample| Some(sample.deviation()?.powi(2) / sample.len() as f64);
    let (var_a, var_b) = (share(a)?, share(b)?);
    let sum = var_a + var_b;
    if sum <= 0.0 {
        return Some(0.0);
    }
    let part = |var: f64, sample: &Sample| var.powi(2) / (sample.len() - 1) as f64;
    let freedom = sum.powi(2) / (part(var_a, a) + part(var_b, b));
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - SIGNIFICANCE / 2.0);
    Some(t * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds per round of an SMS gateway without and with TCP_NODELAY, from a field report.
    const OFF: [f64; 10] = [37.0, 34.0, 43.0, 30.0, 28.0, 35.0, 34.0, 34.0, 39.0, 32.0];
    const ON: [f64; 10] = [26.0, 28.0, 24.0, 25.0, 23.0, 24.0, 18.0, 29.0, 33.0, 30.0];

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} instead of {want}");
    }

    #[test]
    fn the_figures_of_the_field_report() {
        let (off, on): (Sample, Sample) = (OFF.into_iter().collect(), ON.into_iter().collect());
        near(off.mean().unwrap(), 34.6, 1e-9);
        near(off.deviation().unwrap(), 4.32, 0.006);
        near(on.mean().unwrap(), 26.0, 1e-9);
        near(on.deviation().unwrap(), 4.22, 0.005);
        assert_eq!((off.median(), on.median()), (Some(34.0), Some(25.5)));
        // Welch's interval with 17.99 degrees of freedom, t = 2.1009; ranks with ties, z = 3.297.
        let comparison = Comparison::new(&off, &on).unwrap();
        near(comparison.difference, -8.6, 1e-9);
        let (least, greatest) = comparison.interval.unwrap();
        near(least, -12.61, 0.01);
        near(greatest, -4.59, 0.01);
        near(comparison.p, 0.00098, 0.000_01);
        assert!(comparison.is_sure());
    }

    #[test]
    fn a_line_through_known_points() {
        // By hand; Student's t of two degrees of freedom is 4.3027 for 95 %.
        let line = Line::through(&[(1.0, 1.1), (2.0, 1.9), (4.0, 4.2), (8.0, 7.9)]).unwrap();
        near(line.slope, 0.98348, 1e-4);
        let (least, greatest) = line.interval.unwrap();
        near((least + greatest) / 2.0, line.slope, 1e-9);
        near(greatest - least, 0.2772, 0.000_1);
        assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 1.0), (2.0, 4.0)]).unwrap().interval, None);
    }

    #[test]
    fn equal_rounds_show_no_difference() {
        let same: Sample = [5.0; 10].into_iter().collect();
        let comparison = Comparison::new(&same, &same).unwrap();
        assert_eq!((comparison.difference, comparison.p), (0.0, 1.0));
        assert!(!comparison.is_sure());
    }

    #[test]
    fn single_rounds_and_none_prove_nothing() {
        let one: Sample = [1.0].into_iter().collect();
        let other: Sample = [1000.0, f64::NAN].into_iter().collect();
        assert_eq!(other.len(), 1);
        let comparison = Comparison::new(&one, &other).unwrap();
        assert_eq!(comparison.interval, None);
        assert!(!comparison.is_sure());
        assert_eq!(Comparison::new(&one, &Sample::default()), None);
        assert_eq!(Sample::default().range(), None);
    }
}
