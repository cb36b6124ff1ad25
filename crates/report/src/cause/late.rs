//! How slow is late.

use std::fmt;

use crate::table::Row;
use crate::units::Millis;

/// What counts as late, at each leg of a message's way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// Longer than the median of the same leg so many times; in thousandths, so 5,000 is 5 times.
    Times(u32),
    /// Longer than so many nanoseconds.
    Over(i64),
}

impl Default for Late {
    /// 5 times the median.
    fn default() -> Self {
        Late::Times(5_000)
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Late::Times(thousandths) if thousandths % 1_000 == 0 => {
                write!(f, "{} times the median", thousandths / 1_000)
            }
            Late::Times(thousandths) => {
                write!(f, "{}.{:03} times the median", thousandths / 1_000, thousandths % 1_000)
            }
            Late::Over(ns) => write!(f, "{} ms", Millis(ns)),
        }
    }
}

/// The delay above which a sample of the leg is late. `None` where there is no telling: nothing
/// was measured, or the median is negative, so that clocks contradict each other.
///
/// The error bound of two hosts' clocks is added: what may be an error of the clocks isn't late.
pub(crate) fn threshold_ns(late: Late, leg: &Row) -> Option<i64> {
    let median = leg.delays.percentile_ns(500)?;
    let bound = i64::try_from(leg.error_bound_ns).unwrap_or(i64::MAX);
    let threshold = match late {
        Late::Times(_) if median < 0 => return None,
        Late::Times(thousandths) => i128::from(median) * i128::from(thousandths) / 1_000,
        Late::Over(ns) => i128::from(ns),
    };
    Some(i64::try_from(threshold).unwrap_or(i64::MAX).saturating_add(bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_says_what_it_is() {
        assert_eq!(Late::default().to_string(), "5 times the median");
        assert_eq!(Late::Times(1_500).to_string(), "1.500 times the median");
        assert_eq!(Late::Over(5_000_000).to_string(), "5.000 ms");
    }
}
