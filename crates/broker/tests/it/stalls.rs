//! Nobody waits for what has happened already, however a message or a link has gone.

use crate::support::*;
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::wire::message::{Message, Properties};
use hopline_driver::engine::wire::outcome::Modified;
use hopline_driver::engine::wire::performative::{Flow, Performative, Transfer};
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::engine::wire::{DeliveryState, DeliveryTag};

const FAILED: Modified =
    Modified { delivery_failed: Some(true), undeliverable_here: None, message_annotations: None };

const NOT_HERE: Modified =
    Modified { delivery_failed: None, undeliverable_here: Some(true), message_annotations: None };

fn modified(modified: Modified) -> DeliveryState {
    DeliveryState::Modified(Box::new(modified))
}

/// A broker of small queues, those named `grouped` with groups, where one failure is enough.
fn small() -> Broker {
    let nodes = NodeConfig {
        max_messages: 8,
        max_delivery_count: Some(1),
        group_queues: vec!["grouped".into()],
        ..NodeConfig::default()
    };
    Broker::start(Config { nodes, ..config() })
}

fn of_group(message: Message) -> Message {
    let properties = Properties { group_id: Some("g".into()), ..Properties::default() };
    Message { properties, ..message }
}

/// Publishes as far as there is credit.
async fn fill(client: &mut Client, address: &str) -> hopline_driver::engine::LinkId {
    let sender = client.sender(address).await;
    client.send(sender, &text("first")).await;
    while client.engine().credit(sender) > 0 {
        client.send(sender, &text("more")).await;
    }
    sender
}

#[tokio::test]
async fn a_topic_s_publisher_gets_credit_when_the_full_subscription_goes() {
    let broker = small();
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    for leaves in [true, false] {
        let full = two.receiver("topic/t", 0).await;
        let keen = one.receiver("topic/t", 100).await;
        let sender = fill(&mut one, "topic/t").await;
        one.take(keen, 8).await;
        match leaves {
            true => two.detach(full).await,
            false => two = Client::open(&broker).await,
        }
        one.send(sender, &text("next")).await;
        one.take(keen, 1).await;
        one.detach(sender).await;
        one.detach(keen).await;
    }
}

#[tokio::test]
async fn publishers_get_credit_when_messages_have_failed_for_good() {
    let broker = small();
    let mut client = Client::open(&broker).await;
    let sender = fill(&mut client, "q").await;
    let receiver = client.receiver("q", 8).await;
    for _ in 0..8 {
        let delivery = client.receive(receiver).await;
        client.settle(&delivery, modified(FAILED)).await;
    }
    client.send(sender, &text("next")).await;
}

#[tokio::test]
async fn a_group_goes_on_when_its_message_has_failed_for_good() {
    let broker = small();
    let mut client = Client::open(&broker).await;
    let links = [client.receiver("grouped", 1).await, client.receiver("grouped", 1).await];
    let sender = client.sender("grouped").await;
    for body in ["1", "2"] {
        client.send(sender, &of_group(text(body))).await;
    }
    let first = client.receive(links[0]).await;
    client.settle(&first, modified(FAILED)).await;
    assert_eq!(client.take(links[1], 1).await, ["2"]);
}

#[tokio::test]
async fn a_group_goes_on_when_the_message_that_held_it_up_expires() {
    let broker = small();
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("grouped", 1).await;
    let sender = client.sender("grouped").await;
    client.send(sender, &of_group(with_ttl("1", 2000))).await;
    client.send(sender, &of_group(text("2"))).await;
    let first = client.receive(receiver).await;
    client.settle(&first, modified(NOT_HERE)).await;
    client.grant(receiver, 1).await;
    // Nobody else is there to take it, and what is behind it waits for it.
    client.assert_nothing(receiver).await;
    assert_eq!(client.take(receiver, 1).await, ["2"]);
}

/// Deliveries that never come whole use credit up like all others.
#[tokio::test]
async fn a_publisher_gets_credit_for_deliveries_that_it_has_aborted() {
    let broker = small();
    for resume in [false, true] {
        let mut raw = Raw::open(&broker);
        raw.attach_sender("q");
        for id in 0..100 {
            let (delivery_id, delivery_tag) = (Some(id), Some(DeliveryTag::from(u64::from(id))));
            let transfer = Transfer {
                handle: 0,
                delivery_id,
                delivery_tag,
                message_format: Some(0),
                settled: None,
                more: false,
                rcv_settle_mode: None,
                state: None,
                resume,
                aborted: !resume,
                batchable: false,
            };
            raw.put(&transfer);
            // Each is one of the eight that there is credit for at once.
            if id % 4 == 3 {
                while !matches!(raw.frame(), Some(Performative::Flow(Flow { handle: Some(0), .. })))
                {
                }
            }
        }
    }
}

#[tokio::test]
async fn a_drain_is_answered_when_looking_has_used_up_the_turn_and_the_credit() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let long = vec![("n".to_owned(), "x".repeat(200 << 10).as_str().into())];
    for _ in 0..2 {
        let message = Message { application_properties: long.clone(), ..text("long") };
        client.send(sender, &message).await;
    }
    for source in [browsing(selecting("q", "n IS NOT NULL")), Source::at("q")] {
        let receiver = client.receiver_from(source).await.expect("attached");
        client.grant_only(receiver, 1);
        client.drain(receiver).await;
        client.receive(receiver).await;
    }
}
