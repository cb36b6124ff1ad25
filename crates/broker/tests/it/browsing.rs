//! Distribution modes: `copy` looks and leaves, `move` takes.

use crate::support::*;
use hopline_driver::engine::wire::outcome::Modified;
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{DeliveryState, Role, Symbol};
use std::time::Duration;

async fn answered_mode(client: &mut Client, address: &str, asked: Option<&'static str>) -> String {
    let distribution_mode = asked.map(Symbol::from_static);
    let source = Source { distribution_mode, ..Source::at(address) };
    let options = client.options(Role::Receiver, source, Target::default());
    let (_, answer) = client.attach(options).await.expect("attached");
    let source = answer.source.expect("a source");
    source.distribution_mode.expect("the mode in force").to_string()
}

#[tokio::test]
async fn the_answer_names_the_mode_in_force() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    for (address, asked, in_force) in [
        ("q", None, "move"),
        ("q", Some("move"), "move"),
        ("q", Some("copy"), "copy"),
        ("q", Some("weird"), "move"),
        // Looking without taking would never empty the queue of a subscription.
        ("topic/t", Some("copy"), "move"),
    ] {
        assert_eq!(answered_mode(&mut client, address, asked).await, in_force, "{asked:?}");
    }
}

#[tokio::test]
async fn all_are_seen_and_nothing_becomes_of_them() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["0", "1", "2", "3"]).await;
    let failed = Modified { delivery_failed: Some(true), ..Modified::default() };
    let outcomes = [
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::rejected(Symbol::from_static("x:no"), "no"),
        DeliveryState::Modified(Box::new(failed)),
    ];
    for _ in 0..2 {
        let browser = client.receiver_from(browsing(Source::at("q"))).await.expect("attached");
        client.grant(browser, 10).await;
        for (expected, outcome) in ["0", "1", "2", "3"].into_iter().zip(&outcomes) {
            let delivery = client.receive(browser).await;
            assert_eq!(body(&delivery), expected);
            client.settle(&delivery, outcome.clone()).await;
        }
        client.assert_nothing(browser).await;
    }
    let receiver = client.receiver("q", 10).await;
    for expected in ["0", "1", "2", "3"] {
        let delivery = client.receive(receiver).await;
        assert_eq!(body(&delivery), expected);
        assert_eq!(decoded(&delivery).header.delivery_count, 0);
    }
}

#[tokio::test]
async fn drain_tells_the_end() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["0", "1"]).await;
    let browser = client.receiver_from(browsing(Source::at("q"))).await.expect("attached");
    client.grant_only(browser, 10);
    client.drain(browser).await;
    for expected in ["0", "1"] {
        let delivery = client.try_receive(browser, Duration::ZERO).await.expect("before the end");
        assert_eq!(body(&delivery), expected);
    }
    assert!(client.try_receive(browser, Duration::ZERO).await.is_none());
}
