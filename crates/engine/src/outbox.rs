//! Octets on their way to the socket, and the instants that are filled in as they leave.

use crate::departures::{Departure, Departures, FollowedId};
use bytes::Bytes;
use hopline_timeline::{Instant, TimelineId, fill};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::num::NonZeroU32;

/// Payloads up to this size are copied into the buffer: cheaper than a segment of their own.
const COPY_MAX: usize = 4096;

/// A buffer that has grown beyond this is given back when it is empty.
const KEEP_MAX: usize = 1 << 20;

/// Octets of an instant (see `hopline_timeline::fill`).
const SLOT: u64 = 8;

/// Where in a buffer a SEND stamp waits to be filled in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Where its timeline begins.
    pub timeline: usize,
    /// Where the eight octets of its instant lie.
    pub instant: usize,
}

#[derive(Debug)]
enum Segment {
    Owned(Vec<u8>),
    Shared(Bytes),
}

impl Segment {
    fn octets(&self) -> &[u8] {
        match self {
            Self::Owned(octets) => octets,
            Self::Shared(octets) => octets,
        }
    }
}

/// What waits to be written: one buffer that frames are encoded into, with large payloads between.
#[derive(Debug, Default)]
pub struct Outbox {
    segments: VecDeque<Segment>,
    tail: Vec<u8>,
    /// Octets of the first segment that have been written.
    head: usize,
    len: usize,
    /// Octets written since the connection began.
    written: u64,
    /// Stream offsets of instants to fill in, ascending, and the message if it is followed.
    slots: VecDeque<(u64, Option<FollowedId>)>,
    departures: Option<Box<Departures>>,
}

impl Outbox {
    /// Octets that wait.
    pub const fn len(&self) -> usize {
        self.len + self.tail.len()
    }

    /// Whether nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets written since the connection began.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// The buffer at the end. Whoever appends to it appends whole frames.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Marks the eight octets at `at` of the tail as the instant of this timeline to fill in.
    /// [`end`](Self::end) has to be told when the rest of a message that is followed is there.
    pub(crate) fn mark_slot(
        &mut self,
        at: usize,
        timeline: impl FnOnce(&[u8]) -> Option<TimelineId>,
    ) -> Option<FollowedId> {
        let followed = match &mut self.departures {
            None => None,
            Some(departures) => timeline(&self.tail).and_then(|id| departures.begin(id)),
        };
        self.slots.push_back((self.written + (self.len + at) as u64, followed));
        followed
    }

    /// All of a message that is followed is in the outbox now.
    pub(crate) fn end(&mut self, id: FollowedId) {
        let end = self.written + self.len() as u64;
        if let Some(departures) = &mut self.departures {
            departures.end(id, end);
        }
    }

    /// A message that is followed will have no end.
    pub(crate) fn forget(&mut self, id: FollowedId) {
        if let Some(departures) = &mut self.departures {
            departures.forget(id);
        }
    }

    /// Lets one in so many messages with a timeline be followed from here on: each appears in
    /// [`next_departure`](Self::next_departure), which has to be called after each write then.
    pub fn follow(&mut self, one_in: NonZeroU32) {
        self.departures = Some(Box::new(Departures::new(one_in)));
    }

    /// Whether a message that is followed ends within the next `octets` to be written.
    pub fn ends_within(&self, octets: usize) -> bool {
        let next = self.departures.as_ref().and_then(|departures| departures.next_end());
        next.is_some_and(|end| end <= self.written + octets as u64)
    }

    /// The next followed message that was written whole.
    pub fn next_departure(&mut self) -> Option<Departure> {
        self.departures.as_mut()?.next(self.written)
    }

    /// Messages that were not followed for want of room, since this was asked last.
    pub fn take_unfollowed(&mut self) -> u64 {
        self.departures.as_mut().map_or(0, |departures| departures.take_unfollowed())
    }

    /// Appends payload: copied if small, by reference if not.
    pub(crate) fn push(&mut self, octets: Bytes) {
        if octets.len() <= COPY_MAX {
            return self.tail.extend_from_slice(&octets);
        }
        self.seal();
        self.len += octets.len();
        self.segments.push_back(Segment::Shared(octets));
    }

    /// Makes the tail a segment. Its octets that were written already don't count.
    fn seal(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        self.len += self.tail.len();
        self.segments.push_back(Segment::Owned(std::mem::take(&mut self.tail)));
    }

    /// Fills in `now` wherever a slot has not begun to leave yet. To be called just before a write.
    pub fn stamp(&mut self, now: Instant) {
        if self.slots.is_empty() {
            return;
        }
        let mut start = self.written - self.head as u64;
        let mut slots = self.slots.iter().map(|(slot, _)| *slot).peekable();
        let tail = &mut self.tail;
        let owned = self.segments.iter_mut().map(|segment| match segment {
            Segment::Owned(octets) => (octets.len(), Some(octets.as_mut_slice())),
            Segment::Shared(octets) => (octets.len(), None),
        });
        for (len, octets) in owned.chain([(tail.len(), Some(tail.as_mut_slice()))]) {
            let end = start + len as u64;
            let Some(octets) = octets else {
                start = end;
                continue;
            };
            while let Some(slot) = slots.next_if(|slot| *slot < end) {
                let at = (slot - start) as usize;
                if let Some(slot) = octets.get_mut(at..at + SLOT as usize) {
                    fill(slot, now);
                }
            }
            start = end;
        }
    }

