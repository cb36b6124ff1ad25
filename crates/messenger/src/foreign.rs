//! Stamps that brokers of other makes leave among a message's annotations. They are of the wall
//! clock of a host that says nothing about how right it is, and most are of whole milliseconds.

use hopline_driver::engine::wire::Value;
use hopline_driver::engine::wire::codec::{Decode, Reader};
use hopline_driver::timeline::{Appender, ClockDomain, ClockKind, Instant, Node, Stage};

/// Under which name which stamp is found, and ns per unit of its value.
const STAMPS: [(&str, Stage, i64); 5] = [
    ("x-opt-ingress-time", Stage::ForeignIngress, 1_000_000),
    ("x-opt-ingress-timestamp", Stage::ForeignIngress, 1),
    ("x-opt-rabbitmq-received-time", Stage::ForeignIngress, 1_000_000),
    ("x-opt-enqueued-time", Stage::ForeignIngress, 1_000_000),
    ("x-opt-rabbitmq-sent-time", Stage::ForeignSent, 1_000_000),
];

/// A stage, and the wall-clock time.
pub(crate) type Stamp = (Stage, Instant);

/// The name of a node of which nothing else is known.
const NAME: &str = "broker of another make";

/// The stamp that an annotation stands for; `None` if it is none, or nothing that can be a time.
pub(crate) fn stamp(name: &[u8], value: &[u8]) -> Option<Stamp> {
    let (_, stage, unit_ns) = STAMPS.iter().find(|(known, ..)| known.as_bytes() == name)?;
    let units = match Value::decode(&mut Reader::new(value)).ok()? {
        Value::Timestamp(at) | Value::Long(at) => at,
        Value::Ulong(at) => i64::try_from(at).ok()?,
        _ => return None,
    };
    // The least instant stands for one that was not filled in.
    let at = units.checked_mul(*unit_ns).filter(|ns| *ns > i64::MIN)?;
    Some((*stage, Instant::from_nanos(at)))
}

/// Appends them to a timeline, as those of a node of their own.
pub(crate) fn append(stamps: &mut Appender<'_>, found: &[Stamp]) {
    if found.is_empty() {
        return;
    }
    let clock = ClockDomain {
        kind: ClockKind::Realtime,
        host: ClockDomain::UNKNOWN_HOST,
        wall_offset_ns: 0,
        error_bound_ns: ClockDomain::UNSYNCHRONISED,
    };
    stamps.node(&Node::new(NAME, clock).record());
    for (stage, at) in found {
        stamps.stamp(*stage, 0, *at);
    }
}
