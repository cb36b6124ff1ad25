//! Durable and shared subscriptions on topics, as JMS has them.

use crate::support::{Broker, Client, PATIENCE, Raw, attach, config};
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Fields, Symbol, Value};
use std::time::Duration;

const TOPIC: &str = "topic/t";

fn durable(address: &str) -> Source {
    Source { durable: 2, expiry_policy: Symbol::from_static("never"), ..Source::at(address) }
}

fn with(source: Source, capabilities: &[&'static str]) -> Source {
    let capabilities = capabilities.iter().map(|name| Symbol::from_static(name)).collect();
    Source { capabilities, ..source }
}

fn condition(error: Option<AmqpError>) -> String {
    error.expect("an error").condition.to_string()
}

async fn subscribe(client: &mut Client, name: &str, source: Source) -> LinkId {
    let (link, _) = client.attach_as(name, source).await.expect("attached");
    client.grant(link, 100).await;
    link
}

/// Attaches without a source, which looks a subscription up, and closes it if it is there.
fn unsubscribe(broker: &Broker, container: &str, name: &str, desired: &[&'static str]) -> String {
    use hopline_driver::engine::wire::performative::{Detach, Performative};
    let mut raw = Raw::open_as(broker, container);
    let mut lookup = attach(name, 0, hopline_driver::engine::wire::Role::Receiver, "");
    lookup.source = None;
    lookup.desired_capabilities = desired.iter().map(|name| Symbol::from_static(name)).collect();
    raw.put(&lookup);
    let Some(Performative::Attach(answer)) = raw.frame() else { panic!("no attach") };
    if answer.source.is_some() {
        raw.put(&Detach { handle: 0, closed: true, error: None });
    }
    loop {
        match raw.frame() {
            Some(Performative::Detach(detach)) => {
                assert!(detach.closed);
                return detach.error.map_or("closed".into(), |error| error.condition.to_string());
            }
            Some(_) => {}
            None => panic!("the broker hung up"),
        }
    }
}

#[tokio::test]
async fn a_durable_subscription_outlives_link_and_connection_until_it_is_closed() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    publisher.send_all(sender, ["0"]).await;
    assert_eq!(client.take(link, 1).await, ["0"]);
    assert_eq!(client.leave(link).await, None);
    publisher.send_all(sender, ["1"]).await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 1).await, ["1"]);
    client.close().await;
    publisher.send_all(sender, ["2", "3"]).await;
    // A connection that is lost is like one that is closed.
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 1).await, ["2"]);
    drop(client);
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 1).await, ["3"]);
    client.detach(link).await;
    publisher.send_all(sender, ["nobody hears"]).await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    client.assert_nothing(link).await;
}

#[tokio::test]
async fn the_answer_says_that_nothing_outlives_the_broker_and_what_outlives_the_link() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    let (_, answer) = client.attach_as("s", durable(TOPIC)).await.expect("attached");
    let source = answer.source.expect("one");
    assert_eq!((source.durable, source.expiry_policy.as_str()), (0, "never"));
    let asked = Source { timeout: 7, durable: 1, ..Source::at(TOPIC) };
    let (_, answer) = client.attach_as("t", asked.clone()).await.expect("attached");
    let source = answer.source.expect("one");
    assert_eq!((source.durable, source.timeout), (0, 7));
    assert_eq!(source.expiry_policy.as_str(), "session-end");
    // Nothing of a link to a queue outlives it.
    let asked = Source { address: Some("q".into()), ..asked };
    let (_, answer) = client.attach_as("u", asked).await.expect("attached");
    let source = answer.source.expect("one");
    assert_eq!((source.durable, source.timeout), (0, 0));
}

#[tokio::test]
async fn names_containers_and_prefixes_of_names_keep_subscriptions_apart() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    for (container, name) in [("c", "s"), ("c", "ss"), ("cc", "s")] {
        let mut client = Client::open_as(&broker, container).await;
        subscribe(&mut client, name, durable(TOPIC)).await;
        client.close().await;
    }
    publisher.send_all(sender, ["m"]).await;
    for (container, name) in [("c", "s"), ("c", "ss"), ("cc", "s")] {
        let mut client = Client::open_as(&broker, container).await;
        let link = subscribe(&mut client, name, durable(TOPIC)).await;
        assert_eq!(client.take(link, 1).await, ["m"], "{container} {name}");
        client.assert_nothing(link).await;
    }
}

#[tokio::test]
async fn another_topic_takes_the_place_of_the_subscription() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    client.leave(link).await;
    publisher.send_all(sender, ["gone with it"]).await;
    let link = subscribe(&mut client, "s", durable("topic/other")).await;
    client.leave(link).await;
    publisher.send_all(sender, ["not heard"]).await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    publisher.send_all(sender, ["m"]).await;
    assert_eq!(client.take(link, 1).await, ["m"]);
}