    /// The octets to write, as many slices as fit; returns how many are set.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.head;
        let all = self.segments.iter().map(Segment::octets).chain([self.tail.as_slice()]);
        let mut used = 0;
        for (slot, octets) in slices.iter_mut().zip(all) {
            let octets = octets.get(std::mem::take(&mut skip)..).unwrap_or_default();
            *slot = IoSlice::new(octets);
            used += 1;
        }
        used
    }

    /// Takes away what has been written, at the instant that was filled in before.
    pub fn advance(&mut self, mut n: usize, now: Instant) {
        self.written += n as u64;
        while let Some((_, followed)) = self.slots.pop_front_if(|(slot, _)| *slot < self.written) {
            if let (Some(id), Some(departures)) = (followed, &mut self.departures) {
                departures.stamped(id, now);
            }
        }
        while let Some(segment) = self.segments.front() {
            let left = segment.octets().len() - self.head;
            if n < left {
                self.head += n;
                self.len -= n;
                return;
            }
            n -= left;
            self.len -= left;
            self.head = 0;
            self.recycle();
        }
        self.advance_tail(n);
    }

    fn recycle(&mut self) {
        if let Some(Segment::Owned(mut octets)) = self.segments.pop_front()
            && self.tail.capacity() == 0
            && octets.capacity() <= KEEP_MAX
        {
            octets.clear();
            self.tail = octets;
        }
    }

    /// A tail that was written in part becomes a segment, so that `head` counts into the first one.
    fn advance_tail(&mut self, n: usize) {
        if n == self.tail.len() {
            self.tail.clear();
            if self.tail.capacity() > KEEP_MAX {
                self.tail = Vec::new();
            }
        } else if n > 0 {
            self.seal();
            self.head = n;
            self.len -= n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(0);

    fn octets(outbox: &Outbox) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 64];
        let n = outbox.slices(&mut slices);
        let slices: Vec<&[u8]> = slices[..n].iter().map(|slice| &**slice).collect();
        slices.concat()
    }

    #[test]
    fn whatever_the_writes_take_the_octets_come_out_in_order() {
        for step in [1, 7, 100, 5000, 100_000] {
            let (mut outbox, mut want, mut got) = (Outbox::default(), Vec::new(), Vec::new());
            for n in 0..40_u8 {
                let part = vec![n; if n % 5 == 0 { 9000 } else { 10 }];
                want.extend_from_slice(&part);
                outbox.push(part.into());
                let ready = octets(&outbox);
                let take = ready.len().min(step);
                got.extend_from_slice(&ready[..take]);
                outbox.advance(take, NOW);
            }
            assert_eq!(outbox.len(), want.len() - got.len());
            while !outbox.is_empty() {
                let ready = octets(&outbox);
                let take = ready.len().min(step);
                got.extend_from_slice(&ready[..take]);
                outbox.advance(take, NOW);
            }
            assert!(got == want, "step {step}");
            assert_eq!(outbox.written(), want.len() as u64);
        }
    }

    #[test]
    fn an_instant_is_filled_in_by_the_last_stamp_before_its_first_octet_leaves() {
        let mut outbox = Outbox::default();
        for _ in 0..2 {
            let at = outbox.tail().len();
            outbox.tail().extend_from_slice(&[0; 8]);
            outbox.mark_slot(at, |_| None);
            outbox.push(vec![9; 5000].into());
        }
        outbox.stamp(Instant::from_nanos(1));
        outbox.advance(3, Instant::from_nanos(1));
        outbox.stamp(Instant::from_nanos(2));
        let all = octets(&outbox);
        assert_eq!(all[..5], 1_i64.to_be_bytes()[3..]);
        assert_eq!(all[5005..5013], 2_i64.to_be_bytes());
        outbox.advance(all.len(), Instant::from_nanos(2));
        assert!(outbox.slots.is_empty());
        outbox.stamp(Instant::from_nanos(3));
    }

    #[test]
    fn a_slot_behind_a_half_written_buffer_is_found() {
        let mut outbox = Outbox::default();
        outbox.tail().extend_from_slice(&[7; 20]);
        outbox.advance(10, NOW);
        let at = outbox.tail().len();
        outbox.tail().extend_from_slice(&[0; 8]);
        outbox.mark_slot(at, |_| None);
        outbox.stamp(Instant::from_nanos(5));
        assert_eq!(octets(&outbox)[10..], 5_i64.to_be_bytes());
    }
}
