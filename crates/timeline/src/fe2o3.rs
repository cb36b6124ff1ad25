//! Timelines on the messages of an application that uses fe2o3-amqp (feature `fe2o3`).
//!
//! The sender begins a timeline with [`put`] and stamps it with [`append`]; the receiver may append
//! its own stamps and reads all of them with [`get`]. SEND is stamped as the last thing before
//! the message is handed to fe2o3-amqp, since the write itself is out of reach: what the message
//! waits inside the library counts to the hop.
//!
//! ```
//! use fe2o3_amqp_types::messaging::MessageAnnotations;
//! use hopline_timeline::{ClockDomain, Instant, Node, Stage, Timeline, TimelineId, fe2o3};
//!
//! # fn monotonic_now() -> Instant { Instant::from_nanos(5_000) }
//! let node = Node::new("billing", ClockDomain::default()).record();
//! let mut annotations = MessageAnnotations::default();
//! fe2o3::put(&mut annotations, TimelineId([7; 16]));
//! fe2o3::append(&mut annotations, &node, |timeline| {
//!     timeline.stamp(Stage::Send, 0, monotonic_now());
//! });
//!
//! let octets = fe2o3::get(&annotations).expect("just put there");
//! assert_eq!(Timeline::parse(octets)?.stamps.len(), 1);
//! # Ok::<(), hopline_timeline::TimelineError>(())
//! ```

use fe2o3_amqp_types::messaging::MessageAnnotations;
use fe2o3_amqp_types::messaging::annotations::{AnnotationKey, OwnedKey};
use fe2o3_amqp_types::primitives::{Binary, Value};

use crate::scan::last_node;
use crate::{ANNOTATION, Appender, TimelineId, new_timeline};

/// The timeline that a message carries, for [`Timeline::parse`](crate::Timeline::parse); `None` if
/// there is none, or if the annotation is no `binary`.
pub fn get(annotations: &MessageAnnotations) -> Option<&[u8]> {
    match annotations.get(&ANNOTATION as &dyn AnnotationKey) {
        Some(Value::Binary(octets)) => Some(octets),
        _ => None,
    }
}

/// Begins a timeline without stamps, in place of any that is there.
pub fn put(annotations: &mut MessageAnnotations, id: TimelineId) {
    let mut octets = Vec::new();
    new_timeline(id, &mut octets);
    annotations.insert(OwnedKey::from(ANNOTATION), Value::Binary(Binary::from(octets)));
}

/// Appends what `stamps` stamps, behind the record that [`Node::record`](crate::Node::record) made
/// unless that is the last node's already.
///
/// Returns what `stamps` returns; `None`, without a call, if the message carries no timeline that
/// can be appended to.
pub fn append<R>(
    annotations: &mut MessageAnnotations,
    node_record: &[u8],
    stamps: impl FnOnce(&mut Appender<'_>) -> R,
) -> Option<R> {
    let octets = match annotations.get_mut(&ANNOTATION as &dyn AnnotationKey) {
        Some(Value::Binary(octets)) => octets,
        _ => return None,
    };
    let is_known = last_node(octets).is_some_and(|content| node_record.get(2..) == Some(content));
    let mut appender = Appender::new(octets, 0)?;
    if !is_known {
        appender.node(node_record);
    }
    Some(stamps(&mut appender))
}