/// A durable subscription to messages with this subject.
fn selecting(subject: &str) -> Source {
    let name = Symbol::from_static("apache.org:selector-filter:string");
    let selector = Value::String(format!("JMSType = '{subject}'"));
    let filter = Value::Described(Box::new((Value::Symbol(name.clone()), selector)));
    Source { filter: Some(Fields(vec![(name, filter)])), ..durable(TOPIC) }
}

#[tokio::test]
async fn a_selector_holds_while_nobody_is_there_and_another_one_takes_the_place() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    let mut client = Client::open_as(&broker, "c").await;
    for (subject, wanted) in [("a", "0"), ("b", "1")] {
        // The subscription of the other selector goes, with what it holds.
        let link = subscribe(&mut client, "s", selecting(subject)).await;
        client.assert_nothing(link).await;
        client.leave(link).await;
        for (body, subject) in [("0", "a"), ("1", "b")] {
            let mut message = crate::support::text(body);
            message.properties.subject = Some(subject.into());
            publisher.send(sender, &message).await;
        }
        let link = subscribe(&mut client, "s", selecting(subject)).await;
        assert_eq!(client.take(link, 1).await, [wanted]);
        client.assert_nothing(link).await;
        let mut message = crate::support::text("again");
        message.properties.subject = Some(subject.into());
        client.leave(link).await;
        publisher.send(sender, &message).await;
    }
}

#[tokio::test]
async fn links_of_a_shared_subscription_compete_and_the_last_one_ends_it() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    let shared = || with(Source::at(TOPIC), &["topic", "shared", "unheard-of"]);
    let (a, answer) = client.attach_as("s|volatile1", shared()).await.expect("attached");
    let capabilities = answer.source.expect("one").capabilities;
    assert_eq!(capabilities, with(Source::default(), &["topic", "shared"]).capabilities);
    let mut other = Client::open_as(&broker, "c").await;
    let b = subscribe(&mut other, "s|volatile2", shared()).await;
    client.grant(a, 100).await;
    client.idle(50).await;
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    publisher.send_all(sender, ["0", "1", "2", "3"]).await;
    let mut taken = client.take(a, 2).await;
    taken.extend(other.take(b, 2).await);
    taken.sort();
    assert_eq!(taken, ["0", "1", "2", "3"]);
    client.detach(a).await;
    publisher.send_all(sender, ["4"]).await;
    assert_eq!(other.take(b, 1).await, ["4"]);
    other.detach(b).await;
    publisher.send_all(sender, ["nobody hears"]).await;
    let a = subscribe(&mut client, "s|volatile1", shared()).await;
    client.assert_nothing(a).await;
}

#[tokio::test]
async fn a_shared_durable_subscription_is_removed_by_its_last_link_only() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    let shared = || with(durable(TOPIC), &["shared"]);
    let a = subscribe(&mut client, "s", shared()).await;
    let b = subscribe(&mut client, "s|2", shared()).await;
    client.engine().detach(a, true, None);
    assert_eq!(condition(client.detached(a).await), "amqp:resource-locked");
    client.leave(b).await;
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    publisher.send_all(sender, ["0"]).await;
    let b = subscribe(&mut client, "s|2", shared()).await;
    assert_eq!(client.take(b, 1).await, ["0"]);
    client.engine().detach(b, true, None);
    assert_eq!(client.detached(b).await, None);
    publisher.send_all(sender, ["nobody hears"]).await;
    let a = subscribe(&mut client, "s", shared()).await;
    client.assert_nothing(a).await;
}

#[tokio::test]
async fn another_topic_or_sharing_is_refused_while_a_shared_subscription_is_in_use() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    subscribe(&mut client, "s|1", with(durable(TOPIC), &["shared"])).await;
    let elsewhere = with(durable("topic/other"), &["shared"]);
    let error = client.attach_as("s|2", elsewhere).await.expect_err("refused");
    assert_eq!(error.condition.as_str(), "amqp:resource-locked");
    let error = client.attach_as("s", durable(TOPIC)).await.expect_err("refused");
    assert_eq!(error.condition.as_str(), "amqp:resource-locked");
    // One that goes with its last link is another subscription.
    let volatile = with(Source::at(TOPIC), &["shared"]);
    client.attach_as("s|volatile", volatile).await.expect("attached");
}

#[tokio::test]
async fn a_global_subscription_is_shared_between_containers() {
    let broker = Broker::start(config());
    let global = || with(durable(TOPIC), &["shared", "global"]);
    let (mut a, mut b) = (Client::open(&broker).await, Client::open(&broker).await);
    let (first, second) = (
        subscribe(&mut a, "s|global", global()).await,
        subscribe(&mut b, "s|global", global()).await,
    );
    a.idle(50).await;
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    publisher.send_all(sender, ["0", "1"]).await;
    let mut taken = a.take(first, 1).await;
    taken.extend(b.take(second, 1).await);
    taken.sort();
    assert_eq!(taken, ["0", "1"]);
    let desired = ["shared", "global"];
    assert_eq!(unsubscribe(&broker, "x", "s|global", &desired), "amqp:resource-locked");
    a.leave(first).await;
    b.leave(second).await;
    assert_eq!(unsubscribe(&broker, "x", "s|global", &desired), "closed");
    assert_eq!(unsubscribe(&broker, "x", "s|global", &desired), "amqp:not-found");
}

