use std::time::Duration;

/// Nanoseconds on a clock that the reader must know from elsewhere: in a timeline from the node
/// record before the stamp, in the engine always the host's `CLOCK_MONOTONIC`.
///
/// Never read from a clock here: the driver reads, everybody else is handed the value.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct Instant(i64);

impl Instant {
    /// What a slot holds until [`fill`](crate::fill) writes the real instant into it (`i64::MIN`).
    /// A reader reports it as missing, so it is no instant that a clock can show.
    pub const UNFILLED: Instant = Instant(i64::MIN);

    /// The instant `ns` nanoseconds after the clock's zero.
    pub const fn from_nanos(ns: i64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Nanoseconds from `earlier` to this instant; negative if `earlier` is in truth the later
    /// one; saturates at the ends of `i64`.
    pub fn since_ns(self, earlier: Instant) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant moved on by `duration`; stops at the greatest instant there is.
    pub fn saturating_add(self, duration: Duration) -> Instant {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Instant(self.0.saturating_add(ns))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is the later one.
    pub fn saturating_duration_since(self, earlier: Instant) -> Duration {
        // The distance of two i64 can exceed i64, but always fits u64.
        if self <= earlier {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.0.abs_diff(earlier.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Instant = Instant::from_nanos(i64::MIN);
    const LAST: Instant = Instant::from_nanos(i64::MAX);

    #[test]
    fn a_difference_is_signed_and_saturates() {
        let (a, b) = (Instant::from_nanos(10), Instant::from_nanos(25));
        assert_eq!(b.since_ns(a), 15);
        assert_eq!(a.since_ns(b), -15);
        assert_eq!(LAST.since_ns(FIRST), i64::MAX);
        assert_eq!(FIRST.since_ns(LAST), i64::MIN);
    }

    #[test]
    fn a_duration_is_never_negative_and_never_cut() {
        let (a, b) = (Instant::from_nanos(-10), Instant::from_nanos(25));
        assert_eq!(b.saturating_duration_since(a), Duration::from_nanos(35));
        assert_eq!(a.saturating_duration_since(b), Duration::ZERO);
        assert_eq!(LAST.saturating_duration_since(FIRST), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn adding_stops_at_the_last_instant() {
        assert_eq!(Instant::default().saturating_add(Duration::from_micros(3)).as_nanos(), 3_000);
        assert_eq!(FIRST.saturating_add(Duration::MAX), Instant::from_nanos(-1));
        assert_eq!(LAST.saturating_add(Duration::from_nanos(1)), LAST);
    }
}
