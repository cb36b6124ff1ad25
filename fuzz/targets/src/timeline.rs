//! Octets that came as a timeline: read, written again, appended to.

use crate::input::Input;
use crate::memory;
use hopline_timeline::record::{MessageInfo, MessageRecord, Record};
use hopline_timeline::{
    Appender, ClockDomain, Instant, MAX_OCTETS, MAX_STAMPS, Node, Stage, Timeline,
};

/// Octets that stand in the buffer before the timeline.
const BEFORE: &[u8] = b"sections before";

/// One octet says how many stamps a node appends; the rest is the timeline.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let appended = usize::from(input.octet());
    let octets = input.take(usize::MAX);
    let parsed = memory::in_proportion(octets.len(), 16, 1024, || Timeline::parse(octets));
    if let Ok(timeline) = &parsed {
        read(timeline);
        comes_back(timeline);
    }
    append(octets, parsed.ok(), appended);
}

fn read(timeline: &Timeline) {
    timeline.readings().for_each(drop);
    for span in timeline.hops().chain(timeline.stays()) {
        let _ = timeline.delay(span.from, span.to);
    }
    let record = Record::Message(MessageRecord::new(MessageInfo::default(), timeline));
    let mut line = Vec::new();
    record.write_line(&mut line).expect("a timeline within its limits fits in a line");
    assert_eq!(Record::parse_line(&line).as_ref(), Ok(&record));
}

/// A header may count dropped stamps without the flag that says so; it is set as it is written.
/// Names that are no UTF-8 are longer as they are read: what finds no room behind them is dropped,
/// and the header says so.
fn comes_back(timeline: &Timeline) {
    let marked = timeline.overflow || timeline.dropped > 0;
    let again = Timeline::parse(&timeline.encode()).expect("what was written can be read");
    let is_mended = timeline.nodes.iter().any(|node| node.name.contains('\u{fffd}'));
    if is_mended && again.stamps.len() < timeline.stamps.len() {
        assert!(again.overflow && again.dropped > timeline.dropped.saturating_sub(1));
        assert!(timeline.stamps.starts_with(&again.stamps));
        return;
    }
    assert_eq!(again, Timeline { overflow: marked, ..timeline.clone() });
}

/// The octets before keep theirs, but for the marks in the header; what could be read can be still.
fn append(octets: &[u8], parsed: Option<Timeline>, stamps: usize) {
    let mut out = [BEFORE, octets].concat();
    let Some(mut appender) = Appender::new(&mut out, BEFORE.len()) else {
        assert!(parsed.is_none(), "what is read can be appended to");
        return;
    };
    appender.node(&node().record());
    let written = (0..stamps).filter_map(|n| {
        let at = Instant::from_nanos(n as i64);
        appender.stamp(Stage::Send, n as u8, at)
    });
    let written = written.count();
    assert!(out.starts_with(BEFORE));
    let after = &out[BEFORE.len()..];
    assert!(after.len() <= octets.len().max(MAX_OCTETS));
    assert!(after[0] == octets[0] && after[4..].starts_with(&octets[4..]));
    let Some(before) = parsed else { return };
    let after = Timeline::parse(after).expect("it could be read before");
    assert_eq!(after.stamps.len(), before.stamps.len() + written);
    assert!(after.stamps.starts_with(&before.stamps) && after.stamps.len() <= MAX_STAMPS);
    let missing = usize::from(before.dropped) + stamps - written;
    assert_eq!(usize::from(after.dropped), missing.min(u16::MAX.into()));
}

fn node() -> Node {
    Node::new("node", ClockDomain { host: [1; 16], ..ClockDomain::default() })
}
