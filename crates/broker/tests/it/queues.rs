//! Queues: who gets a message, in which order, and what becomes of one that is not accepted.

use crate::support::{Broker, Client, body, config, decoded, text, with_ttl};
use hopline_broker::NodeConfig;
use hopline_driver::engine::Event;
use hopline_driver::engine::wire::definitions::SenderSettleMode;
use hopline_driver::engine::wire::message::{Header, Message, Properties, Timestamp};
use hopline_driver::engine::wire::outcome::Modified;
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{DeliveryState, Fields, Role, Symbol, Value, condition};
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

fn rejected() -> DeliveryState {
    DeliveryState::rejected(condition::PRECONDITION_FAILED, "no")
}

#[tokio::test]
async fn competing_consumers_share_the_messages() {
    let broker = Broker::start(config());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let (a, b) = (one.receiver("q", 100).await, two.receiver("q", 100).await);
    let sender = one.sender("q").await;
    let bodies: Vec<_> = (0..20).map(|n| n.to_string()).collect();
    one.send_all(sender, bodies.iter().map(String::as_str)).await;
    let (of_one, of_two) = (one.take(a, 10).await, two.take(b, 10).await);
    let all: HashSet<_> = of_one.iter().chain(&of_two).cloned().collect();
    assert_eq!(all.len(), 20);
    one.assert_nothing(a).await;
    two.assert_nothing(b).await;
}

#[tokio::test]
async fn what_is_released_keeps_its_place_and_is_no_failure() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 3).await);
    client.send_all(sender, ["0", "1", "2", "3", "4"]).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(client.receive(receiver).await);
    }
    for at in [1, 0, 2] {
        client.settle(&held[at], DeliveryState::Released).await;
    }
    client.idle(50).await;
    client.grant(receiver, 10).await;
    let again = client.receive(receiver).await;
    assert_eq!(body(&again), "0");
    assert_eq!(decoded(&again).header.delivery_count, 0);
    assert!(!decoded(&again).header.first_acquirer);
    assert_eq!(client.take(receiver, 4).await, ["1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_lost_link_gives_back_in_order_and_counts_a_failure() {
    let broker = Broker::start(config());
    let (mut client, mut lost) = (Client::open(&broker).await, Client::open(&broker).await);
    let sender = client.sender("q").await;
    let header = Header { durable: true, delivery_count: 9, ..Header::default() };
    client.send(sender, &Message { header, ..text("0") }).await;
    client.send_all(sender, ["1", "2"]).await;
    let link = lost.receiver("q", 2).await;
    let delivery = lost.receive(link).await;
    let header = decoded(&delivery).header;
    assert!(header.first_acquirer && header.durable);
    assert_eq!(header.delivery_count, 0, "the publisher's count is not the queue's");
    lost.receive(link).await;
    drop(lost);
    let receiver = client.receiver("q", 10).await;
    let again = client.receive(receiver).await;
    assert_eq!(body(&again), "0");
    assert_eq!(decoded(&again).header.delivery_count, 1);
    assert!(!decoded(&again).header.first_acquirer);
    assert_eq!(client.take(receiver, 2).await, ["1", "2"]);
}

#[tokio::test]
async fn a_detach_in_good_order_is_no_failure() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 1).await);
    client.send_all(sender, ["0"]).await;
    client.receive(receiver).await;
    client.detach(receiver).await;
    let receiver = client.receiver("q", 1).await;
    assert_eq!(decoded(&client.receive(receiver).await).header.delivery_count, 0);
}

