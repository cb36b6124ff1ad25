//! Addresses: topics, dynamic nodes, the anonymous relay, and who may use what.

use crate::support::{Broker, Client, body, condition_of, config, text};
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{DeliveryState, Role, Symbol, Value};

fn topic() -> Vec<Symbol> {
    vec![Symbol::from_static("topic")]
}

fn to(address: Option<&str>) -> hopline_driver::engine::wire::message::Message {
    let mut message = text("m");
    message.properties.to = address.map(str::to_owned);
    message
}

#[tokio::test]
async fn a_topic_by_prefix_gives_each_subscriber_each_message() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("topic/news").await;
    client.send_all(sender, ["nobody hears"]).await;
    let (a, b) = (client.receiver("topic/news", 10).await, client.receiver("topic/news", 10).await);
    client.send_all(sender, ["0", "1"]).await;
    assert_eq!(client.take(a, 2).await, ["0", "1"]);
    client.detach(a).await;
    client.send_all(sender, ["2"]).await;
    assert_eq!(client.take(b, 3).await, ["0", "1", "2"]);
    client.assert_nothing(b).await;
}

#[tokio::test]
async fn a_topic_by_capability_is_one_for_as_long_as_somebody_is_there() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let source = Source { capabilities: topic(), ..Source::at("news") };
    let options = client.options(Role::Receiver, source, Target::default());
    let (a, answer) = client.attach(options).await.expect("attached");
    assert_eq!(answer.source.expect("one").capabilities, topic());
    client.grant(a, 10).await;
    let b = client.receiver("news", 10).await;
    let sender = client.sender("news").await;
    client.send_all(sender, ["0"]).await;
    assert_eq!(client.take(a, 1).await, ["0"]);
    assert_eq!(client.take(b, 1).await, ["0"]);
    for link in [a, b, sender] {
        client.detach(link).await;
    }
    // Then the address is free again, for a queue.
    let sender = client.sender("news").await;
    client.send_all(sender, ["1"]).await;
    let receiver = client.receiver("news", 10).await;
    assert_eq!(client.take(receiver, 1).await, ["1"]);
}

#[tokio::test]
async fn a_queue_stays_a_queue_whatever_is_asked_for() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    client.sender("q").await;
    let target = Target { capabilities: topic(), ..Target::at("q") };
    let options = client.options(Role::Sender, Source::default(), target);
    let (_, answer) = client.attach(options).await.expect("attached");
    let Some(TargetKind::Target(target)) = answer.target.map(|target| *target) else {
        panic!("no target");
    };
    assert!(target.capabilities.is_empty());
}

#[tokio::test]
async fn a_dynamic_source_is_there_for_all_while_its_link_is() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let source = Source { dynamic: true, ..Source::default() };
    let options = owner.options(Role::Receiver, source, Target::default());
    let (receiver, answer) = owner.attach(options).await.expect("attached");
    let address = answer.source.and_then(|source| source.address).expect("an address");
    owner.grant(receiver, 10).await;
    let sender = other.sender(&address).await;
    other.send_all(sender, ["reply"]).await;
    assert_eq!(owner.take(receiver, 1).await, ["reply"]);
    owner.detach(receiver).await;
    let error = other.detached(sender).await.expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:resource-deleted");
    // What the sender sends to the gone address goes nowhere, and its connection lives.
    let sender = other.sender("q").await;
    other.send_all(sender, ["on"]).await;
}

#[tokio::test]
async fn a_dynamic_target_goes_with_its_link_and_ends_its_consumers() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let target = Target { dynamic: true, ..Target::default() };
    let options = owner.options(Role::Sender, Source::default(), target);
    let (_, answer) = owner.attach(options).await.expect("attached");
    let Some(TargetKind::Target(target)) = answer.target.map(|target| *target) else {
        panic!("no target");
    };
    let receiver = other.receiver(&target.address.expect("an address"), 10).await;
    drop(owner);
    let error = other.detached(receiver).await.expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:resource-deleted");
}

#[tokio::test]
async fn dynamic_with_an_address_and_neither_are_refused() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let both = Source { dynamic: true, ..Source::at("q") };
    for source in [both, Source::default()] {
        let error = client.receiver_from(source).await.expect_err("refused");
        assert_eq!(error.condition.as_str(), "amqp:invalid-field");
    }
    let both = Target { dynamic: true, ..Target::at("q") };
    let error = client.sender_to(both).await.expect_err("refused");
    assert_eq!(error.condition.as_str(), "amqp:invalid-field");
}

