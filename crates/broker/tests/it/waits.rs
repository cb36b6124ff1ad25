//! The DEQUEUE stamp tells why a message waited.

use crate::support::{Broker, Client, config, timed, wait};
use hopline_driver::engine::ClientSasl;
use hopline_driver::timeline::Wait;
use std::time::Duration;

async fn sent(broker: &Broker, count: usize, octets: usize) -> Client {
    let mut client = Client::open(broker).await;
    let sender = client.sender("q").await;
    for _ in 0..count {
        client.send(sender, &timed(&"x".repeat(octets))).await;
    }
    client
}

#[tokio::test]
async fn it_did_not_wait() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("q", 1000).await;
    let sender = client.sender("q").await;
    let mut last = 0;
    for _ in 0..100 {
        last = client.post(sender, &timed("m"), false).await;
    }
    client.outcome(last).await;
    for _ in 0..100 {
        assert_eq!(wait(&client.receive(receiver).await), Wait::None);
    }
}

#[tokio::test]
async fn no_consumer_was_there() {
    let broker = Broker::start(config());
    let mut client = sent(&broker, 2, 1).await;
    let receiver = client.receiver("q", 10).await;
    for _ in 0..2 {
        assert_eq!(wait(&client.receive(receiver).await), Wait::NoConsumer);
    }
}

#[tokio::test]
async fn the_consumer_had_no_credit() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("q", 0).await;
    let _other = sent(&broker, 1, 1).await;
    client.grant(receiver, 1).await;
    assert_eq!(wait(&client.receive(receiver).await), Wait::NoCredit);
    let _other = sent(&broker, 1, 1).await;
    client.grant(receiver, 1).await;
    assert_eq!(wait(&client.receive(receiver).await), Wait::NoCredit);
}

#[tokio::test]
async fn the_last_consumer_left() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("q", 0).await;
    let sender = client.sender("q").await;
    client.detach(receiver).await;
    client.send(sender, &timed("m")).await;
    let receiver = client.receiver("q", 10).await;
    assert_eq!(wait(&client.receive(receiver).await), Wait::NoConsumer);
}

#[tokio::test]
async fn the_session_window_was_closed() {
    let broker = Broker::start(config());
    let narrow = hopline_driver::engine::Config { incoming_window: 4, ..Default::default() };
    let narrow = Client::open_with(broker.address(), narrow, ClientSasl::Anonymous).await;
    let mut narrow = narrow.expect("let in");
    let receiver = narrow.receiver("q", 100).await;
    let _sender = sent(&broker, 10, 1).await;
    let mut waits = Vec::new();
    for _ in 0..10 {
        waits.push(wait(&narrow.receive(receiver).await));
    }
    assert_eq!(waits[..4], [Wait::None; 4]);
    assert_eq!(waits[4..], [Wait::SessionWindow; 6]);
}

#[tokio::test]
async fn the_socket_was_full() {
    let broker = Broker::start(config());
    let mut slow = Client::open(&broker).await;
    let receiver = slow.receiver("q", 2000).await;
    // It reads nothing meanwhile.
    let _sender = sent(&broker, 400, 50_000).await;
    let mut last = Wait::None;
    for _ in 0..400 {
        let delivery = slow.try_receive(receiver, Duration::from_secs(10)).await;
        last = wait(&delivery.expect("all come"));
    }
    assert_eq!(last, Wait::SocketFull);
}
