//! Priorities: passed on everywhere, an order where that is switched on.

use crate::support::*;
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::wire::DeliveryState;
use hopline_driver::engine::wire::message::{Header, Message};

fn with_priorities() -> Config {
    let priority_queues = vec!["urgent".into(), "by-priority/*".into()];
    let nodes = NodeConfig { priority_queues, ..NodeConfig::default() };
    Config { nodes, ..config() }
}

fn message(body: &str, priority: u8) -> Message {
    Message { header: Header { priority, ..Header::default() }, ..text(body) }
}

async fn send(client: &mut Client, address: &str, messages: &[(&str, u8)]) {
    let sender = client.sender(address).await;
    for (body, priority) in messages {
        let state = client.send(sender, &message(body, *priority)).await;
        assert_eq!(state, DeliveryState::Accepted);
    }
    client.detach(sender).await;
}

const MIXED: [(&str, u8); 7] =
    [("4a", 4), ("0a", 0), ("9a", 9), ("4b", 4), ("5a", 5), ("9b", 9), ("0b", 0)];
const ORDERED: [&str; 7] = ["9a", "9b", "5a", "4a", "4b", "0a", "0b"];

#[tokio::test]
async fn higher_ones_come_first_and_equals_in_order() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    for address in ["urgent", "by-priority/x"] {
        send(&mut client, address, &MIXED).await;
        let receiver = client.receiver(address, 10).await;
        assert_eq!(client.take(receiver, 7).await, ORDERED, "{address}");
    }
}

#[tokio::test]
async fn other_queues_keep_their_order_and_pass_priorities_on() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    let sent = [("a", 0), ("b", 255), ("c", 9), ("d", 10), ("e", 4)];
    send(&mut client, "by-priority", &sent).await;
    let receiver = client.receiver("by-priority", 10).await;
    for (expected, priority) in sent {
        let delivery = client.receive(receiver).await;
        assert_eq!(body(&delivery), expected);
        assert_eq!(decoded(&delivery).header.priority, priority);
    }
}

/// There are ten levels: above 9 all are like 9 (3.2.1).
#[tokio::test]
async fn nine_is_the_highest_level() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    send(&mut client, "urgent", &[("8", 8), ("10", 10), ("255", 255), ("9", 9)]).await;
    let receiver = client.receiver("urgent", 10).await;
    assert_eq!(client.take(receiver, 4).await, ["10", "255", "9", "8"]);
}

#[tokio::test]
async fn no_header_is_priority_four() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    send(&mut client, "urgent", &[("3", 3), ("5", 5)]).await;
    let sender = client.sender("urgent").await;
    client.send_all(sender, ["none"]).await;
    let receiver = client.receiver("urgent", 10).await;
    assert_eq!(client.take(receiver, 3).await, ["5", "none", "3"]);
}

#[tokio::test]
async fn what_is_released_goes_back_to_its_place() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    send(&mut client, "urgent", &MIXED).await;
    let receiver = client.receiver("urgent", 4).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(client.receive(receiver).await);
    }
    send(&mut client, "urgent", &[("9c", 9), ("4c", 4)]).await;
    for delivery in held.iter().rev() {
        client.settle(delivery, DeliveryState::Released).await;
    }
    client.idle(50).await;
    client.grant(receiver, 10).await;
    let expected = ["9a", "9b", "9c", "5a", "4a", "4b", "4c", "0a", "0b"];
    assert_eq!(client.take(receiver, 9).await, expected);
}

#[tokio::test]
async fn one_that_overtakes_is_found_by_those_that_choose() {
    let broker = Broker::start(with_priorities());
    let mut client = Client::open(&broker).await;
    send(&mut client, "urgent", &[("4a", 4), ("0a", 0)]).await;
    let source = selecting("urgent", "amqp.priority <> 4");
    let link = client.receiver_from(source).await.expect("attached");
    client.grant(link, 1).await;
    assert_eq!(client.take(link, 1).await, ["0a"]);
    // Both come before the place that the consumer has got to.
    send(&mut client, "urgent", &[("1a", 1), ("9a", 9), ("4b", 4)]).await;
    client.grant(link, 10).await;
    assert_eq!(client.take(link, 2).await, ["9a", "1a"]);
    client.assert_nothing(link).await;
    let all = client.receiver("urgent", 10).await;
    assert_eq!(client.take(all, 2).await, ["4a", "4b"]);
}
