//! How far the octets of a connection have come, as the kernel's stamps tell, and which messages
//! with them.

use crate::engine::Departure;
use crate::kernel::Kind;
use crate::side::Told;
use hopline_timeline::record::{Held, KernelStamp};
use hopline_timeline::{Instant, Stage};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that may be under way at once and be followed, each some 150 octets.
const UNDER_WAY_MAX: usize = 16_384;

/// A message that was given to the kernel.
#[derive(Debug)]
struct UnderWay {
    departure: Departure,
    held: Option<Held>,
    stamps: [Option<Passed>; 3],
}

/// It passed a stage.
#[derive(Copy, Clone, Debug)]
struct Passed {
    at: Instant,
    /// The end of the octets that the stamp is of. It is of the last octet of a segment buffer,
    /// so the message has passed then or before.
    end: u64,
    again: bool,
}

/// Messages under way in the order of their ends. Each stage of the kernel has a front, which
/// passes them in this order.
#[derive(Debug, Default)]
pub(crate) struct Fronts {
    under_way: VecDeque<UnderWay>,
    /// How many of them each front has passed.
    passed: [usize; 3],
}

impl Fronts {
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// One more. `false`: there is no room for it.
    pub(crate) fn push(&mut self, departure: Departure) -> bool {
        let has_room = self.under_way.len() < UNDER_WAY_MAX;
        if has_room {
            self.under_way.push_back(UnderWay { departure, held: None, stamps: [None; 3] });
        }
        has_room
    }

    /// The kernel held back what ends beyond this octet.
    pub(crate) fn hold(&mut self, beyond: u64, reason: Held) {
        let held = self.under_way.iter_mut().rev();
        for message in held.take_while(|message| message.departure.end > beyond) {
            message.held.get_or_insert(reason);
        }
    }

    /// A stamp of the octet before `offset + 1`, which counts modulo 2^32.
    pub(crate) fn stamp(&mut self, kind: Kind, offset: u32, at: Instant) {
        let Some(last) = self.under_way.back().map(|message| message.departure.end) else { return };
        // Less than half of the range is ever under way, so the nearest is meant.
        let distance = offset.wrapping_add(1).wrapping_sub(last as u32).cast_signed();
        let end = last.saturating_add_signed(distance.into());
        let Some(passed) = self.passed.get_mut(kind as usize) else { return };
        let before = *passed;
        while let Some(message) = self.under_way.get_mut(*passed)
            && message.departure.end <= end
        {
            message.stamps[kind as usize] = Some(Passed { at, end, again: false });
            *passed += 1;
        }
        if *passed == before {
            self.again(kind, end, before);
        }
    }

    /// A front that passes the same octet twice: they were sent again.
    fn again(&mut self, kind: Kind, end: u64, passed: usize) {
        let of_kind = self.under_way.iter_mut().take(passed).rev();
        let same = of_kind.filter_map(|message| message.stamps[kind as usize].as_mut());
        for stamp in same.skip_while(|it| it.end > end).take_while(|it| it.end == end) {
            stamp.again = true;
        }
    }

    /// The next message of `node` that the peer has acknowledged.
    pub(crate) fn next_acknowledged(&mut self, node: &Arc<str>) -> Option<Told> {
        if self.passed[Kind::Ack as usize] == 0 { None } else { self.next(node) }
    }

    /// The next message of `node`, whatever is known of it.
    pub(crate) fn next(&mut self, node: &Arc<str>) -> Option<Told> {
        let message = self.under_way.pop_front()?;
        for passed in &mut self.passed {
            *passed = passed.saturating_sub(1);
        }
        Some(message.told(node.clone()))
    }
}

