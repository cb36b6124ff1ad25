//! Groups of messages: kept in order everywhere, and together where that is switched on.

use crate::support::*;
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::wire::DeliveryState;
use hopline_driver::engine::wire::message::{Message, Properties};
use hopline_driver::engine::wire::outcome::Modified;
use std::collections::HashMap;

fn with_groups() -> Config {
    let nodes = NodeConfig { group_queues: vec!["grouped*".into()], ..NodeConfig::default() };
    Config { nodes, ..config() }
}

/// A message whose body begins with its group, if it has one.
fn message(body: &str, group: Option<&str>) -> Message {
    let properties = Properties { group_id: group.map(Into::into), ..Properties::default() };
    Message { properties, ..text(body) }
}

async fn send(client: &mut Client, address: &str, bodies: &[&str]) {
    let sender = client.sender(address).await;
    for body in bodies {
        let group = body.split_once('-').map(|(group, _)| group);
        let state = client.send(sender, &message(body, group)).await;
        assert_eq!(state, DeliveryState::Accepted);
    }
    client.detach(sender).await;
}

/// The group-id and group-sequence of any queue are the publisher's, and the order too.
#[tokio::test]
async fn sequence_and_order_are_passed_on() {
    let broker = Broker::start(with_groups());
    let mut client = Client::open(&broker).await;
    for address in ["plain", "grouped"] {
        let (sender, receiver) = (client.sender(address).await, client.receiver(address, 10).await);
        let numbers = [u32::MAX - 1, u32::MAX, 0, 1, 1];
        for group_sequence in numbers.map(Some) {
            let group_id = Some("g".to_owned());
            let properties = Properties { group_id, group_sequence, ..Properties::default() };
            client.send(sender, &Message { properties, ..text("x") }).await;
        }
        for number in numbers {
            let delivery = client.receive(receiver).await;
            let properties = decoded(&delivery).properties;
            assert_eq!(properties.group_sequence, Some(number), "{address}");
            assert_eq!(properties.group_id.as_deref(), Some("g"));
        }
    }
}

#[tokio::test]
async fn a_group_stays_with_one_consumer_and_in_order() {
    let broker = Broker::start(with_groups());
    let mut client = Client::open(&broker).await;
    let mut of_group = HashMap::new();
    let links = [client.receiver("grouped", 100).await, client.receiver("grouped", 100).await];
    let bodies: Vec<_> = (0..60).map(|n| format!("g{}-{n}", n % 12)).collect();
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    send(&mut client, "grouped", &bodies).await;
    let mut count = [0, 0];
    let mut last = HashMap::new();
    for _ in 0..60 {
        let delivery = client.expect("delivery", |event| match event {
            hopline_driver::engine::Event::Delivery(delivery) => Some(delivery.clone()),
            _ => None,
        });
        let delivery = delivery.await;
        let body = body(&delivery);
        let (group, n) = body.split_once('-').expect("a group");
        let (link, n) = (delivery.link, n.parse::<i32>().expect("a number"));
        assert_eq!(*of_group.entry(group.to_owned()).or_insert(link), link, "{group}");
        assert!(last.insert(group.to_owned(), n).is_none_or(|before| before < n), "{body}");
        count[usize::from(link == links[1])] += 1;
        // Credit for more is there, so the group stays, whether something is unsettled or not.
        if n % 2 == 0 {
            client.settle(&delivery, DeliveryState::Accepted).await;
        }
    }
    assert!(count[0] > 0 && count[1] > 0, "both have some: {count:?}");
}

#[tokio::test]
async fn it_waits_for_its_consumer_while_that_has_some_unsettled() {
    let broker = Broker::start(with_groups());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let first = one.receiver("grouped", 1).await;
    send(&mut one, "grouped", &["a-1", "a-2", "a-3"]).await;
    let held = one.receive(first).await;
    assert_eq!(body(&held), "a-1");
    let second = two.receiver("grouped", 10).await;
    two.assert_nothing(second).await;
    send(&mut one, "grouped", &["loose"]).await;
    assert_eq!(two.take(second, 1).await, ["loose"]);
    // Nothing is unsettled any more, and there is no credit: the next one takes over.
    one.settle(&held, DeliveryState::Accepted).await;
    assert_eq!(two.take(second, 2).await, ["a-2", "a-3"]);
}

