//! Records, on their way into a report.

use std::hint::black_box;
use std::io::sink;

use hopline_report::Options;
use hopline_timeline::record::{MessageInfo, MessageRecord, Record};
use hopline_timeline::{ClockDomain, Instant, Node, Stage, Stamp, Timeline, TimelineId};

use super::RECORDS;

/// A message of a publisher, a broker and a subscriber, as a line.
fn line(seq: u64) -> Vec<u8> {
    let mut id = [9; 16];
    id[..8].copy_from_slice(&seq.to_be_bytes());
    let stages = [
        (0, Stage::Create),
        (0, Stage::Publish),
        (0, Stage::Serialize),
        (0, Stage::Send),
        (1, Stage::Receive),
        (1, Stage::Deserialize),
        (1, Stage::Enqueue),
        (1, Stage::Dequeue),
        (1, Stage::Republish),
        (1, Stage::Serialize),
        (1, Stage::Send),
        (2, Stage::Receive),
        (2, Stage::Deserialize),
        (2, Stage::QueueEvent),
        (2, Stage::NextEvent),
    ];
    let stamps = (1_i64..).zip(stages).map(|(n, (node, stage))| Stamp {
        node,
        stage: stage.code(),
        detail: 0,
        at: Some(Instant::from_nanos(10_000_000 * seq as i64 + 5_000 * n)),
    });
    let nodes = ["publisher", "broker", "subscriber"];
    let clock = ClockDomain { host: [7; 16], ..ClockDomain::default() };
    let timeline = Timeline {
        id: TimelineId(id),
        nodes: nodes.map(|name| Node::new(name, clock)).into(),
        stamps: stamps.collect(),
        ..Timeline::default()
    };
    let info = MessageInfo { seq, address: "q".into(), octets: 389, ..MessageInfo::default() };
    let mut line = Vec::new();
    let record = Record::Message(MessageRecord::new(info, &timeline));
    record.write_line(&mut line).expect("a line");
    line
}

/// A record from its line.
pub(super) struct Parse(Vec<u8>);

impl Parse {
    /// One with fifteen stamps.
    pub(super) fn new() -> Self {
        Self(line(1))
    }

    /// Parses it once.
    pub(super) fn run(&mut self) {
        black_box(Record::parse_line(black_box(&self.0)).expect("a record"));
    }
}

/// A report of many records.
pub(super) struct Report(Vec<u8>);

impl Report {
    /// The records.
    pub(super) fn new() -> Self {
        Self((0..u64::from(RECORDS)).flat_map(line).collect())
    }

    /// Reads and reports them once.
    pub(super) fn run(&mut self) {
        let options = Options::default();
        black_box(
            hopline_report::run(&options, black_box(&self.0[..]), &mut sink(), sink())
                .expect("a report"),
        );
    }
}
