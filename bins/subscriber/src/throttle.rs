//! A consumer that takes only so many messages a second, as some peers do, looking at its count
//! now and then.

use hopline_messenger::timeline::Instant;
use std::time::Duration;

/// Counts what was taken in windows of equal length.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// Messages that a window allows.
    limit: u64,
    window: Duration,
    /// When the current window began; with the first message if there was none.
    opened: Option<Instant>,
    taken: u64,
}

impl Throttle {
    /// At most `rate` messages a second, counted over `window`; no limit without a rate.
    pub(crate) fn new(rate: Option<u32>, window: Duration) -> Self {
        let allowed = |rate: u32| (f64::from(rate) * window.as_secs_f64()).ceil().max(1.0) as u64;
        let limit = rate.map_or(u64::MAX, allowed);
        Self { limit, window, opened: None, taken: 0 }
    }

    /// A message was taken.
    pub(crate) fn take(&mut self, now: Instant) {
        self.opened.get_or_insert(now);
        self.taken = self.taken.saturating_add(1);
    }

    /// How long no more may be taken; zero: one may be.
    pub(crate) fn closed_for(&mut self, now: Instant) -> Duration {
        let Some(opened) = self.opened else { return Duration::ZERO };
        let end = opened.saturating_add(self.window);
        if now >= end {
            (self.opened, self.taken) = (Some(now), 0);
        }
        match self.taken < self.limit {
            true => Duration::ZERO,
            false => end.saturating_duration_since(now),
        }
    }

    /// How many more the current window allows.
    pub(crate) const fn room(&self) -> u64 {
        self.limit.saturating_sub(self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_allows_its_share_at_once_and_the_next_one_again() {
        let at = |ms: i64| Instant::from_nanos(ms * 1_000_000);
        let mut throttle = Throttle::new(Some(80), Duration::from_millis(50));
        for _ in 0..4 {
            assert_eq!(throttle.closed_for(at(10)), Duration::ZERO);
            throttle.take(at(10));
        }
        assert_eq!(throttle.closed_for(at(20)), Duration::from_millis(40));
        assert_eq!(throttle.closed_for(at(60)), Duration::ZERO);
        throttle.take(at(60));
        assert_eq!(throttle.closed_for(at(61)), Duration::ZERO);
    }

    #[test]
    fn without_a_rate_nothing_is_held() {
        let mut throttle = Throttle::new(None, Duration::from_secs(1));
        let now = Instant::from_nanos(0);
        (0..1000).for_each(|_| throttle.take(now));
        assert_eq!(throttle.closed_for(now), Duration::ZERO);
    }
}