#[tokio::test]
async fn it_moves_when_its_consumer_leaves_and_nothing_is_out_of_order() {
    let broker = Broker::start(with_groups());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let first = one.receiver("grouped", 3).await;
    send(&mut two, "grouped", &["a-1", "a-2", "a-3", "a-4"]).await;
    for expected in ["a-1", "a-2", "a-3"] {
        assert_eq!(body(&one.receive(first).await), expected);
    }
    let second = two.receiver("grouped", 10).await;
    two.assert_nothing(second).await;
    drop(one);
    assert_eq!(two.take(second, 4).await, ["a-1", "a-2", "a-3", "a-4"]);
}

#[tokio::test]
async fn what_is_released_comes_first_to_whoever_holds_the_group() {
    let broker = Broker::start(with_groups());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let first = one.receiver("grouped", 2).await;
    send(&mut two, "grouped", &["a-1", "a-2", "a-3"]).await;
    let (held, kept) = (one.receive(first).await, one.receive(first).await);
    let second = two.receiver("grouped", 10).await;
    one.settle(&held, DeliveryState::Released).await;
    two.assert_nothing(second).await;
    one.grant(first, 10).await;
    assert_eq!(one.take(first, 2).await, ["a-1", "a-3"]);
    one.settle(&kept, DeliveryState::Accepted).await;
    two.assert_nothing(second).await;
}

#[tokio::test]
async fn whoever_is_barred_leaves_the_group_to_others() {
    let broker = Broker::start(with_groups());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let first = one.receiver("grouped", 10).await;
    send(&mut two, "grouped", &["a-1", "a-2", "loose"]).await;
    let not_here = Modified { undeliverable_here: Some(true), ..Modified::default() };
    for _ in 0..3 {
        let delivery = one.receive(first).await;
        one.settle(&delivery, DeliveryState::Modified(Box::new(not_here.clone()))).await;
    }
    one.assert_nothing(first).await;
    send(&mut two, "grouped", &["loose"]).await;
    assert_eq!(one.take(first, 1).await, ["loose"]);
    let second = two.receiver("grouped", 10).await;
    assert_eq!(two.take(second, 3).await, ["a-1", "a-2", "loose"]);
}

/// There are 1,024 lanes for any number of groups.
#[tokio::test]
async fn more_groups_than_lanes() {
    let broker = Broker::start(with_groups());
    let mut client = Client::open(&broker).await;
    let links = [client.receiver("grouped", 3_000).await, client.receiver("grouped", 3_000).await];
    let sender = client.sender("grouped").await;
    for n in 0..3_000 {
        client.post(sender, &message("x", Some(&n.to_string())), true).await;
    }
    let mut count = [0, 0];
    for _ in 0..3_000 {
        let delivery = client.expect("delivery", |event| match event {
            hopline_driver::engine::Event::Delivery(delivery) => Some(delivery.clone()),
            _ => None,
        });
        let delivery = delivery.await;
        count[usize::from(delivery.link == links[1])] += 1;
        client.settle_only(delivery.link, delivery.id, DeliveryState::Accepted);
    }
    assert!(count[0] > 500 && count[1] > 500, "{count:?}");
}

#[tokio::test]
async fn filters_are_for_those_who_browse() {
    let broker = Broker::start(with_groups());
    let mut client = Client::open(&broker).await;
    let error = client.receiver_from(selecting("grouped", "n = 1")).await.expect_err("refused");
    assert_eq!(error.condition, "amqp:not-implemented");
    let sender = client.sender("grouped").await;
    client.send_numbered(sender, 0..3).await;
    let source = browsing(selecting("grouped", "n = 1"));
    let browser = client.receiver_from(source).await.expect("attached");
    client.grant(browser, 10).await;
    assert_eq!(client.take(browser, 1).await, ["1"]);
    client.assert_nothing(browser).await;
    // Plain queues keep no groups together.
    let (one, two) = (client.receiver("plain", 10).await, client.receiver("plain", 10).await);
    send(&mut client, "plain", &["a-1", "a-2"]).await;
    assert_eq!((client.take(one, 1).await.len(), client.take(two, 1).await.len()), (1, 1));
}

#[tokio::test]
async fn drain_is_answered_though_others_hold_what_is_there() {
    let broker = Broker::start(with_groups());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let first = one.receiver("grouped", 1).await;
    send(&mut two, "grouped", &["a-1", "a-2"]).await;
    one.receive(first).await;
    let second = two.receiver("grouped", 10).await;
    two.drain(second).await;
    two.assert_nothing(second).await;
}
