//! Stamps that brokers of other makes leave among the annotations.

use crate::common::{builder, listening};
use hopline_messenger::timeline::{ClockKind, Stage};
use hopline_messenger::{Message, Messenger, Symbol, Value};

/// What the receiver makes of one annotation.
async fn read(
    (sender, receiver, url): (&Messenger, &Messenger, &str),
    name: &'static str,
    value: Value,
) -> Vec<(Stage, i64)> {
    let mut message = Message::data("x");
    message.message_annotations.0.push((Symbol::from_static(name), value));
    sender.put(url, message).unwrap();
    let received = receiver.next().await.unwrap();
    receiver.accept(&received).unwrap();
    let timeline = received.timeline().unwrap();
    let foreign = timeline.stamps.iter().filter_map(|stamp| {
        let node = &timeline.nodes[stamp.node];
        let is_foreign = node.name == "broker of another make";
        assert_eq!(is_foreign, node.clock.kind == ClockKind::Realtime);
        is_foreign.then(|| (stamp.known_stage().unwrap(), stamp.at.unwrap().as_nanos()))
    });
    let foreign = foreign.collect();
    let hops: Vec<_> = timeline.hops().collect();
    assert_eq!(hops.len(), 1, "the hop is still there");
    foreign
}

#[tokio::test]
async fn they_are_read_in_their_units_and_nonsense_is_passed_over() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let ends = (&sender, &receiver, url.as_str());
    let (ms, ns) = (1_764_547_200_123, 1_764_547_200_123_456_789);
    use Stage::{ForeignIngress, ForeignSent};
    let cases = [
        ("x-opt-ingress-time", Value::Timestamp(ms), Some((ForeignIngress, ms * 1_000_000))),
        ("x-opt-ingress-time", Value::Long(-1), Some((ForeignIngress, -1_000_000))),
        ("x-opt-ingress-timestamp", Value::Long(ns), Some((ForeignIngress, ns))),
        ("x-opt-rabbitmq-received-time", Value::Ulong(1), Some((ForeignIngress, 1_000_000))),
        ("x-opt-enqueued-time", Value::Timestamp(0), Some((ForeignIngress, 0))),
        ("x-opt-rabbitmq-sent-time", Value::Timestamp(ms), Some((ForeignSent, ms * 1_000_000))),
        ("x-opt-ingress-time", Value::Timestamp(i64::MAX), None),
        ("x-opt-ingress-timestamp", Value::Long(i64::MIN), None),
        ("x-opt-ingress-timestamp", Value::Ulong(u64::MAX), None),
        ("x-opt-ingress-time", Value::String("now".into()), None),
        ("x-opt-ingress-tim", Value::Timestamp(ms), None),
    ];
    for (name, value, expected) in cases {
        let text = format!("{name} {value:?}");
        assert_eq!(read(ends, name, value).await, Vec::from_iter(expected), "{text}");
    }
}
