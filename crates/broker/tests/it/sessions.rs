//! What sessions and frames of a peer's choice do to its messages: nothing.

use crate::support::{Broker, Client, Raw, config, text};
use hopline_driver::engine::wire::performative::Open;
use hopline_driver::engine::wire::{Performative, Role};
use hopline_driver::engine::{ClientSasl, Config, Event};

#[tokio::test]
async fn the_end_of_a_session_gives_back_what_it_held_and_leaves_the_connection() {
    let broker = Broker::start(config());
    let mut other = Client::open(&broker).await;
    let sender = other.sender("q").await;
    other.send_all(sender, ["0", "1", "2", "3"]).await;
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("q", 3).await;
    assert_eq!(client.take(receiver, 1).await, ["0"]);
    for _ in 0..2 {
        client.receive(receiver).await;
    }
    let session = client.engine().link_info(receiver).expect("a link").session;
    client.engine().end(session, None);
    client.expect("end", |event| matches!(event, Event::SessionEnded { .. }).then_some(())).await;
    assert!(client.engine().is_open());
    let receiver = other.receiver("q", 10).await;
    assert_eq!(other.take(receiver, 3).await, ["1", "2", "3"]);
    client.close().await;
}

#[tokio::test]
async fn ids_and_counts_of_a_peer_may_begin_anywhere() {
    let broker = Broker::start(config());
    for first_id in [0xffff_fff0, 0x7fff_fff0] {
        let numbers = Config { first_id, ..Config::default() };
        let opened = Client::open_with(broker.address(), numbers, ClientSasl::Anonymous);
        let mut client = opened.await.expect("let in");
        let sender = client.sender("q").await;
        client.send_numbered(sender, 0..64).await;
        let receiver = client.receiver("q", 100).await;
        let want: Vec<_> = (0..64).map(|n| n.to_string()).collect();
        assert_eq!(client.take(receiver, 64).await, want);
        client.close().await;
    }
}

#[tokio::test]
async fn the_smallest_frames_carry_large_messages_both_ways() {
    let broker = Broker::start(config());
    let narrow = Config { max_frame_size: 512, ..Config::default() };
    let opened = Client::open_with(broker.address(), narrow, ClientSasl::Anonymous);
    let mut client = opened.await.expect("let in");
    let sender = client.sender("q").await;
    let receiver = client.receiver("q", 10).await;
    let body = "0123456789".repeat(100_000);
    client.send(sender, &text(&body)).await;
    assert_eq!(client.take(receiver, 1).await, [body]);
    client.close().await;
}

#[tokio::test]
async fn an_address_that_does_not_fit_in_the_answer_is_refused_and_the_connection_goes_on() {
    let broker = Broker::start(config());
    let mut raw = Raw::connect(&broker);
    raw.write(b"AMQP\x00\x01\x00\x00");
    raw.put(&Open { max_frame_size: 512, ..crate::support::open("narrow") });
    raw.put(&crate::support::begin());
    for (handle, octets) in (0..).zip([10, 600, 10_000, 10]) {
        let address = "a".repeat(octets);
        raw.put(&crate::support::attach(&handle.to_string(), handle, Role::Receiver, &address));
    }
    raw.skip_header();
    let mut told = Vec::new();
    while told.len() < 4 {
        match raw.frame() {
            Some(Performative::Attach(attach)) => told.push(attach.source.is_some()),
            Some(Performative::Detach(detach)) => {
                let why = detach.error.expect("a reason").condition;
                assert_eq!(why.as_str(), "amqp:frame-size-too-small");
            }
            Some(_) => {}
            None => panic!("the connection is lost"),
        }
    }
    assert_eq!(told, [true, false, false, true]);
}