#[tokio::test]
async fn modified_counts_annotates_and_bars() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    let mut message = text("0");
    let pair = |key: &'static str, n: u8| (Symbol::from_static(key), Value::Ubyte(n));
    message.message_annotations = Fields(vec![pair("x-opt-a", 1), pair("x-opt-b", 1)]);
    client.send(sender, &message).await;
    let delivery = client.receive(receiver).await;
    let modified = Modified {
        delivery_failed: Some(true),
        undeliverable_here: Some(true),
        message_annotations: Some(Fields(vec![pair("x-opt-b", 2), pair("x-opt-c", 2)])),
    };
    client.settle(&delivery, DeliveryState::Modified(Box::new(modified))).await;
    client.assert_nothing(receiver).await;
    client.send_all(sender, ["1"]).await;
    assert_eq!(client.take(receiver, 1).await, ["1"], "it does not keep others waiting");
    let other = client.receiver("q", 10).await;
    let again = decoded(&client.receive(other).await);
    assert_eq!(again.header.delivery_count, 1);
    let want = [pair("x-opt-a", 1), pair("x-opt-b", 2), pair("x-opt-c", 2)];
    assert_eq!(again.message_annotations.0, want);
    assert_eq!(again.octets(), message.octets());
}

#[tokio::test]
async fn modified_counts_what_failed_only() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    client.send_all(sender, ["0"]).await;
    for (count, failed) in [(0, false), (0, true), (1, false)] {
        let delivery = client.receive(receiver).await;
        assert_eq!(decoded(&delivery).header.delivery_count, count);
        client.settle(&delivery, DeliveryState::modified(failed, false)).await;
    }
}

#[tokio::test]
async fn failures_and_rejections_end_among_the_dead_letters_in_order() {
    let nodes = NodeConfig {
        dead_letter: Some("dead".into()),
        max_delivery_count: Some(2),
        ..NodeConfig::default()
    };
    let broker = Broker::start(hopline_broker::Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 10).await);
    client.send_all(sender, ["0", "1"]).await;
    let delivery = client.receive(receiver).await;
    client.settle(&delivery, rejected()).await;
    for _ in 0..2 {
        let delivery = client.receive(receiver).await;
        assert_eq!(body(&delivery), "1");
        client.settle(&delivery, DeliveryState::modified(true, false)).await;
    }
    client.assert_nothing(receiver).await;
    let dead = client.receiver("dead", 10).await;
    assert_eq!(client.take(dead, 1).await, ["0"]);
    let delivery = client.receive(dead).await;
    assert_eq!(body(&delivery), "1");
    assert_eq!(decoded(&delivery).header.delivery_count, 2);
    // Nothing is a dead letter twice.
    client.settle(&delivery, rejected()).await;
    client.assert_nothing(dead).await;
}

#[tokio::test]
async fn without_dead_letters_what_is_rejected_is_gone_and_released_ones_never_die() {
    let nodes = NodeConfig { max_delivery_count: Some(2), ..NodeConfig::default() };
    let broker = Broker::start(hopline_broker::Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 100).await);
    client.send_all(sender, ["0"]).await;
    for _ in 0..5 {
        let delivery = client.receive(receiver).await;
        client.settle(&delivery, DeliveryState::Released).await;
    }
    let delivery = client.receive(receiver).await;
    client.settle(&delivery, rejected()).await;
    client.assert_nothing(receiver).await;
    assert_eq!(broker_stop(broker, client).await.messages, 0);
}

async fn broker_stop(broker: Broker, client: Client) -> hopline_broker::Stopped {
    client.close().await;
    broker.stop()
}

