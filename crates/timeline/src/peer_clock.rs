//! How far a neighbour's clock is ahead of ours, by exchanges of instants over a connection.
//!
//! An exchange has four instants: we ask at `t1` of our clock, the question arrives at `t2` of
//! theirs, the answer leaves at `t3` of theirs and arrives at `t4` of ours. No octet travels back
//! in time, so at `t1` their clock was ahead by no more than `t2 - t1`, and at `t4` by no less
//! than `t3 - t4`, whatever the way took in either direction. (Half the difference of both is the
//! bound of NTP; what lies between is not known to anybody.)
//!
//! Bounds of the last exchanges are carried to the instant that is asked for by how fast the clocks
//! can drift apart, and intersected: the quickest exchanges tell the most, and nothing is averaged.
//! How fast they drift is bounded in the same way, by pairs of exchanges.

use crate::Instant;
use std::collections::VecDeque;

/// Exchanges that are remembered.
const WINDOW: usize = 64;

/// The fastest that two clocks drift apart, in parts per 10^9: each may be slewed by 500 ppm
/// (adjtimex(2)).
const DRIFT_MAX: i64 = 1_000_000;

/// By how much the drift may change while the window lasts, and in each second, in parts per 10^9.
/// Crystals stay well below it; a time service that begins to slew may not, and is noticed by the
/// next exchange.
const WANDER: i64 = 10_000;
const WANDER_PER_S: i64 = 2_000;

/// A drift that is known better than that, in parts per 10^9, costs less than 10 us until the next
/// exchange.
const SETTLED: i64 = 100_000;

/// So long a drift that was seen may be taken to go on, in ns.
const TRUST_NS: i64 = 10_000_000_000;

const BILLION: i128 = 1_000_000_000;

/// How far one clock is ahead of another at some instant.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClockOffset {
    /// In ns; negative where it is behind.
    pub ahead_ns: i64,
    /// By how much that can be wrong, in ns.
    pub error_bound_ns: u64,
}

/// What exchanges with one neighbour have told so far.
#[derive(Clone, Debug)]
pub struct PeerClock {
    exchanges: VecDeque<Exchange>,
    /// The least and the greatest drift that agree with all that was seen.
    drift: (i64, i64),
}

/// Their clock was ahead by `most` at the most when we asked, and by `least` at the least when the
/// answer came.
#[derive(Copy, Clone, Debug)]
struct Exchange {
    asked: i64,
    most: i64,
    answered: i64,
    least: i64,
}

impl Default for PeerClock {
    fn default() -> Self {
        Self { exchanges: VecDeque::new(), drift: (-DRIFT_MAX, DRIFT_MAX) }
    }
}

