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
        let is_node = record.first() == Some(&NODE_TYPE);
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
