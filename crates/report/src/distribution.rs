//! Delays of one kind, counted into histograms of fixed range.

use hdrhistogram::{CreationError, Histogram};

use crate::units;

/// The longest delay that is told apart, one hour in nanoseconds. Longer ones count as this one
/// in percentiles, and are counted as saturated.
pub const LONGEST_NS: i64 = 3_600_000_000_000;

/// Significant decimal digits of a percentile: it is at most 0.1 % above the sample it stands for.
const DIGITS: u8 = 3;

/// Signed delays in nanoseconds.
///
/// Every figure is one of *all* samples. Negative delays come from clocks or stamps that disagree;
/// they live in a histogram of their own, mirrored, so that they neither vanish nor wrap around,
/// and are counted. `min`, `max` and `mean` are exact; percentiles have three significant digits.
/// Each histogram takes about 250 KiB at most.
#[derive(Debug)]
pub(crate) struct Distribution {
    at_least_zero: Histogram<u64>,
    below_zero: Option<Histogram<u64>>,
    saturated: u64,
    sum_ns: i128,
    extremes_ns: Option<(i64, i64)>,
}

impl Distribution {
    pub(crate) fn new() -> Result<Self, CreationError> {
        Histogram::new_with_bounds(1, LONGEST_NS.unsigned_abs(), DIGITS).map(Self::over)
    }

    /// An empty one of the same range.
    pub(crate) fn fresh(&self) -> Self {
        Self::over(Histogram::new_from(&self.at_least_zero))
    }

    fn over(at_least_zero: Histogram<u64>) -> Self {
        Self { at_least_zero, below_zero: None, saturated: 0, sum_ns: 0, extremes_ns: None }
    }

    pub(crate) fn record(&mut self, delay_ns: i64) {
        let magnitude = delay_ns.unsigned_abs();
        self.saturated += u64::from(magnitude > LONGEST_NS.unsigned_abs());
        self.sum_ns += i128::from(delay_ns);
        let (min, max) = self.extremes_ns.unwrap_or((delay_ns, delay_ns));
        self.extremes_ns = Some((min.min(delay_ns), max.max(delay_ns)));
        let side = if delay_ns < 0 {
            self.below_zero.get_or_insert_with(|| Histogram::new_from(&self.at_least_zero))
        } else {
            &mut self.at_least_zero
        };
        side.saturating_record(magnitude.min(LONGEST_NS.unsigned_abs()));
    }

    /// How many delays were measured, negative and saturated ones among them.
    pub(crate) fn count(&self) -> u64 {
        self.at_least_zero.len() + self.negative()
    }

    /// Those that aren't below zero.
    pub(crate) fn at_least_zero(&self) -> &Histogram<u64> {
        &self.at_least_zero
    }

    /// How many delays were below zero.
    pub(crate) fn negative(&self) -> u64 {
        self.below_zero.as_ref().map_or(0, Histogram::len)
    }

    /// How many delays were longer than [`LONGEST_NS`], in either direction.
    pub(crate) fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The sum of all delays, exact.
    pub(crate) fn sum_ns(&self) -> i128 {
        self.sum_ns
    }

    /// The least delay, exact and signed; absent where nothing was measured.
    pub(crate) fn min_ns(&self) -> Option<i64> {
        self.extremes_ns.map(|(min, _)| min)
    }

    /// The greatest delay, exact and signed; absent where nothing was measured.
    pub(crate) fn max_ns(&self) -> Option<i64> {
        self.extremes_ns.map(|(_, max)| max)
    }

    /// The mean to the nearest nanosecond; absent where nothing was measured.
    pub(crate) fn mean_ns(&self) -> Option<i64> {
        units::mean(self.sum_ns, self.count())
    }

    /// The samples above a delay of at least 0: how many, and the sum of them to three digits.
    pub(crate) fn above(&self, ns: i64) -> (u64, i128) {
        let limit = ns.max(0).unsigned_abs();
        let above = self.at_least_zero.iter_recorded();
        let above = above.filter(|value| value.value_iterated_to() > limit);
        let (count, sum) = above.fold((0, 0), |(count, sum), value| {
            let here = value.count_since_last_iteration();
            let middle = self.at_least_zero.median_equivalent(value.value_iterated_to());
            (count + here, sum + i128::from(here) * i128::from(middle))
        });
        let most = i128::from(count) * i128::from(self.max_ns().unwrap_or(0));
        (count, sum.min(most))
    }

