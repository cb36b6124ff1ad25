//! What the broker adds to a message's timeline, and that it leaves all else as it came.

use crate::support::{
    Broker, Client, annotated, begun, body, config, decoded, encoded, last_hop, text, timed,
    timeline, timeline_octets, wait,
};
use hopline_broker::{Config, NodeConfig, Sampling};
use hopline_driver::engine::wire::message::{Layout, Message};
use hopline_driver::engine::wire::{DeliveryState, Fields, Symbol, Value};
use hopline_driver::timeline::{ANNOTATION, Stage, Wait};

const STAGES: [Stage; 7] = [
    Stage::Receive,
    Stage::Deserialize,
    Stage::Enqueue,
    Stage::Dequeue,
    Stage::Republish,
    Stage::Serialize,
    Stage::Send,
];

fn sampling(timelines: Sampling) -> Broker {
    Broker::start(Config { timelines, ..config() })
}

#[tokio::test]
async fn the_stages_of_the_broker_are_there_in_order_and_filled_in() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    client.send(sender, &timed("m")).await;
    let delivery = client.receive(receiver).await;
    let octets = timeline_octets(&delivery).expect("a timeline");
    assert!(octets.starts_with(&begun()), "earlier hops stay octet for octet");
    let timeline = timeline(&delivery);
    assert_eq!(timeline.nodes.len(), 2);
    assert_eq!(timeline.nodes[1].name, "broker");
    let stamps = last_hop(&timeline);
    let stages: Vec<_> = stamps.iter().filter_map(|stamp| stamp.known_stage()).collect();
    assert_eq!(stages, STAGES);
    let instants: Vec<_> = stamps.iter().map(|stamp| stamp.at.expect("filled in")).collect();
    assert!(instants.is_sorted(), "{instants:?}");
    assert!(!timeline.overflow);
}

#[tokio::test]
async fn all_else_is_untouched() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    let mut message = timed("m");
    let other = |key: &'static str, value| (Symbol::from_static(key), value);
    message.message_annotations.0.insert(0, other("x-opt-first", Value::Ulong(1 << 40)));
    message.message_annotations.0.push(other("x-opt-last", Value::List(vec![Value::Null])));
    message.delivery_annotations = Fields(vec![other("x-opt-next-hop", Value::Null)]);
    message.footer = Fields(vec![other("x-opt-sum", Value::Double(0.5))]);
    message.properties.to = Some("elsewhere".into());
    message.application_properties = vec![("k".into(), Value::Char('ä'))];
    client.send(sender, &message).await;
    let delivery = client.receive(receiver).await;
    let got = decoded(&delivery);
    let names: Vec<_> = got.message_annotations.0.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, ["x-opt-first", "x-opt-last", ANNOTATION]);
    assert!(got.delivery_annotations.is_empty(), "they were for us");
    let mut bare = Vec::new();
    message.encode_bare(&mut bare);
    let layout = Layout::scan(&delivery.payload).expect("a message");
    assert!(delivery.payload[layout.bare..] == bare[..]);
}

#[tokio::test]
async fn annotations_without_a_timeline_pass_octet_for_octet() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    // A map of four elements in the long form, one key a ulong: nothing is re-encoded.
    let map = b"\xd1\x00\x00\x00\x0d\x00\x00\x00\x04\x53\x01\x40\xa3\x03x-a\x41";
    let mut octets = b"\x00\x53\x72".to_vec();
    octets.extend_from_slice(map);
    octets.extend_from_slice(b"\x00\x53\x77\xa1\x01m");
    client.post_octets(sender, octets.clone().into(), true).await;
    assert_eq!(client.receive(receiver).await.payload, octets);
    let plain = encoded(&text("plain"));
    client.post_octets(sender, plain.clone(), true).await;
    assert_eq!(client.receive(receiver).await.payload, plain);
}

#[tokio::test]
async fn nonsense_under_the_timelines_name_is_passed_on() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    let another_version = [vec![2], vec![0; 30]].concat();
    let nonsense = [
        Value::Null,
        Value::Ulong(u64::MAX),
        Value::String("2026".into()),
        binary(&[]),
        binary(&[1, 0, 0]),
        binary(&another_version),
        Value::Map(vec![(Value::Null, Value::Null)]),
    ];
    for value in nonsense {
        let message = annotated("m", value);
        client.send(sender, &message).await;
        assert_eq!(client.receive(receiver).await.payload, encoded(&message));
    }
}

fn binary(octets: &[u8]) -> Value {
    Value::Binary(octets.to_vec().into())
}

#[tokio::test]
async fn hostile_records_are_kept_and_do_not_keep_a_message() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    for tail in [&[0x80, 0xff][..], &[0x01], &[0x00; 50], &[0x05, 9, 0xff, 0xff], &[0xff; 300]] {
        let octets = [&begun(), tail].concat();
        client.send(sender, &annotated("m", binary(&octets))).await;
        let got = timeline_octets(&client.receive(receiver).await).expect("a timeline");
        assert!(got.starts_with(&octets), "{tail:?}");
    }
}

