//! Which messages have left, for those who want to know what became of them on the way.

use hopline_timeline::{Instant, TimelineId};
use slotmap::SlotMap;
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// Messages that may be on their way into the socket and be followed, each some 60 octets. Those
/// beyond are sent as any other and counted.
const FOLLOWED_MAX: usize = 16_384;

slotmap::new_key_type! {
    /// A message that is followed.
    pub(crate) struct FollowedId;
}

/// A message with a timeline that the socket has taken whole.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its timeline.
    pub id: TimelineId,
    /// Its SEND stamp.
    pub sent: Instant,
    /// The octets of the connection up to and with its last one.
    pub end: u64,
}

#[derive(Debug)]
struct Followed {
    id: TimelineId,
    sent: Instant,
}

/// The messages of an outbox that are followed.
#[derive(Debug)]
pub(crate) struct Departures {
    one_in: NonZeroU32,
    seen: u32,
    followed: SlotMap<FollowedId, Followed>,
    /// Those whose last octet is in the outbox, and where it ends; ascending.
    ends: VecDeque<(u64, FollowedId)>,
    unfollowed: u64,
}

impl Departures {
    pub(crate) fn new(one_in: NonZeroU32) -> Self {
        let (followed, ends) = (SlotMap::with_key(), VecDeque::new());
        Self { one_in, seen: 0, followed, ends, unfollowed: 0 }
    }

    /// A message has come into the outbox, or begun to. `None`: it is not followed.
    pub(crate) fn begin(&mut self, id: TimelineId) -> Option<FollowedId> {
        self.seen += 1;
        if self.seen < self.one_in.get() {
            return None;
        }
        self.seen = 0;
        if self.followed.len() >= FOLLOWED_MAX {
            self.unfollowed += 1;
            return None;
        }
        Some(self.followed.insert(Followed { id, sent: Instant::UNFILLED }))
    }

    /// Its last octet is in the outbox now, at the end of which is `end`.
    pub(crate) fn end(&mut self, id: FollowedId, end: u64) {
        self.ends.push_back((end, id));
    }

    /// Its SEND stamp has left.
    pub(crate) fn stamped(&mut self, id: FollowedId, at: Instant) {
        if let Some(followed) = self.followed.get_mut(id) {
            followed.sent = at;
        }
    }

    /// It was given up before its end.
    pub(crate) fn forget(&mut self, id: FollowedId) {
        self.followed.remove(id);
    }

    /// Where the first message ends that has not departed.
    pub(crate) fn next_end(&self) -> Option<u64> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// The next message of which all octets up to `written` hold the whole.
    pub(crate) fn next(&mut self, written: u64) -> Option<Departure> {
        let (end, id) = self.ends.pop_front_if(|(end, _)| *end <= written)?;
        let Followed { id, sent } = self.followed.remove(id)?;
        Some(Departure { id, sent, end })
    }

    pub(crate) fn take_unfollowed(&mut self) -> u64 {
        std::mem::take(&mut self.unfollowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> TimelineId {
        TimelineId([n; 16])
    }

    #[test]
    fn messages_depart_in_the_order_of_their_ends_with_their_own_stamps() {
        let mut departures = Departures::new(NonZeroU32::MIN);
        let large = departures.begin(id(1)).unwrap();
        let small = departures.begin(id(2)).unwrap();
        departures.end(small, 50);
        departures.stamped(large, Instant::from_nanos(1));
        departures.stamped(small, Instant::from_nanos(2));
        departures.end(large, 90);
        assert_eq!(departures.next_end(), Some(50));
        assert_eq!(departures.next(49), None);
        let sent = Instant::from_nanos(2);
        assert_eq!(departures.next(89), Some(Departure { id: id(2), sent, end: 50 }));
        assert_eq!(departures.next(89), None);
        let sent = Instant::from_nanos(1);
        assert_eq!(departures.next(90), Some(Departure { id: id(1), sent, end: 90 }));
    }

    #[test]
    fn one_in_so_many_is_followed_and_never_too_many_at_once() {
        let mut departures = Departures::new(NonZeroU32::new(3).unwrap());
        let followed = (0..9).filter_map(|n| departures.begin(id(n)));
        assert_eq!(followed.count(), 3);
        let mut all = Departures::new(NonZeroU32::MIN);
        for _ in 0..FOLLOWED_MAX {
            assert!(all.begin(id(1)).is_some());
        }
        assert_eq!(all.begin(id(1)), None);
        assert_eq!((all.take_unfollowed(), all.take_unfollowed()), (1, 0));
    }

    #[test]
    fn what_is_given_up_never_departs() {
        let mut departures = Departures::new(NonZeroU32::MIN);
        let gone = departures.begin(id(1)).unwrap();
        departures.forget(gone);
        departures.stamped(gone, Instant::from_nanos(1));
        assert_eq!(departures.next(u64::MAX), None);
        assert!(departures.followed.is_empty());
    }
}