    /// The delay that `per_mille` thousandths of the samples don't exceed (500 is the median);
    /// absent where nothing was measured. Never outside `min_ns()..=max_ns()`.
    pub(crate) fn percentile_ns(&self, per_mille: u64) -> Option<i64> {
        let rank = (u128::from(self.count()) * u128::from(per_mille)).div_ceil(1_000);
        self.at_rank(u64::try_from(rank).unwrap_or(u64::MAX))
    }

    /// As [`percentile_ns`](Self::percentile_ns), of a quantile from 0 to 1: for pictures.
    pub(crate) fn quantile_ns(&self, quantile: f64) -> Option<i64> {
        self.at_rank((quantile * self.count() as f64).ceil() as u64)
    }

    fn at_rank(&self, rank: u64) -> Option<i64> {
        let (min, max) = self.extremes_ns?;
        let rank = rank.clamp(1, self.count());
        let negative = self.negative();
        let value = match &self.below_zero {
            Some(below) if rank <= negative => -value_at_rank(below, negative - rank + 1),
            _ => value_at_rank(&self.at_least_zero, rank - negative),
        };
        Some(value.clamp(min, max))
    }
}

/// The `rank`-th smallest value, `1..=len`. Half a rank below it lies safely between two ranks in
/// floating point.
fn value_at_rank(histogram: &Histogram<u64>, rank: u64) -> i64 {
    let quantile = (rank as f64 - 0.5) / histogram.len() as f64;
    i64::try_from(histogram.value_at_quantile(quantile)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(delays: &[i64]) -> Distribution {
        let mut distribution = Distribution::new().unwrap();
        delays.iter().for_each(|&ns| distribution.record(ns));
        distribution
    }

    #[test]
    fn nothing_measured_means_nothing_said() {
        let empty = of(&[]);
        assert_eq!(empty.count(), 0);
        assert_eq!((empty.min_ns(), empty.max_ns(), empty.mean_ns()), (None, None, None));
        assert_eq!(empty.percentile_ns(500), None);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        for ns in [0, 1, 359_167, -359_167, LONGEST_NS] {
            let one = of(&[ns]);
            for per_mille in [0, 1, 500, 990, 1_000] {
                assert_eq!(one.percentile_ns(per_mille), Some(ns));
            }
        }
    }

    #[test]
    fn negative_delays_are_counted_and_shift_the_percentiles() {
        let skewed = of(&[-300, -200, -100, 100]);
        assert_eq!((skewed.count(), skewed.negative()), (4, 3));
        assert_eq!(skewed.min_ns(), Some(-300));
        assert_eq!(skewed.percentile_ns(500), Some(-200));
        assert_eq!(skewed.percentile_ns(1_000), Some(100));
        assert_eq!(skewed.mean_ns(), Some(-125));
    }

    #[test]
    fn the_limit_is_the_one_that_is_printed() {
        let edge = of(&[LONGEST_NS, LONGEST_NS + 1, -LONGEST_NS - 1, i64::MAX, i64::MIN]);
        assert_eq!(edge.saturated(), 4);
        assert_eq!(edge.count(), 5);
        assert_eq!((edge.min_ns(), edge.max_ns()), (Some(i64::MIN), Some(i64::MAX)));
    }

    #[test]
    fn samples_above_a_delay_are_counted_without_it() {
        let mixed = of(&[-900, 5, 10, 2_000_000, 3_000_000]);
        assert_eq!(mixed.above(0).0, 4);
        assert_eq!(mixed.above(-1).0, 4);
        assert_eq!(mixed.above(10).0, 2);
        assert_eq!(mixed.above(4_000_000), (0, 0));
        let (_, sum) = mixed.above(1_000);
        assert!((4_997_500..=5_002_500).contains(&sum), "{sum}");
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_samples(
            mut delays in prop::collection::vec(-5_000_000_i64..500_000_000, 1..200),
            per_mille in 0_u64..=1_000,
        ) {
            let got = of(&delays).percentile_ns(per_mille).unwrap();
            delays.sort_unstable();
            let rank = (delays.len() as u64 * per_mille).div_ceil(1_000).max(1);
            let want = delays[rank as usize - 1];
            prop_assert!((got - want).abs() <= want.abs() / 1_000 + 1, "{got} for {want}");
        }
    }
}
