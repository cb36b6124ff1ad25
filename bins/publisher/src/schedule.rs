//! When each message is due: a fixed schedule that does not shift when one is late.

use hopline_timeline::Instant;
use std::time::Duration;

/// The instants at which messages are due.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Schedule {
    start: Instant,
    /// Messages a second.
    rate: f64,
}

impl Schedule {
    pub(crate) const fn new(start: Instant, rate: f64) -> Self {
        Self { start, rate }
    }

    /// When message `n` (from 0) is due.
    pub(crate) fn due(&self, n: u64) -> Instant {
        let since_start = Duration::try_from_secs_f64(n as f64 / self.rate);
        self.start.saturating_add(since_start.unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_keeps_its_rate_over_millions() {
        let schedule = Schedule::new(Instant::from_nanos(5), 1000.0);
        assert_eq!(schedule.due(0).as_nanos(), 5);
        assert_eq!(schedule.due(1).as_nanos(), 1_000_005);
        assert_eq!(schedule.due(3_600_000).as_nanos(), 3_600_000_000_005);
    }
}
