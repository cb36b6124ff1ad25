//! What is sent, and what is read of what came.

use bytes::Bytes;
use hopline_driver::engine::Delivery;
use hopline_driver::engine::wire::codec::Encode;
use hopline_driver::engine::wire::message::{Header, Message};
use hopline_driver::engine::wire::{DeliveryState, Fields, Symbol, Value};
use hopline_driver::timeline::{
    ANNOTATION, Appender, ClockDomain, Instant, Node, Stage, Stamp, Timeline, TimelineId, Wait,
};

/// A message with this text as its body.
pub fn text(body: impl Into<String>) -> Message {
    Message::data(body.into().into_bytes())
}

/// A message with this time to live.
pub fn with_ttl(body: &str, ttl: u32) -> Message {
    Message { header: Header { ttl: Some(ttl), ..Header::default() }, ..text(body) }
}

/// A message with this under the timeline's name.
pub fn annotated(body: &str, value: Value) -> Message {
    let fields = Fields(vec![(Symbol::from_static(ANNOTATION), value)]);
    Message { message_annotations: fields, ..text(body) }
}

pub fn encoded(message: &Message) -> Bytes {
    let mut out = Vec::new();
    message.encode(&mut out);
    out.into()
}

pub fn decoded(delivery: &Delivery) -> Message {
    Message::decode(&delivery.payload).expect("the broker forwards whole messages")
}

/// The body as text.
pub fn body(delivery: &Delivery) -> String {
    let octets = decoded(delivery).octets().expect("a data body");
    String::from_utf8(octets.to_vec()).expect("text")
}

/// The condition of a rejection.
pub fn condition_of(state: &DeliveryState) -> String {
    match state {
        DeliveryState::Rejected(rejected) => {
            rejected.error.as_ref().expect("a reason").condition.to_string()
        }
        other => panic!("not rejected: {other:?}"),
    }
}

/// A timeline as a publisher begins it.
pub fn begun() -> Vec<u8> {
    let mut out = Vec::new();
    hopline_driver::timeline::new_timeline(TimelineId([7; 16]), &mut out);
    let mut appender = Appender::new(&mut out, 0).expect("just begun");
    appender.node(&Node::new("publisher", ClockDomain::default()).record());
    appender.stamp(Stage::Create, 0, Instant::from_nanos(1));
    appender.stamp(Stage::Send, 0, Instant::from_nanos(2));
    out
}

/// A message that carries [`begun`].
pub fn timed(body: &str) -> Message {
    annotated(body, Value::Binary(begun().into()))
}

/// The timeline's octets, if there is one.
pub fn timeline_octets(delivery: &Delivery) -> Option<Bytes> {
    match decoded(delivery).message_annotations.get(ANNOTATION)? {
        Value::Binary(octets) => Some(octets.clone()),
        _ => None,
    }
}

pub fn timeline(delivery: &Delivery) -> Timeline {
    Timeline::parse(&timeline_octets(delivery).expect("a timeline")).expect("a good one")
}

/// The stamps of the last node.
pub fn last_hop(timeline: &Timeline) -> Vec<Stamp> {
    let last = timeline.nodes.len() - 1;
    timeline.stamps.iter().copied().filter(|stamp| stamp.node == last).collect()
}

/// What it waited for in the last node.
pub fn wait(delivery: &Delivery) -> Wait {
    let stamps = last_hop(&timeline(delivery));
    let dequeue = stamps.iter().find(|stamp| stamp.known_stage() == Some(Stage::Dequeue));
    dequeue.and_then(Stamp::wait).expect("a DEQUEUE stamp")
}
