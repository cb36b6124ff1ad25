//! Timelines on messages that fe2o3-amqp's own types encode and decode.

#![allow(clippy::unwrap_used, reason = "a test reports by panicking")]

use fe2o3_amqp_types::messaging::MessageAnnotations;
use fe2o3_amqp_types::messaging::annotations::OwnedKey;
use fe2o3_amqp_types::primitives::Value;
use hopline_timeline::{
    ANNOTATION, ClockDomain, Instant, Node, Stage, Timeline, TimelineId, fe2o3,
};

const ID: TimelineId = TimelineId([7; 16]);

fn node(name: &str) -> Node {
    Node::new(name, ClockDomain { host: [1; 16], ..ClockDomain::default() })
}

fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

/// Over the wire and back.
fn transferred(annotations: &MessageAnnotations) -> MessageAnnotations {
    let octets = serde_amqp::to_vec(annotations).unwrap();
    serde_amqp::from_slice(&octets).unwrap()
}

#[test]
fn a_message_is_stamped_by_sender_and_receiver() {
    let mut sent = MessageAnnotations::default();
    sent.insert(OwnedKey::from("x-opt-other"), Value::Bool(true));
    fe2o3::put(&mut sent, ID);
    let sender = node("sender").record();
    fe2o3::append(&mut sent, &sender, |timeline| timeline.stamp(Stage::Create, 0, at(1)));
    fe2o3::append(&mut sent, &sender, |timeline| timeline.stamp(Stage::Send, 0, at(2)));

    let mut received = transferred(&sent);
    let receiver = node("receiver").record();
    let slot = fe2o3::append(&mut received, &receiver, |timeline| {
        timeline.stamp(Stage::Receive, 0, at(9))
    });
    assert!(slot.flatten().is_some());

    let timeline = Timeline::parse(fe2o3::get(&transferred(&received)).unwrap()).unwrap();
    assert_eq!(timeline.id, ID);
    assert_eq!(timeline.nodes, [node("sender"), node("receiver")], "one record each");
    let hop = timeline.hops().next().unwrap();
    assert_eq!(timeline.delay_ns(hop.from, hop.to), Some(7));
    assert_eq!(received.len(), 2, "the other annotation stays");
}

#[test]
fn a_node_that_comes_back_writes_its_record_again() {
    let mut annotations = MessageAnnotations::default();
    fe2o3::put(&mut annotations, ID);
    for name in ["a", "b", "a"] {
        fe2o3::append(&mut annotations, &node(name).record(), |timeline| {
            timeline.stamp(Stage::Send, 0, at(1));
        });
    }
    let timeline = Timeline::parse(fe2o3::get(&annotations).unwrap()).unwrap();
    assert_eq!(timeline.nodes, ["a", "b", "a"].map(node));
}

#[test]
fn put_begins_anew() {
    let mut annotations = MessageAnnotations::default();
    fe2o3::put(&mut annotations, ID);
    fe2o3::append(&mut annotations, &node("a").record(), |_| ()).unwrap();
    fe2o3::put(&mut annotations, TimelineId([8; 16]));
    let timeline = Timeline::parse(fe2o3::get(&annotations).unwrap()).unwrap();
    assert_eq!((timeline.id, timeline.nodes.len()), (TimelineId([8; 16]), 0));
}

#[test]
fn a_message_without_a_timeline_is_left_alone() {
    let not_timelines = [
        None,
        Some(Value::Bool(true)),
        Some(Value::String("timeline".into())),
        Some(Value::Binary(Vec::new().into())),
        Some(Value::Binary(vec![2; 40].into())),
    ];
    for value in not_timelines {
        let mut annotations = MessageAnnotations::default();
        if let Some(value) = value {
            annotations.insert(OwnedKey::from(ANNOTATION), value);
        }
        let before = annotations.clone();
        let called = fe2o3::append(&mut annotations, &node("a").record(), |_| ());
        assert_eq!(called, None);
        assert_eq!(annotations, before);
        assert!(fe2o3::get(&annotations).is_none_or(|octets| Timeline::parse(octets).is_err()));
    }
}