#[tokio::test]
async fn messages_live_as_long_as_their_ttl_says() {
    let nodes = NodeConfig { dead_letter: Some("dead".into()), ..NodeConfig::default() };
    let broker = Broker::start(hopline_broker::Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for (name, ttl) in [("zero", 0), ("short", 100), ("long", 60_000), ("max", u32::MAX)] {
        client.send(sender, &with_ttl(name, ttl)).await;
    }
    let dead = client.receiver("dead", 10).await;
    let mut gone = Vec::new();
    for _ in 0..2 {
        let delivery = client.receive(dead).await;
        assert_eq!(decoded(&delivery).header.ttl, None, "a dead letter lives");
        gone.push(body(&delivery));
    }
    assert_eq!(gone, ["zero", "short"]);
    let receiver = client.receiver("q", 10).await;
    for (name, ttl) in [("long", 60_000), ("max", u32::MAX)] {
        let delivery = client.receive(receiver).await;
        assert_eq!(body(&delivery), name);
        let left = decoded(&delivery).header.ttl.expect("a ttl");
        assert!((ttl - 30_000..=ttl - 100).contains(&left), "{left} of {ttl}");
    }
}

#[tokio::test]
async fn messages_live_until_their_absolute_expiry() {
    let nodes = NodeConfig { dead_letter: Some("dead".into()), ..NodeConfig::default() };
    let broker = Broker::start(hopline_broker::Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let now = i64::try_from(now.as_millis()).expect("not so late");
    let cases = [("past", now - 1), ("epoch", 0), ("min", i64::MIN), ("later", now + 200)];
    let kept = [("future", now + 3_600_000), ("max", i64::MAX)];
    for (name, at) in cases.into_iter().chain(kept) {
        let mut message = text(name);
        message.properties =
            Properties { absolute_expiry_time: Some(Timestamp(at)), ..Properties::default() };
        client.send(sender, &message).await;
    }
    let dead = client.receiver("dead", 10).await;
    let mut gone = client.take(dead, 4).await;
    gone.sort();
    assert_eq!(gone, ["epoch", "later", "min", "past"]);
    let receiver = client.receiver("q", 10).await;
    assert_eq!(client.take(receiver, 2).await, ["future", "max"]);
}

#[tokio::test]
async fn whoever_browses_sees_all_and_takes_nothing() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["0", "1", "2"]).await;
    let source = Source { distribution_mode: Some(Symbol::from_static("copy")), ..Source::at("q") };
    let options = client.options(Role::Receiver, source.clone(), Target::default());
    let (browser, answer) = client.attach(options).await.expect("attached");
    let mode = answer.source.and_then(|source| source.distribution_mode);
    assert_eq!(mode, source.distribution_mode);
    client.grant(browser, 10).await;
    assert_eq!(client.take(browser, 3).await, ["0", "1", "2"]);
    client.assert_nothing(browser).await;
    client.send_all(sender, ["3"]).await;
    assert_eq!(client.take(browser, 1).await, ["3"]);
    let receiver = client.receiver("q", 10).await;
    let first = client.receive(receiver).await;
    assert_eq!((body(&first), decoded(&first).header.delivery_count), ("0".into(), 0));
    assert_eq!(client.take(receiver, 3).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn drain_sends_what_is_there_then_ends_the_credit() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 0).await);
    client.send_all(sender, ["0", "1"]).await;
    client.engine().set_credit(receiver, 10).expect("attached");
    client.engine().drain(receiver).expect("attached");
    assert_eq!(client.take(receiver, 2).await, ["0", "1"]);
    let drained = |event: &Event| matches!(event, Event::Drained { .. }).then_some(());
    client.expect("drained", drained).await;
    assert_eq!(client.engine().credit(receiver), 0);
    client.send_all(sender, ["2"]).await;
    client.assert_nothing(receiver).await;
}

#[tokio::test]
async fn settled_deliveries_are_gone_once_sent() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let mut options = client.options(Role::Receiver, Source::at("q"), Target::default());
    options.snd_settle_mode = SenderSettleMode::Settled;
    let (receiver, _) = client.attach(options).await.expect("attached");
    client.grant(receiver, 10).await;
    client.send_all(sender, ["0"]).await;
    let delivery = client.receive(receiver).await;
    assert!(delivery.settled);
    client.detach(receiver).await;
    let receiver = client.receiver("q", 10).await;
    client.assert_nothing(receiver).await;
}

#[tokio::test]
async fn a_backlog_goes_out_to_whoever_has_credit_and_never_speaks() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let large = "x".repeat(10_000);
    for _ in 0..500 {
        client.post(sender, &text(large.clone()), true).await;
    }
    client.idle(100).await;
    let mut options = client.options(Role::Receiver, Source::at("q"), Target::default());
    options.snd_settle_mode = SenderSettleMode::Settled;
    let (receiver, _) = client.attach(options).await.expect("attached");
    client.grant(receiver, 1000).await;
    for _ in 0..500 {
        let delivery = client.try_receive(receiver, Duration::from_secs(5)).await;
        assert_eq!(body(&delivery.expect("no stall")).len(), large.len());
    }
}