impl UnderWay {
    fn told(self, node: Arc<str>) -> Told {
        let Departure { id, sent, end } = self.departure;
        let stages = [Stage::KernelSched, Stage::KernelSend, Stage::KernelAck];
        let stamps = std::array::from_fn(|n| {
            let (stage, passed) = (stages.get(n)?, (*self.stamps.get(n)?)?);
            Some(KernelStamp {
                stage: stage.code(),
                at: Some(passed.at),
                upper_bound: passed.end > end,
                retransmitted: passed.again,
            })
        });
        Told { node, id, sent, held: self.held, stamps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_timeline::TimelineId;

    const KINDS: [Kind; 3] = [Kind::Sched, Kind::Send, Kind::Ack];

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn node() -> Arc<str> {
        "n".into()
    }

    /// Messages that end at these octets.
    fn fronts(ends: &[u64]) -> Fronts {
        let mut fronts = Fronts::default();
        for (n, end) in (0..).zip(ends) {
            let departure = Departure { id: TimelineId([n; 16]), sent: at(0), end: *end };
            assert!(fronts.push(departure));
        }
        fronts
    }

    /// Instant in ns, upper bound, sent again.
    type Flat = Option<(i64, bool, bool)>;

    /// Which message, and its stamps.
    fn told(told: Option<Told>) -> Option<(u8, [Flat; 3])> {
        let told = told?;
        let flat = |stamp: KernelStamp| {
            Some((stamp.at?.as_nanos(), stamp.upper_bound, stamp.retransmitted))
        };
        Some((told.id.0[0], told.stamps.map(|stamp| stamp.and_then(flat))))
    }

    #[test]
    fn each_message_takes_the_first_stamp_at_or_past_its_end() {
        let mut fronts = fronts(&[100, 200, 300]);
        for (n, kind) in (1..).zip(KINDS) {
            fronts.stamp(kind, 99, at(n));
            assert_eq!(fronts.next_acknowledged(&node()).is_some(), kind == Kind::Ack);
        }
        for (n, kind) in (11..).zip(KINDS) {
            fronts.stamp(kind, 299, at(n));
        }
        let bounds = [11, 12, 13].map(|ns| Some((ns, true, false)));
        assert_eq!(told(fronts.next_acknowledged(&node())), Some((1, bounds)));
        let exact = [11, 12, 13].map(|ns| Some((ns, false, false)));
        assert_eq!(told(fronts.next_acknowledged(&node())), Some((2, exact)));
        assert!(fronts.is_empty() && fronts.next(&node()).is_none());
        assert_eq!(fronts.passed, [0; 3]);
    }

    #[test]
    fn octets_that_are_sent_again_are_marked_and_keep_their_first_stamp() {
        let mut fronts = fronts(&[100, 200, 300]);
        fronts.stamp(Kind::Sched, 99, at(1));
        fronts.stamp(Kind::Sched, 299, at(2));
        fronts.stamp(Kind::Sched, 299, at(50));
        fronts.stamp(Kind::Ack, 299, at(60));
        let sched =
            |fronts: &mut Fronts| told(fronts.next_acknowledged(&node())).and_then(|it| it.1[0]);
        assert_eq!(sched(&mut fronts), Some((1, false, false)));
        assert_eq!(sched(&mut fronts), Some((2, true, true)));
        assert_eq!(sched(&mut fronts), Some((2, false, true)));
    }

    #[test]
    fn stamps_that_are_lost_leave_gaps_and_no_more() {
        let mut fronts = fronts(&[100, 200]);
        fronts.stamp(Kind::Ack, 99, at(3));
        assert_eq!(told(fronts.next(&node())), Some((0, [None, None, Some((3, false, false))])));
        fronts.stamp(Kind::Sched, 199, at(4));
        assert_eq!(told(fronts.next(&node())), Some((1, [Some((4, false, false)), None, None])));
        fronts.stamp(Kind::Send, 500, at(5));
        assert!(fronts.next(&node()).is_none());
    }

    #[test]
    fn offsets_are_taken_modulo_2_to_the_32() {
        let turn = 1 << 32;
        for ends in [[turn - 10, turn], [turn, turn + 7], [5 * turn - 1, 5 * turn + 9]] {
            let mut fronts = fronts(&ends);
            fronts.stamp(Kind::Ack, (ends[0] as u32).wrapping_sub(1), at(1));
            assert!(
                fronts.next_acknowledged(&node()).is_some()
                    && fronts.next_acknowledged(&node()).is_none()
            );
            fronts.stamp(Kind::Ack, (ends[1] as u32).wrapping_sub(1), at(1));
            assert!(fronts.next_acknowledged(&node()).is_some());
        }
    }

    #[test]
    fn what_is_held_is_what_ends_beyond_the_octets_that_left() {
        let mut fronts = fronts(&[100, 200, 300]);
        fronts.hold(250, Held::Nagle);
        fronts.hold(150, Held::ReceiveWindow);
        let held: Vec<_> =
            std::iter::from_fn(|| fronts.next(&node())).map(|told| told.held).collect();
        assert_eq!(held, [None, Some(Held::ReceiveWindow), Some(Held::Nagle)]);
    }

    #[test]
    fn there_is_an_end_to_how_many_are_followed() {
        let mut fronts = Fronts::default();
        let departure = Departure { id: TimelineId([0; 16]), sent: at(0), end: 1 };
        for _ in 0..UNDER_WAY_MAX {
            assert!(fronts.push(departure));
        }
        assert!(!fronts.push(departure));
    }
}