#[tokio::test]
async fn who_unsubscribes_attaches_without_a_source_and_closes() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    client.leave(link).await;
    assert_eq!(unsubscribe(&broker, "c", "unknown", &[]), "amqp:not-found");
    assert_eq!(unsubscribe(&broker, "other", "s", &[]), "amqp:not-found");
    assert_eq!(unsubscribe(&broker, "c", "s", &[]), "closed");
    assert_eq!(unsubscribe(&broker, "c", "s", &[]), "amqp:not-found");
    // While it is in use the lookup is a link of the same name: the older one is stolen.
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(unsubscribe(&broker, "c", "s", &[]), "closed");
    assert_eq!(condition(client.detached(link).await), "amqp:link:stolen");
    assert_eq!(unsubscribe(&broker, "c", "s", &[]), "amqp:not-found");
}

#[tokio::test]
async fn what_is_not_settled_goes_back_to_the_subscription() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    let sender = publisher.sender(TOPIC).await;
    publisher.send_all(sender, ["0", "1"]).await;
    client.receive(link).await;
    client.receive(link).await;
    client.leave(link).await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 2).await, ["0", "1"]);
}

#[tokio::test]
async fn a_subscription_keeps_what_its_limits_allow_and_then_holds_publishers_back() {
    let nodes = NodeConfig { max_messages: 10, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open_as(&broker, "c").await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    client.leave(link).await;
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    let bodies: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    publisher.send_all(sender, bodies.iter().map(String::as_str)).await;
    publisher.idle(50).await;
    assert!(publisher.engine().send_block(sender).is_some(), "it is full");
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 10).await, bodies);
    publisher.send_all(sender, ["on"]).await;
    assert_eq!(client.take(link, 1).await, ["on"]);
}

#[tokio::test]
async fn a_message_reaches_all_subscriptions_or_none() {
    let nodes = NodeConfig { max_messages: 10, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open_as(&broker, "c").await;
    let taking = subscribe(&mut client, "taking", durable(TOPIC)).await;
    let absent = subscribe(&mut client, "absent", durable(TOPIC)).await;
    client.leave(absent).await;
    let mut publisher = Client::open(&broker).await;
    // What is relayed is not held back by credit.
    let relay = publisher.sender_to(Target::default()).await.expect("attached");
    let mut message = crate::support::text("m");
    message.properties.to = Some(TOPIC.into());
    let mut accepted = 0;
    while publisher.send(relay, &message).await == DeliveryState::Accepted {
        accepted += 1;
    }
    assert_eq!(accepted, 20, "twice the limit");
    assert_eq!(client.take(taking, accepted).await.len(), accepted);
    client.assert_nothing(taking).await;
}

#[tokio::test]
async fn subscriptions_without_links_count_as_nodes() {
    let nodes = NodeConfig { max_nodes: 10, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open_as(&broker, "c").await;
    let mut made = 0;
    let error = loop {
        match client.attach_as(&format!("s{made}"), durable(TOPIC)).await {
            Ok((link, _)) => client.leave(link).await,
            Err(error) => break error,
        };
        made += 1;
    };
    assert_eq!(error.condition.as_str(), "amqp:resource-limit-exceeded");
    assert!((5..=10).contains(&made), "{made}");
    assert_eq!(unsubscribe(&broker, "c", "s0", &[]), "closed");
    client.attach_as("again", durable(TOPIC)).await.expect("there is room for one");
}

#[tokio::test]
async fn a_container_without_a_name_leaves_nothing_behind() {
    let broker = Broker::start(config());
    let mut publisher = Client::open(&broker).await;
    let sender = publisher.sender(TOPIC).await;
    let mut client = Client::open_as(&broker, "").await;
    let (link, answer) = client.attach_as("s", durable(TOPIC)).await.expect("attached");
    assert_eq!(answer.source.expect("one").expiry_policy.as_str(), "connection-close");
    client.leave(link).await;
    publisher.send_all(sender, ["0"]).await;
    let link = subscribe(&mut client, "s", durable(TOPIC)).await;
    assert_eq!(client.take(link, 1).await, ["0"]);
    // Another nameless container has its own names.
    let mut other = Client::open_as(&broker, "").await;
    let theirs = subscribe(&mut other, "s", durable(TOPIC)).await;
    publisher.send_all(sender, ["1"]).await;
    assert_eq!(client.take(link, 1).await, ["1"]);
    assert_eq!(other.take(theirs, 1).await, ["1"]);
    assert_eq!(client.find(Duration::from_millis(1), |_| None::<()>).await, None);
    client.close().await;
    let until = tokio::time::Instant::now() + PATIENCE;
    while unsubscribe(&broker, "", "s", &[]) != "amqp:not-found" {
        assert!(tokio::time::Instant::now() < until);
    }
}