#[tokio::test]
async fn a_full_timeline_says_that_stamps_were_dropped() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    let mut full = begun();
    while full.len() < 4090 - 32 {
        full.extend_from_slice(&[0x90, 30]);
        full.extend_from_slice(&[0; 30]);
    }
    client.send(sender, &annotated("m", binary(&full))).await;
    let delivery = client.receive(receiver).await;
    let octets = timeline_octets(&delivery).expect("a timeline");
    let timeline = timeline(&delivery);
    assert!(timeline.overflow && timeline.dropped == 7, "{} dropped", timeline.dropped);
    assert!(octets.len() <= 4096 && octets[4..full.len()] == full[4..]);
}

#[tokio::test]
async fn sampling_says_which_messages_are_stamped() {
    let cases = [
        (Sampling::All, [true; 6]),
        (Sampling::OneIn(3), [false, false, true, false, false, true]),
        (Sampling::OneIn(0), [true; 6]),
        (Sampling::Carried, [false; 6]),
        (Sampling::Off, [false; 6]),
    ];
    for (sampling_mode, want) in cases {
        let broker = sampling(sampling_mode);
        let mut client = Client::open(&broker).await;
        let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
        let mut got = Vec::new();
        for _ in 0..6 {
            client.send(sender, &text("m")).await;
            let delivery = client.receive(receiver).await;
            assert_eq!(body(&delivery), "m");
            client.settle(&delivery, DeliveryState::Accepted).await;
            got.push(timeline_octets(&delivery).is_some());
        }
        assert_eq!(got, want, "{sampling_mode:?}");
        client.send(sender, &timed("m")).await;
        let octets = timeline_octets(&client.receive(receiver).await).expect("what it carried");
        assert_eq!(octets == begun(), sampling_mode == Sampling::Off, "{sampling_mode:?}");
    }
}

#[tokio::test]
async fn copies_of_a_topic_have_stamps_of_their_own() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (a, b) = (client.receiver("topic/t", 10).await, client.receiver("topic/t", 0).await);
    let sender = client.sender("topic/t").await;
    client.send(sender, &timed("m")).await;
    let first = client.receive(a).await;
    client.idle(50).await;
    client.grant(b, 1).await;
    let second = client.receive(b).await;
    assert_eq!((wait(&first), wait(&second)), (Wait::None, Wait::NoCredit));
    let sent = |delivery| last_hop(&timeline(delivery)).last().and_then(|stamp| stamp.at);
    let between = sent(&second).expect("filled").since_ns(sent(&first).expect("filled"));
    assert!(between > 40_000_000, "{between} ns");
}

#[tokio::test]
async fn a_redelivered_message_says_when_it_went_out_again() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    client.send(sender, &timed("m")).await;
    let first = client.receive(receiver).await;
    client.settle(&first, DeliveryState::Released).await;
    let (first, second) = (timeline(&first), timeline(&client.receive(receiver).await));
    let (first, second) = (last_hop(&first), last_hop(&second));
    assert_eq!(first[..3], second[..3], "it was received once");
    assert!(first[6].at < second[6].at);
}

#[tokio::test]
async fn a_modified_outcome_does_not_touch_the_timeline() {
    let broker = sampling(Sampling::Carried);
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    client.send(sender, &timed("m")).await;
    let delivery = client.receive(receiver).await;
    let forged = annotated("", Value::Null).message_annotations;
    let modified = hopline_driver::engine::wire::outcome::Modified {
        message_annotations: Some(forged),
        ..Default::default()
    };
    client.settle(&delivery, DeliveryState::Modified(Box::new(modified))).await;
    let again: Message = decoded(&client.receive(receiver).await);
    assert_eq!(again.message_annotations.0.len(), 1);
    assert!(matches!(again.message_annotations.get(ANNOTATION), Some(Value::Binary(_))));
}

#[tokio::test]
async fn a_dead_letter_keeps_its_timeline_and_adds_to_it() {
    let nodes = NodeConfig { dead_letter: Some("dead".into()), ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    let dead = client.receiver("dead", 10).await;
    client.send(sender, &timed("m")).await;
    let delivery = client.receive(receiver).await;
    client.settle(&delivery, DeliveryState::Rejected(Default::default())).await;
    let letter = client.receive(dead).await;
    let (before, after) = (timeline(&delivery), timeline(&letter));
    assert_eq!(before.stamps[..2], after.stamps[..2], "those of the publisher");
    let (before, after) = (last_hop(&before), last_hop(&after));
    assert_eq!(before[..2], after[..2], "it was received once");
    assert!(after.last().expect("a stamp").at > before.last().expect("a stamp").at);
    let reason = decoded(&letter).message_annotations;
    assert_eq!(reason.get("x-opt-dead-letter-from").and_then(Value::as_str), Some("q"));
}
