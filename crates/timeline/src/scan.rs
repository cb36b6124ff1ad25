use crate::append::{HEADER_OCTETS, OVERFLOW, VERSION};
use crate::node::NODE_TYPE;
use crate::{Instant, TimelineError, TimelineId};

/// A timeline's first 20 octets.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Header {
    pub(crate) overflow: bool,
    pub(crate) dropped: u16,
    pub(crate) id: TimelineId,
}

impl Header {
    /// The header, and the records after it.
    pub(crate) fn split(octets: &[u8]) -> Result<(Header, Records<'_>), TimelineError> {
        // The version comes first: the length of another version's header is not known.
        match octets.first() {
            Some(&VERSION) | None => {}
            Some(&other) => return Err(TimelineError::Version(other)),
        }
        let too_short = TimelineError::TooShort { octets: octets.len() };
        let (first, rest) = octets.split_first_chunk::<4>().ok_or(too_short.clone())?;
        let (id, rest) = rest.split_first_chunk::<16>().ok_or(too_short)?;
        let [_version, flags, high, low] = *first;
        let overflow = flags & OVERFLOW != 0;
        let dropped = u16::from_be_bytes([high, low]);
        let header = Header { overflow, dropped, id: TimelineId(*id) };
        Ok((header, Records { rest, offset: HEADER_OCTETS }))
    }
}

/// One record as it lies in the octets.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum RawRecord<'a> {
    Stamp { code: u8, detail: u8, at: Instant },
    Node { content: &'a [u8] },
    Reserved { kind: u8, content: &'a [u8] },
}

/// Walks over the records of a timeline; ends after the first error.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Records<'a> {
    /// Where the record begins in the timeline, and the record.
    type Item = Result<(usize, RawRecord<'a>), TimelineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.rest.split_first()?;
        let offset = self.offset;
        if kind == 0 {
            self.rest = &[];
            return Some(Err(TimelineError::RecordType { offset }));
        }
        let split =
            if kind < NODE_TYPE { split_stamp(kind, rest) } else { split_sized(kind, rest) };
        let Some((record, rest)) = split else {
            self.rest = &[];
            return Some(Err(TimelineError::Truncated { offset }));
        };
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        Some(Ok((offset, record)))
    }
}

fn split_stamp(code: u8, rest: &[u8]) -> Option<(RawRecord<'_>, &[u8])> {
    let (&detail, rest) = rest.split_first()?;
    let (instant, rest) = rest.split_first_chunk()?;
    let at = Instant::from_nanos(i64::from_be_bytes(*instant));
    Some((RawRecord::Stamp { code, detail, at }, rest))
}

fn split_sized(kind: u8, rest: &[u8]) -> Option<(RawRecord<'_>, &[u8])> {
    let (&length, rest) = rest.split_first()?;
    let (content, rest) = rest.split_at_checked(length.into())?;
    let record = match kind {
        NODE_TYPE => RawRecord::Node { content },
        _ => RawRecord::Reserved { kind, content },
    };
    Some((record, rest))
}

/// How many stamps a timeline holds, up to the first octet that cannot be read.
pub(crate) fn count_stamps(octets: &[u8]) -> usize {
    let Ok((_, records)) = Header::split(octets) else { return 0 };
    let is_stamp = |record: &Result<_, _>| matches!(record, Ok((_, RawRecord::Stamp { .. })));
    records.filter(is_stamp).count()
}

/// What follows the length octet of the last node record before the first octet that cannot be
/// read.
pub(crate) fn last_node(octets: &[u8]) -> Option<&[u8]> {
    let (_, records) = Header::split(octets).ok()?;
    let nodes = records.filter_map(|record| match record {
        Ok((_, RawRecord::Node { content })) => Some(content),
        _ => None,
    });
    nodes.last()
}
