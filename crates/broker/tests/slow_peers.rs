//! Peers that do not read: they bind a bounded amount of memory, and others go on.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests too")]

#[path = "it/support/mod.rs"]
mod support;

use hopline_broker::{Config, Limits};
use hopline_driver::engine::ClientSasl;
use hopline_driver::engine::wire::DeliveryState;
use std::time::{Duration, Instant};
use support::{Broker, Client, Raw, body, config, flow, text};

/// Octets of memory that this process holds.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_large_message_in_small_frames_to_a_slow_consumer_is_held_once() {
    const OCTETS: usize = 64 << 20;
    let limits = Limits { max_frame_size: 4096, ..Limits::default() };
    let broker = Broker::start(Config { limits, ..config() });
    let narrow = hopline_driver::engine::Config { max_frame_size: 4096, ..Default::default() };
    let slow = Client::open_with(broker.address(), narrow, ClientSasl::Anonymous).await;
    let (mut slow, mut client) = (slow.expect("let in"), Client::open(&broker).await);
    let (receiver, sender) = (slow.receiver("q", 10).await, client.sender("q").await);
    let message = text("x".repeat(OCTETS));
    let before = resident();
    assert_eq!(client.send(sender, &message).await, DeliveryState::Accepted);
    // The publisher's copies are ours too, so some of this is not the broker's.
    let grown = resident().saturating_sub(before);
    assert!(grown < 5 * OCTETS, "{} MiB", grown >> 20);
    let other = client.sender("other").await;
    client.send_all(other, ["meanwhile"]).await;
    let held = resident();
    let delivery = slow.receive(receiver).await;
    assert_eq!(body(&delivery).len(), OCTETS);
    assert!(delivery.transfers as usize > OCTETS / 4096);
    let grown = resident().saturating_sub(held);
    assert!(grown < 5 * OCTETS, "{} MiB to forward it", grown >> 20);
}

#[tokio::test]
async fn a_consumer_that_stops_reading_keeps_nobody_waiting() {
    let broker = Broker::start(config());
    let mut stuck = Raw::open(&broker);
    stuck.attach_receiver("q", 1_000_000);
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let large = "x".repeat(50_000);
    for _ in 0..400 {
        client.post(sender, &text(large.clone()), true).await;
    }
    let receiver = client.receiver("q", 1000).await;
    let begun = Instant::now();
    client.send_all(sender, ["last"]).await;
    let mut got = 0;
    while body(&client.receive(receiver).await) != "last" {
        got += 1;
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(got > 100, "the stuck one has only what its socket and outbox hold: {got}");
    drop(stuck);
    // What it did not settle comes to the other one.
    for _ in got..400 {
        client.receive(receiver).await;
    }
}

#[tokio::test]
async fn flows_without_end_from_a_peer_that_does_not_read_are_no_burden() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for _ in 0..200 {
        client.post(sender, &text("x".repeat(50_000)), true).await;
    }
    let mut stuck = Raw::open(&broker);
    stuck.attach_receiver("q", 1000);
    let mut octets = Vec::new();
    for _ in 0..10_000 {
        use hopline_driver::engine::wire::performative::{Flow, Frame};
        Flow { drain: true, ..flow(1000) }.put(&mut octets, 0);
    }
    let begun = Instant::now();
    for _ in 0..10 {
        stuck.write(&octets);
    }
    client.send_all(sender, ["still served"]).await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_silent_peer_with_a_full_socket_is_given_up() {
    let limits = Limits {
        connections: 2,
        idle_timeout: Some(Duration::from_millis(500)),
        ..Limits::default()
    };
    let broker = Broker::start(Config { limits, ..config() });
    let mut stuck = Raw::open(&broker);
    stuck.attach_receiver("q", 1_000_000);
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for _ in 0..400 {
        client.post(sender, &text("x".repeat(50_000)), true).await;
    }
    // Its place is free for another one only once it is gone.
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        let address = broker.address();
        let opened = Client::open_with(address, Default::default(), ClientSasl::Anonymous).await;
        client.idle(100).await;
        if opened.is_ok() {
            return;
        }
        assert!(Instant::now() < until, "it is still there");
    }
}
