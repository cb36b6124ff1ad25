//! From the wall clock, which the kernel stamps by, to ours.

use crate::Clock;
use crate::clock::wall_offset;
use hopline_timeline::Instant;

/// Between two readings of the offset they may differ by so much without a step: the error of
/// both readings, and what a time service may slew (a thousandth is twice what Linux allows).
const JITTER_NS: i64 = 20_000;
const SLEW: i64 = 1_000;

/// Readings of which the best is taken: one alone may be split by an interrupt.
const READINGS: usize = 2;

/// The wall clock as it was seen last.
#[derive(Debug)]
pub(crate) struct Wall {
    offset_ns: i64,
    read: Instant,
}

impl Wall {
    pub(crate) fn new() -> Self {
        Self { offset_ns: wall_offset(READINGS).0, read: Clock.now() }
    }

    /// Reads the offset anew; stamps that are converted then are between two of its readings.
    pub(crate) fn refresh(&mut self) -> Offsets {
        let now = Clock.now();
        let fresh = Self { offset_ns: wall_offset(READINGS).0, read: now };
        let before = std::mem::replace(self, fresh);
        Offsets::new(before.offset_ns, self.offset_ns, now.since_ns(before.read))
    }
}

/// Realtime minus monotonic, in ns, before and after some stamps were taken.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Offsets {
    before_ns: i64,
    after_ns: i64,
    is_step: bool,
}

impl Offsets {
    fn new(before_ns: i64, after_ns: i64, elapsed_ns: i64) -> Self {
        let allowed = JITTER_NS.saturating_add(elapsed_ns / SLEW);
        let is_step = after_ns.saturating_sub(before_ns).saturating_abs() > allowed;
        Self { before_ns, after_ns, is_step }
    }

    /// The instant of a stamp that was taken between these two; `None`: no offset makes it so,
    /// for the wall clock was set in between.
    pub(crate) fn convert(
        self,
        wall_ns: i64,
        earliest: Instant,
        latest: Instant,
    ) -> Option<Instant> {
        let by = |offset: i64| Instant::from_nanos(wall_ns.saturating_sub(offset));
        if !self.is_step {
            // A reading's error must not let a stamp lie behind the read that brought it.
            return Some(by(self.after_ns).min(latest));
        }
        let fits = |at: &Instant| (earliest..=latest).contains(at);
        [by(self.after_ns), by(self.before_ns)].into_iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_stamp_is_converted_by_the_offset_that_held_when_it_was_taken() {
        for step in [50_000, 50_000_000, 3_600 * SECOND, -50_000, -3_600 * SECOND] {
            let (before, after) = (7 * SECOND, 7 * SECOND + step);
            let offsets = Offsets::new(before, after, 1_000_000);
            // The stamps of two segments, one before the step and one after it.
            for offset in [before, after] {
                let converted = offsets.convert(
                    100 * SECOND + offset,
                    at(100 * SECOND - 20_000),
                    at(100 * SECOND + 10_000),
                );
                assert_eq!(converted, Some(at(100 * SECOND)), "step {step}");
            }
            assert_eq!(offsets.convert(0, at(100 * SECOND), at(100 * SECOND + 1)), None);
        }
    }

    #[test]
    fn slewing_is_no_step_and_no_stamp_is_of_the_future() {
        let offsets = Offsets::new(0, 400_000, SECOND);
        let late = at(2 * SECOND);
        assert_eq!(offsets.convert(SECOND + 400_000, late, late), Some(at(SECOND)));
        assert_eq!(offsets.convert(2 * SECOND + 400_050, at(0), late), Some(late));
    }

    #[test]
    fn the_present_is_converted_to_the_present() {
        let mut wall = Wall::new();
        let before = Clock.now();
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        let after = Clock.now();
        let converted = wall.refresh().convert(since_1970, before, after).unwrap();
        assert!(converted.since_ns(before) > -10_000 && converted <= after);
    }
}