impl PeerClock {
    /// Takes in an exchange: our instants when we asked and when the answer had come, the peer's
    /// when the question had come and when it answered.
    ///
    /// One that contradicts itself is passed over. One that contradicts what was seen before ends
    /// that: one of the clocks was slewed, or something lies.
    pub fn add(&mut self, ours: (Instant, Instant), theirs: (Instant, Instant)) {
        let (asked, answered) = (ours.0.as_nanos(), ours.1.as_nanos());
        let most = theirs.0.as_nanos().checked_sub(asked);
        let least = theirs.1.as_nanos().checked_sub(answered);
        let Some((most, least)) = most.zip(least) else { return };
        let fresh = Exchange { asked, most, answered, least };
        if asked > answered || theirs.0 > theirs.1 || fresh.least > fresh.most {
            return;
        }
        let agrees = self.learn_drift(&fresh);
        if self.exchanges.len() == WINDOW {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(fresh);
        if !agrees || self.range(answered).is_none() {
            *self = Self { exchanges: VecDeque::from([fresh]), ..Self::default() };
        }
    }

    /// Whether further exchanges soon are of use: little is known of how fast the clocks drift.
    pub fn is_fresh(&self) -> bool {
        self.drift.1 - self.drift.0 > SETTLED
    }

    /// How far the peer's clock is ahead of ours at `now` of ours; `None`: nothing is known yet.
    pub fn ahead(&self, now: Instant) -> Option<ClockOffset> {
        let (least, most) = self.range(now.as_nanos())?;
        let ahead_ns = i64::try_from(least + (most - least) / 2).ok()?;
        let bound = u64::try_from((most - least + 1) / 2).unwrap_or(u64::MAX);
        Some(ClockOffset { ahead_ns, error_bound_ns: bound })
    }

    /// Between what and what it is ahead; `None`: nothing fits all.
    fn range(&self, now: i64) -> Option<(i128, i128)> {
        let (mut least, mut most) = (i128::MIN, i128::MAX);
        for exchange in &self.exchanges {
            let (_, up) = self.drifted(exchange.asked, now);
            let (down, _) = self.drifted(exchange.answered, now);
            most = most.min(i128::from(exchange.most) + up);
            least = least.max(i128::from(exchange.least) + down);
        }
        (!self.exchanges.is_empty() && least <= most).then_some((least, most))
    }

    /// By how much the clocks may have drifted apart between two instants: at least, at most.
    fn drifted(&self, from: i64, to: i64) -> (i128, i128) {
        let passed = i128::from(to) - i128::from(from);
        let (slow, fast) = match passed.unsigned_abs() <= TRUST_NS.unsigned_abs().into() {
            true => self.drift,
            false => (-DRIFT_MAX, DRIFT_MAX),
        };
        let by = |drift: i64| passed * i128::from(drift);
        let (a, b) = (by(slow), by(fast));
        (a.min(b).div_euclid(BILLION), -(-a.max(b)).div_euclid(BILLION))
    }

    /// What the pairs of the fresh exchange with those before say of the drift, beside what was
    /// known; `false`: they contradict.
    fn learn_drift(&mut self, fresh: &Exchange) -> bool {
        let passed =
            self.exchanges.back().map_or(0, |last| fresh.answered.saturating_sub(last.answered));
        let (mut slow, mut fast) = (-DRIFT_MAX, DRIFT_MAX);
        for before in &self.exchanges {
            // From where it was at least then to where it is at most now, and the other way round.
            let rise = i128::from(fresh.most) - i128::from(before.least);
            let fall = i128::from(fresh.least) - i128::from(before.most);
            if let Some(most) = rate(rise, before.answered, fresh.asked) {
                fast = fast.min(most.saturating_add(1));
            }
            if let Some(least) = rate(fall, before.asked, fresh.answered) {
                slow = slow.max(least.saturating_sub(1));
            }
        }
        let wandered = WANDER_PER_S.saturating_mul(passed) / 1_000_000_000;
        let slow = slow.saturating_sub(WANDER).max(self.drift.0.saturating_sub(wandered));
        let fast = fast.saturating_add(WANDER).min(self.drift.1.saturating_add(wandered));
        self.drift = (slow.max(-DRIFT_MAX), fast.min(DRIFT_MAX));
        slow <= fast
    }
}

/// Parts per 10^9; `None` where no time has passed.
fn rate(by_ns: i128, from: i64, to: i64) -> Option<i64> {
    let passed = i128::from(to) - i128::from(from);
    let rate = (passed > 0).then(|| (by_ns * BILLION).div_euclid(passed))?;
    Some(i64::try_from(rate).unwrap_or(if rate > 0 { i64::MAX } else { i64::MIN }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Two clocks in a world of its own time: the peer's is ahead by `ahead` at 0 and gains
    /// `drift` parts in 10^9.
    #[derive(Copy, Clone)]
    struct World {
        ahead: i64,
        drift: i64,
    }

    impl World {
        fn theirs(self, now: i64) -> i64 {
            now + self.truth(now)
        }

        fn truth(self, now: i64) -> i64 {
            let gained = i128::from(now) * i128::from(self.drift) / BILLION;
            self.ahead + gained as i64
        }

        /// An exchange that begins at `now`, with these ways there, stay, and way back.
        fn exchange(self, clock: &mut PeerClock, now: i64, (there, stay, back): (i64, i64, i64)) {
            let theirs = (self.theirs(now + there), self.theirs(now + there + stay));
            let end = now + there + stay + back;
            clock.add((at(now), at(end)), (at(theirs.0), at(theirs.1)));
        }

        fn assert_within(self, clock: &PeerClock, now: i64) -> u64 {
            let ClockOffset { ahead_ns, error_bound_ns } = clock.ahead(at(now)).unwrap();
            let error = (ahead_ns - self.truth(now)).unsigned_abs();
            assert!(error <= error_bound_ns + 1, "{error} > {error_bound_ns} at {now}");
            error_bound_ns
        }
    }

    #[test]
    fn one_exchange_bounds_by_half_its_round_trip() {
        let world = World { ahead: -3_000_000, drift: 0 };
        let mut clock = PeerClock::default();
        assert_eq!(clock.ahead(at(0)), None);
        world.exchange(&mut clock, 0, (50_000, 7_000, 50_000));
        let bound = world.assert_within(&clock, 107_000);
        // And what the clocks may have drifted in between.
        assert!((50_000..50_200).contains(&bound), "{bound}");
        let later = world.assert_within(&clock, 1_000_000_000);
        assert!(later > 1_000_000, "nothing is known of the drift: {later}");
    }

    #[test]
    fn the_quickest_exchanges_and_the_drift_narrow_it_down() {
        let world = World { ahead: 3_000_000, drift: 40_000 };
        let mut clock = PeerClock::default();
        for n in 0..50 {
            // The way there is slow now and then, the way back likewise.
            let (there, back) = (20_000 + n % 3 * 300_000, 20_000 + n % 4 * 500_000);
            world.exchange(&mut clock, n * 100_000_000, (there, 5_000, back));
        }
        let now = 5_000_000_000;
        let bound = world.assert_within(&clock, now);
        assert!(bound < 45_000, "{bound}");
        assert!(world.assert_within(&clock, now + 100_000_000) < 50_000);
    }

    #[test]
    fn a_clock_that_is_slewed_is_noticed_by_the_next_exchange() {
        let mut clock = PeerClock::default();
        let calm = World { ahead: 0, drift: 0 };
        (0..60).for_each(|n| calm.exchange(&mut clock, n * 100_000_000, (10_000, 0, 10_000)));
        // From here on the peer's clock gains half a thousandth.
        let start = 6_000_000_000;
        let slewed = World { ahead: -start / 2_000, drift: 500_000 };
        for n in 0..60 {
            let now = start + n * 100_000_000;
            slewed.exchange(&mut clock, now, (10_000, 0, 10_000));
            slewed.assert_within(&clock, now + 20_000);
        }
        assert!(slewed.assert_within(&clock, start + 6_000_000_000) < 40_000);
    }

    #[test]
    fn lies_are_survived() {
        let mut clock = PeerClock::default();
        let odd = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for a in odd {
            for b in odd {
                for c in odd {
                    clock.add((at(a), at(b)), (at(c), at(a)));
                    clock.add((at(c), at(a)), (at(b), at(b)));
                    let _ = clock.ahead(at(b));
                }
            }
        }
        assert!(clock.exchanges.len() <= WINDOW);
    }

    /// The way there, the stay and the way back of each exchange.
    fn ways() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
        let way = 0..5_000_000_i64;
        prop::collection::vec((way.clone(), 0..100_000_i64, way), 1..150)
    }

    proptest! {
        #[test]
        fn the_truth_lies_within_the_bound(
            ahead in -1_000_000_000_000..1_000_000_000_000_i64,
            drift in -499_000..499_000_i64,
            pace in 1_000_000..300_000_000_i64,
            ways in ways(),
        ) {
            let world = World { ahead, drift };
            let mut clock = PeerClock::default();
            let mut now = 0;
            for (there, stay, back) in ways {
                world.exchange(&mut clock, now, (there, stay, back));
                let end = now + there + stay + back;
                for asked in [now, end, end + pace, end + 20 * pace] {
                    world.assert_within(&clock, asked);
                }
                now = end + pace;
            }
        }
    }
}
