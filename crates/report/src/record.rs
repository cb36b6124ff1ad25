//! Reads a line as a record, the commonest kind without a detour.

use hopline_timeline::record::{MessageRecord, NodeRecord, Record, Schema, StampRecord};
use hopline_timeline::{Instant, Stage, TimelineError, TimelineId, Wait};

/// Reads lines, one after the other.
///
/// A line says what [`Record::parse_line`] says. Messages as `hopline-subscribe` writes them are
/// read octet by octet: a record costs its length, and nodes that are those of the message before
/// are only compared. What is written in any other way takes the long one.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The text of the last message's nodes, and what it says.
    nodes_text: String,
    nodes: Vec<NodeRecord>,
}

impl Reader {
    pub(crate) fn read(&mut self, line: &[u8]) -> Result<Record, TimelineError> {
        let text = std::str::from_utf8(line).ok();
        match text.and_then(|text| self.message(&mut Scan { rest: text })) {
            Some(message) => Ok(Record::Message(message)),
            None => Record::parse_line(line),
        }
    }

    /// `None` where anything isn't as it is written by default, wrong or not.
    fn message(&mut self, scan: &mut Scan<'_>) -> Option<MessageRecord> {
        scan.skip(r#"{"hopline":"message","schema":1,"seq":"#)?;
        let seq = scan.number()?;
        scan.skip(r#","id":"#)?;
        let TimelineId(id) = scan.string()?.parse().ok()?;
        scan.skip(r#","address":"#)?;
        let address = scan.string()?.to_owned();
        scan.skip(r#","octets":"#)?;
        let octets = scan.number()?;
        scan.skip(r#","message_id":"#)?;
        let message_id = scan.optional(|scan| scan.string().map(str::to_owned))?;
        scan.skip(r#","redelivered":"#)?;
        let redelivered = scan.boolean()?;
        scan.skip(r#","overflow":"#)?;
        let overflow = scan.boolean()?;
        scan.skip(r#","dropped":"#)?;
        let dropped = scan.number()?;
        scan.skip(r#","nodes":"#)?;
        let nodes = self.nodes(scan)?;
        scan.skip(r#","stamps":["#)?;
        let stamps = stamps(scan)?;
        (scan.rest == "}").then_some(MessageRecord {
            schema: Schema,
            seq,
            id,
            address,
            octets,
            message_id,
            redelivered,
            overflow,
            dropped,
            nodes,
            stamps,
        })
    }

    fn nodes(&mut self, scan: &mut Scan<'_>) -> Option<Vec<NodeRecord>> {
        if self.nodes_text.is_empty() || scan.skip(&self.nodes_text).is_none() {
            let mut values = serde_json::Deserializer::from_str(scan.rest).into_iter();
            self.nodes = values.next()?.ok()?;
            let (text, rest) = scan.rest.split_at_checked(values.byte_offset())?;
            text.clone_into(&mut self.nodes_text);
            scan.rest = rest;
        }
        Some(self.nodes.clone())
    }
}

fn stamps(scan: &mut Scan<'_>) -> Option<Vec<StampRecord>> {
    // What is left bounds how many there can be.
    const LEAST_OCTETS: usize = r#"{"node":0,"stage":"DUE","at_ns":"0"}"#.len();
    let mut stamps = Vec::with_capacity(scan.rest.len() / LEAST_OCTETS);
    if scan.skip("]").is_some() {
        return Some(stamps);
    }
    loop {
        stamps.push(stamp(scan)?);
        if scan.skip(",").is_none() {
            return scan.skip("]").map(|()| stamps);
        }
    }
}

fn stamp(scan: &mut Scan<'_>) -> Option<StampRecord> {
    scan.skip(r#"{"node":"#)?;
    let node = scan.number()?;
    scan.skip(r#","stage":"#)?;
    let stage = Stage::code_of(scan.string()?)?;
    scan.skip(r#","at_ns":"#)?;
    let at = scan.optional(Scan::quoted_number)?.map(Instant::from_nanos);
    let at = at.filter(|at| *at != Instant::UNFILLED);
    let wait = match scan.skip(r#","wait":"#) {
        Some(()) => Wait::from_name(scan.string()?),
        None => None,
    };
    let detail = match scan.skip(r#","detail":"#) {
        Some(()) => scan.number()?,
        None => 0,
    };
    scan.skip("}")?;
    Some(StampRecord { node, stage, at, wait, detail })
}

/// What is left of a line. Where a method gives `None`, the rest has no meaning.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn skip(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// An integer of at least 0, as JSON has it: without zeros before it.
    fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        let digits = self.digits()?;
        T::try_from(digits).ok()
    }

    /// A signed integer in quotes.
    fn quoted_number(&mut self) -> Option<i64> {
        self.skip("\"")?;
        let is_negative = self.skip("-").is_some();
        let digits = i64::try_from(self.digits()?).ok()?;
        self.skip("\"")?;
        Some(if is_negative { -digits } else { digits })
    }

    fn digits(&mut self) -> Option<u64> {
        let mut value: u64 = 0;
        let mut length = 0;
        for octet in self.rest.bytes().take_while(u8::is_ascii_digit) {
            value = value.checked_mul(10)?.checked_add(u64::from(octet - b'0'))?;
            length += 1;
        }
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let is_plain = length == 1 || length > 1 && !digits.starts_with('0');
        is_plain.then_some(value)
    }

    /// Text without escapes and control characters, which JSON would have to escape.
    fn string(&mut self) -> Option<&'a str> {
        self.skip("\"")?;
        let ends = |octet: &u8| matches!(octet, b'"' | b'\\' | 0..0x20);
        let length = self.rest.as_bytes().iter().position(ends)?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        self.skip("\"")?;
        Some(text)
    }

    fn boolean(&mut self) -> Option<bool> {
        let is_true = self.skip("true").is_some();
        if is_true || self.skip("false").is_some() { Some(is_true) } else { None }
    }

    fn optional<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.skip("null").is_some() { Some(None) } else { read(self).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_timeline::record::MessageInfo;
    use hopline_timeline::{ClockDomain, Node, Stamp, Timeline};
    use proptest::prelude::*;

    const ODD: &str = include_str!("../tests/data/odd.jsonl");
    const CHAIN: &str = include_str!("../tests/data/chain.jsonl");

    fn is_quick(line: &str) -> bool {
        Reader::default().message(&mut Scan { rest: line }).is_some()
    }

    fn agrees(reader: &mut Reader, line: &[u8]) {
        let want = Record::parse_line(line);
        assert_eq!(reader.read(line), want, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn both_ways_of_reading_agree() {
        let mut reader = Reader::default();
        ODD.lines().chain(CHAIN.lines()).for_each(|line| agrees(&mut reader, line.as_bytes()));
        let messages: Vec<&str> =
            CHAIN.lines().filter(|line| line.starts_with(r#"{"hopline":"message""#)).collect();
        assert!(!messages.is_empty() && messages.iter().all(|line| is_quick(line)));
    }

    #[test]
    fn both_agree_on_lines_that_are_cut_or_have_an_octet_changed() {
        let mut reader = Reader::default();
        let line = CHAIN.lines().find(|line| is_quick(line)).unwrap().as_bytes();
        for at in 0..line.len() {
            agrees(&mut reader, &line[..at]);
            for octet in [b'0', b'-', b'"', b'\\', b' ', b'\n', 0, 0xff, b'}'] {
                let mut changed = line.to_vec();
                changed[at] = octet;
                agrees(&mut reader, &changed);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_on_the_short_way(
            (id, seq, octets) in any::<([u8; 16], u64, u64)>(),
            message_id in prop::option::of("[a-zA-Z\u{fc}0-9 ]*"),
            stamps in prop::collection::vec(any::<(u8, u8, Option<i64>)>(), 0..20),
        ) {
            let nodes = vec![Node::new("n\u{f6}de", ClockDomain::default())];
            let stamp = |(stage, detail, at): (u8, u8, Option<i64>)| {
                let at = at.map(Instant::from_nanos).filter(|at| *at != Instant::UNFILLED);
                Stamp { node: 0, stage, detail, at }
            };
            let stamps = stamps.into_iter().map(stamp).collect();
            let timeline = Timeline { id: TimelineId(id), nodes, stamps, ..Timeline::default() };
            let address = "q".to_owned();
            let info = MessageInfo { seq, address, octets, message_id, redelivered: true };
            let record = Record::Message(MessageRecord::new(info, &timeline));
            let mut line = Vec::new();
            record.write_line(&mut line).unwrap();
            line.pop();
            prop_assert!(is_quick(std::str::from_utf8(&line).unwrap()));
            prop_assert_eq!(Reader::default().read(&line), Ok(record));
        }
    }
}
