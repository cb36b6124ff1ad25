use crate::node::NODE_TYPE;
use crate::scan::count_stamps;
use crate::{Instant, Stage, TimelineId};

/// The greatest length of a timeline in octets, header included.
pub const MAX_OCTETS: usize = 4_096;

/// The greatest number of stamps in a timeline.
pub const MAX_STAMPS: usize = 256;

/// Octets of a timeline's header.
pub(crate) const HEADER_OCTETS: usize = 20;

/// Octets of a stamp, type octet included.
pub(crate) const STAMP_OCTETS: usize = 10;

/// The version of the format that this crate reads and writes.
pub(crate) const VERSION: u8 = 1;

/// Flag bit 0: something was dropped for want of room.
pub(crate) const OVERFLOW: u8 = 0b0000_0001;

// The walk that counts stamps is only needed where the octets could hold too many.
const _: () = assert!(HEADER_OCTETS + MAX_STAMPS * STAMP_OCTETS < MAX_OCTETS);

/// Begins a timeline: appends its header to `out`.
pub fn new_timeline(id: TimelineId, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, 0, 0, 0]);
    out.extend_from_slice(&id.0);
}

/// Whether these octets begin with the header of a timeline that can be appended to.
pub fn is_timeline(octets: &[u8]) -> bool {
    octets.len() >= HEADER_OCTETS && octets.first() == Some(&VERSION)
}

/// Writes the instant into the slot that [`Appender::stamp`] gave the place of.
///
/// Only the slot's first 8 octets change; a shorter slot, which no timeline has, stays as it is.
pub fn fill(slot: &mut [u8], at: Instant) {
    if let Some(octets) = slot.first_chunk_mut() {
        *octets = at.as_nanos().to_be_bytes();
    }
}

/// Appends to the timeline that begins at `start` of a buffer and ends with the buffer.
///
/// Call [`node`](Self::node) before the first stamp, unless this node's record is the last one
/// already there. Nothing is allocated while the buffer has capacity, and the cost does not depend
/// on the timeline's length (above 2,580 octets, where [`MAX_STAMPS`] comes into sight, the stamps
/// are counted).
///
/// What exceeds [`MAX_OCTETS`] or [`MAX_STAMPS`] is dropped, counted and marked in the header. A
/// timeline so marked takes no more records: a later one could otherwise stand behind the record
/// of the wrong node.
#[derive(Debug)]
pub struct Appender<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    /// How many stamps can be added before they must be counted.
    stamps_sure: usize,
}

impl<'a> Appender<'a> {
    /// An appender for the timeline in `out[start..]`; `None` if there is no timeline that
    /// [`is_timeline`] knows.
    pub fn new(out: &'a mut Vec<u8>, start: usize) -> Option<Self> {
        let octets = out.get(start..).filter(|octets| is_timeline(octets))?.len();
        let most_stamps = (octets - HEADER_OCTETS) / STAMP_OCTETS;
        let stamps_sure = MAX_STAMPS.saturating_sub(most_stamps);
        Some(Appender { out, start, stamps_sure })
    }

    /// Appends a node record, as [`Node::record`](crate::Node::record) made it: whose stamps
    /// follow. Anything else than a node record is not appended and marks the overflow.
    pub fn node(&mut self, record: &[u8]) {
        let is_node = matches!(record, [NODE_TYPE, n, rest @ ..] if rest.len() == usize::from(*n));
        if !is_node || !self.append(record) {
            self.mark_overflow();
        }
    }

    /// Appends a stamp. `at` may be [`Instant::UNFILLED`], to be filled in later.
    ///
    /// Returns where in the buffer the instant's 8 octets are, for [`fill`]; `None` if the stamp
    /// was dropped for want of room, which the header then says.
    pub fn stamp(&mut self, stage: Stage, detail: u8, at: Instant) -> Option<usize> {
        self.stamp_code(stage.code(), detail, at)
    }

    /// [`stamp`](Self::stamp) for a code that need not be a known stage.
    pub(crate) fn stamp_code(&mut self, code: u8, detail: u8, at: Instant) -> Option<usize> {
        let [a, b, c, d, e, f, g, h] = at.as_nanos().to_be_bytes();
        let stamp = [code, detail, a, b, c, d, e, f, g, h];
        if !self.has_room_for_stamp() || !self.append(&stamp) {
            self.count_dropped(1);
            return None;
        }
        self.stamps_sure -= 1;
        Some(self.out.len() - size_of::<Instant>())
    }

