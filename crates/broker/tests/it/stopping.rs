//! The broker stops: peers are told, what is left is counted, nobody holds it up for long.

use crate::support::{Broker, Client, Raw, config, text};
use hopline_broker::{Config, Stopped};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[tokio::test]
async fn peers_are_told_and_what_is_left_is_counted() {
    let mut broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["0", "1", "2", "3"]).await;
    let receiver = client.receiver("q", 2).await;
    client.take(receiver, 1).await;
    client.receive(receiver).await;
    client.idle(50).await;
    let mut raw = Raw::open(&broker);
    broker.ask_to_stop();
    let error = client.closed().await.expect("a reason");
    assert_eq!(error.condition.as_str(), "amqp:connection:forced");
    let closed = tokio::task::spawn_blocking(move || {
        let closed = raw.closed();
        drop(raw);
        closed
    });
    assert_eq!(closed.await.expect("no panic").as_deref(), Some("amqp:connection:forced"));
    assert_eq!(broker.stop(), Stopped { messages: 3, connections: 0 });
}

#[tokio::test]
async fn an_idle_broker_stops_at_once() {
    let begun = Instant::now();
    let broker = Broker::start(config());
    assert_eq!(broker.stop(), Stopped { messages: 0, connections: 0 });
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn peers_that_do_not_answer_hold_it_up_no_longer_than_the_limit() {
    let stop_timeout = Duration::from_millis(500);
    let broker = Broker::start(Config { stop_timeout, ..config() });
    let silent = TcpStream::connect(broker.address()).expect("it listens");
    let opened = Raw::open(&broker);
    let mut stuck = Raw::open(&broker);
    stuck.attach_receiver("q", 1_000_000);
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for _ in 0..400 {
        client.post(sender, &text("x".repeat(50_000)), true).await;
    }
    client.close().await;
    let begun = Instant::now();
    let stopped = broker.stop();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(stopped, Stopped { messages: 400, connections: 2 });
    drop((silent, opened, stuck));
}

#[tokio::test]
async fn nobody_is_let_in_any_more() {
    let mut broker = Broker::start(config());
    let _opened = Raw::open(&broker);
    broker.ask_to_stop();
    let until = Instant::now() + Duration::from_secs(1);
    while TcpStream::connect(broker.address()).is_ok() {
        assert!(Instant::now() < until, "it still listens");
        std::thread::sleep(Duration::from_millis(10));
    }
}
