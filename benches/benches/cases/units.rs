//! Single steps on the way of a message.

use std::hint::black_box;

use hopline_broker::simulation::peer::wire::DeliveryTag;
use hopline_broker::simulation::peer::wire::codec::Encode;
use hopline_broker::simulation::peer::wire::frame::{FrameHeader, HEADER, finish};
use hopline_broker::simulation::peer::wire::message::{Body, Layout, Message, Properties};
use hopline_broker::simulation::peer::wire::performative::Transfer;
use hopline_timeline::{Appender, ClockDomain, Instant, Node, Stage, TimelineId, new_timeline};

/// Octets of a descriptor.
const DESCRIPTOR: usize = 3;

/// The header and the transfer of a frame.
pub(super) struct Decode(Vec<u8>);

impl Decode {
    /// A transfer as most are.
    pub(super) fn new() -> Self {
        let mut frame = Vec::new();
        let tag = DeliveryTag::from(71_000);
        assert!(Transfer::put_plain(&mut frame, (0, 0), 71_000, &tag, false));
        finish(&mut frame, 0, 0);
        Self(frame)
    }

    /// Decodes it once.
    pub(super) fn run(&mut self) {
        let frame = black_box(&self.0[..]);
        let header = FrameHeader::parse(frame, 65_536).expect("a header");
        let fields = Transfer::decode_plain(&frame[HEADER + DESCRIPTOR..]).expect("a transfer");
        black_box((header, fields));
    }
}

/// The sections of a message.
pub(super) struct Scan(Vec<u8>);

impl Scan {
    /// A message with properties and a body of 100 octets.
    pub(super) fn new() -> Self {
        let message = Message {
            properties: Properties { subject: Some("news".into()), ..Properties::default() },
            body: Body::Data(vec![vec![b'.'; 100].into()]),
            ..Message::default()
        };
        let mut octets = Vec::new();
        message.encode(&mut octets);
        Self(octets)
    }

    /// Finds them once.
    pub(super) fn run(&mut self) {
        black_box(Layout::scan(black_box(&self.0)).expect("a message"));
    }
}

/// The stamps of one node for one message.
pub(super) struct Stamps {
    carried: Vec<u8>,
    node: Vec<u8>,
    out: Vec<u8>,
}

impl Stamps {
    /// A timeline of another node, and the record of this one.
    pub(super) fn new() -> Self {
        let node = Node::new("broker", ClockDomain::default()).record();
        let mut carried = Vec::new();
        new_timeline(TimelineId([7; 16]), &mut carried);
        Self { out: Vec::with_capacity(512), node, carried }
    }

    /// Takes the timeline over and stamps it seven times, as a broker does.
    pub(super) fn run(&mut self) {
        self.out.clear();
        self.out.extend_from_slice(black_box(&self.carried));
        let mut stamps = Appender::new(&mut self.out, 0).expect("a timeline");
        stamps.node(&self.node);
        for stage in [
            Stage::Receive,
            Stage::Deserialize,
            Stage::Enqueue,
            Stage::Dequeue,
            Stage::Republish,
            Stage::Serialize,
            Stage::Send,
        ] {
            black_box(stamps.stamp(stage, 0, Instant::from_nanos(1_000)));
        }
        black_box(&self.out);
    }
}