    /// Appends a record of a kind that this version does not know.
    pub(crate) fn reserved(&mut self, kind: u8, content: &[u8]) {
        let length = u8::try_from(content.len()).ok().filter(|_| kind > NODE_TYPE);
        let record = length.map(|length| [&[kind, length], content].concat());
        if !record.is_some_and(|record| self.append(&record)) {
            self.mark_overflow();
        }
    }

    /// Appends a whole record if it fits and nothing was dropped before.
    fn append(&mut self, record: &[u8]) -> bool {
        let fits = !self.has_overflow() && self.timeline().len() + record.len() <= MAX_OCTETS;
        if fits {
            self.out.extend_from_slice(record);
        }
        fits
    }

    /// Says in the header that something is missing.
    fn mark_overflow(&mut self) {
        self.count_dropped(0);
    }

    /// Says in the header that so many more stamps are missing.
    pub(crate) fn count_dropped(&mut self, stamps: u16) {
        let header = self.out.get_mut(self.start..).and_then(|octets| octets.first_chunk_mut());
        if let Some([_version, flags, high, low]) = header {
            *flags |= OVERFLOW;
            let dropped = u16::from_be_bytes([*high, *low]).saturating_add(stamps);
            [*high, *low] = dropped.to_be_bytes();
        }
    }

    fn has_room_for_stamp(&mut self) -> bool {
        if self.stamps_sure == 0 && !self.has_overflow() {
            self.stamps_sure = MAX_STAMPS.saturating_sub(count_stamps(self.timeline()));
        }
        self.stamps_sure > 0
    }

    fn has_overflow(&self) -> bool {
        self.timeline().get(1).is_some_and(|flags| flags & OVERFLOW != 0)
    }