#[tokio::test]
async fn the_anonymous_relay_sends_each_message_to_where_it_says() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let relay = client.sender_to(Target::default()).await.expect("attached");
    let (a, b) = (client.receiver("a", 10).await, client.receiver("topic/b", 10).await);
    for address in ["a", "topic/b"] {
        assert_eq!(client.send(relay, &to(Some(address))).await, DeliveryState::Accepted);
    }
    assert_eq!(
        (body(&client.receive(a).await), body(&client.receive(b).await)),
        ("m".into(), "m".into())
    );
}

#[tokio::test]
async fn the_anonymous_relay_rejects_what_it_cannot_send_and_names_the_delivery() {
    let nodes = NodeConfig {
        deny: vec!["secret/*".into()],
        auto_create: false,
        queues: vec!["q".into(), "secret/q".into()],
        ..NodeConfig::default()
    };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let relay = client.sender_to(Target::default()).await.expect("attached");
    let cases = [
        (None, "amqp:not-found"),
        (Some(""), "amqp:not-found"),
        (Some("unknown"), "amqp:not-found"),
        (Some("$reserved"), "amqp:not-found"),
        (Some("secret/q"), "amqp:unauthorized-access"),
        (Some("secret/x"), "amqp:unauthorized-access"),
    ];
    for (address, condition) in cases {
        let token = client.post(relay, &to(address), false).await;
        let state = client.outcome(token).await;
        assert_eq!(condition_of(&state), condition, "{address:?}");
        let DeliveryState::Rejected(rejected) = state else { unreachable!() };
        let info = rejected.error.and_then(|error| error.info).expect("info");
        let tag = Value::Binary(token.to_be_bytes().to_vec().into());
        let Some(Value::Binary(found)) = info.get("delivery-tag") else { panic!("{info:?}") };
        let Value::Binary(tag) = tag else { unreachable!() };
        assert!(tag.ends_with(found), "{found:?}");
    }
    assert_eq!(client.send(relay, &to(Some("q"))).await, DeliveryState::Accepted);
}

#[tokio::test]
async fn a_settled_message_to_nowhere_ends_the_relays_link() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let relay = client.sender_to(Target::default()).await.expect("attached");
    client.post(relay, &to(Some("$nowhere")), true).await;
    let error = client.detached(relay).await.expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:not-found");
    assert!(error.info.is_some_and(|info| info.get("delivery-tag").is_some()));
    let relay = client.sender_to(Target::default()).await.expect("attached");
    assert_eq!(client.send(relay, &to(Some("q"))).await, DeliveryState::Accepted);
}

#[tokio::test]
async fn where_rejected_is_no_outcome_the_relays_link_ends() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let outcomes = vec![Symbol::from_static("amqp:accepted:list")];
    let source = Source { outcomes, ..Source::default() };
    let options = client.options(Role::Sender, source, Target::default());
    let (relay, _) = client.attach(options).await.expect("attached");
    assert_eq!(client.send(relay, &to(Some("q"))).await, DeliveryState::Accepted);
    client.post(relay, &to(Some("$nowhere")), false).await;
    let error = client.detached(relay).await.expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:not-found");
    assert!(error.info.is_some_and(|info| info.get("delivery-tag").is_some()));
}

#[tokio::test]
async fn denied_unknown_and_reserved_addresses_are_refused() {
    let nodes = NodeConfig {
        auto_create: false,
        deny: vec!["secret*".into(), "exact".into()],
        queues: vec!["q".into(), "secret-queue".into(), "exactly".into()],
        ..NodeConfig::default()
    };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let cases = [
        ("secret", "amqp:unauthorized-access"),
        ("secret-queue", "amqp:unauthorized-access"),
        ("exact", "amqp:unauthorized-access"),
        ("unknown", "amqp:not-found"),
        ("$management", "amqp:not-found"),
        ("", "amqp:not-found"),
    ];
    for (address, condition) in cases {
        let error = client.sender_to(Target::at(address)).await.expect_err("refused");
        assert_eq!(error.condition.as_str(), condition, "{address}");
        let error = client.receiver_from(Source::at(address)).await.expect_err("refused");
        assert_eq!(error.condition.as_str(), condition, "{address}");
    }
    let sender = client.sender("q").await;
    client.send_all(sender, ["m"]).await;
    client.sender("exactly").await;
}

#[tokio::test]
async fn addresses_are_kept_octet_for_octet() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let long = "l".repeat(10_000);
    for address in ["a", "A", "ä%20 /#*", "a#b", &long] {
        let sender = client.sender(address).await;
        client.send_all(sender, [address]).await;
    }
    for address in ["a", "A", "ä%20 /#*", "a#b", &long] {
        let receiver = client.receiver(address, 10).await;
        assert_eq!(client.take(receiver, 1).await, [address]);
        client.detach(receiver).await;
    }
    let error = client.sender_to(Target::at("l".repeat(17_000))).await.expect_err("too long");
    assert_eq!(error.condition.as_str(), "amqp:invalid-field");
}