    fn timeline(&self) -> &[u8] {
        self.out.get(self.start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockDomain, Node};

    fn begun(before: &[u8]) -> Vec<u8> {
        let mut out = before.to_vec();
        new_timeline(TimelineId([0xab; 16]), &mut out);
        out
    }

    fn node_record() -> Vec<u8> {
        Node::new("n", ClockDomain::default()).record()
    }

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Flags and number of dropped stamps.
    fn marks(timeline: &[u8]) -> (u8, u16) {
        (timeline[1], u16::from_be_bytes([timeline[2], timeline[3]]))
    }

    #[test]
    fn a_header_and_a_stamp_lie_as_documented() {
        let mut out = begun(&[]);
        assert_eq!(out, [&[1, 0, 0, 0][..], &[0xab; 16]].concat());
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&node_record());
        appender.stamp(Stage::Dequeue, 2, at(0x0102_0304_0506_0708));
        assert_eq!(out[20..][..node_record().len()], node_record());
        assert_eq!(out[20 + node_record().len()..], [9, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_slot_is_found_and_filled_in_behind_other_octets() {
        let mut out = begun(b"sections before");
        let mut appender = Appender::new(&mut out, 15).unwrap();
        appender.node(&node_record());
        let slot = appender.stamp(Stage::Send, 0, Instant::UNFILLED).unwrap();
        let end = out.len();
        assert_eq!(out[slot..], i64::MIN.to_be_bytes());
        out.extend_from_slice(b"body");
        fill(&mut out[slot..], at(-5));
        assert_eq!(out[slot..end], (-5_i64).to_be_bytes());
        assert_eq!(out[end..], *b"body");
        assert!(out.starts_with(b"sections before\x01\0\0\0"));
    }

    #[test]
    fn a_slot_that_is_too_short_stays_as_it_is() {
        let mut slot = [7; 7];
        fill(&mut slot, at(1));
        assert_eq!(slot, [7; 7]);
    }

    #[test]
    fn what_is_no_timeline_gets_no_appender() {
        let mut out = begun(&[]);
        assert!(Appender::new(&mut out, 1).is_none(), "one octet short");
        assert!(Appender::new(&mut out, 21).is_none(), "start beyond the end");
        assert!(Appender::new(&mut out, usize::MAX).is_none());
        out[0] = 2;
        assert!(Appender::new(&mut out, 0).is_none(), "version 2");
        assert!(Appender::new(&mut Vec::new(), 0).is_none());
        assert!(!is_timeline(&out) && is_timeline(&begun(&[])));
    }

    #[test]
    fn the_257th_stamp_is_dropped_and_counted() {
        let mut out = begun(&[]);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&node_record());
        for ns in 0..256 {
            assert!(appender.stamp(Stage::Create, 0, at(ns)).is_some(), "stamp {ns}");
        }
        assert_eq!(marks(appender.timeline()), (0, 0));
        assert_eq!(appender.stamp(Stage::Create, 0, at(256)), None);
        assert_eq!(appender.stamp(Stage::Create, 0, at(257)), None);
        assert_eq!(marks(&out), (OVERFLOW, 2));
        assert_eq!(count_stamps(&out), MAX_STAMPS);
    }

    #[test]
    fn stamps_are_counted_across_appenders() {
        let mut out = begun(b"x");
        for _ in 0..300 {
            let mut appender = Appender::new(&mut out, 1).unwrap();
            if count_stamps(appender.timeline()).is_multiple_of(64) {
                appender.node(&node_record());
            }
            appender.stamp(Stage::Create, 0, at(1));
        }
        assert_eq!(count_stamps(&out[1..]), MAX_STAMPS);
        assert_eq!(marks(&out[1..]), (OVERFLOW, 300 - 256));
    }

    #[test]
    fn nothing_exceeds_the_octet_limit() {
        let mut out = begun(&[]);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        let record = Node::new("n".repeat(64), ClockDomain::default()).record();
        let mut written = 0;
        while marks(appender.timeline()).0 == 0 {
            appender.node(&record);
            written += usize::from(appender.stamp(Stage::Receive, 0, at(1)).is_some());
        }
        assert_eq!(written, (MAX_OCTETS - HEADER_OCTETS) / (record.len() + STAMP_OCTETS));
        assert_eq!(out.len(), HEADER_OCTETS + written * (record.len() + STAMP_OCTETS));
    }

    #[test]
    fn the_last_octet_can_be_used() {
        for (octets_left, fits) in [(STAMP_OCTETS, true), (STAMP_OCTETS - 1, false)] {
            let mut out = begun(&[]);
            let mut appender = Appender::new(&mut out, 0).unwrap();
            while appender.timeline().len() + octets_left < MAX_OCTETS {
                let room = MAX_OCTETS - octets_left - appender.timeline().len();
                // Never leaves one octet, which no record fits into.
                let record = if room > 257 { 200 } else { room };
                appender.reserved(0x81, &vec![0; record - 2]);
            }
            assert_eq!(appender.stamp(Stage::Send, 0, at(1)).is_some(), fits);
            assert_eq!(out.len() == MAX_OCTETS, fits);
        }
    }

    #[test]
    fn no_stamp_follows_a_node_that_did_not_fit() {
        let mut out = begun(&[]);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&node_record());
        while appender.timeline().len() + 60 < MAX_OCTETS {
            appender.reserved(0xff, &[0; 8]);
        }
        let big = Node::new("n".repeat(64), ClockDomain::default()).record();
        appender.node(&big);
        assert_eq!(marks(appender.timeline()), (OVERFLOW, 0));
        let end = appender.timeline().len();
        assert_eq!(appender.stamp(Stage::Receive, 0, at(1)), None, "would be of the wrong clock");
        appender.node(&node_record());
        assert_eq!(Appender::new(&mut out, 0).unwrap().stamp(Stage::Send, 0, at(1)), None);
        assert_eq!((out.len(), marks(&out)), (end, (OVERFLOW, 2)));
    }

    #[test]
    fn only_a_node_record_is_taken_for_one() {
        for odd in [&[][..], &[0x80], &[0x80, 1], &[0x80, 1, 2, 3], &[0x81, 0]] {
            let mut out = begun(&[]);
            Appender::new(&mut out, 0).unwrap().node(odd);
            assert_eq!((out.len(), marks(&out)), (HEADER_OCTETS, (OVERFLOW, 0)), "{odd:02x?}");
        }
    }

    #[test]
    fn the_count_of_dropped_stamps_stops_at_its_greatest_value() {
        let mut out = begun(&[]);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&[0x81, 0]);
        for _ in 0..70_000 {
            assert_eq!(appender.stamp(Stage::Send, 0, at(1)), None);
        }
        assert_eq!(marks(&out), (OVERFLOW, u16::MAX));
    }

    #[test]
    fn octets_that_make_no_sense_are_appended_to_all_the_same() {
        let mut out = begun(&[]);
        out.resize(3_000, 0);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        assert!(appender.stamp(Stage::Send, 0, at(1)).is_some());
        out.resize(10_000, 0x7f);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        assert_eq!(appender.stamp(Stage::Send, 0, at(1)), None);
        assert_eq!((out.len(), marks(&out)), (10_000, (OVERFLOW, 1)));
    }
}
