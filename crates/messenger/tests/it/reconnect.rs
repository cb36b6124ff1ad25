//! Connections that are lost and made again.

use crate::common::broker::Broker;
use crate::common::gate::Gate;
use crate::common::peer::Peer;
use crate::common::{builder, number, numbered};
use hopline_messenger::driver::Clock;
use hopline_messenger::driver::engine::{Answer, Connection, Event};
use hopline_messenger::{AmqpError, DeliveryState, Error, Messenger, Reconnect, Status, Symbol};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(10);

/// Pauses so short that a test can wait for them.
fn quick() -> Reconnect {
    Reconnect {
        first: Duration::from_millis(20),
        most: Duration::from_millis(100),
        stable: Duration::from_secs(5),
    }
}

fn messenger(name: &str) -> Messenger {
    builder(name).timeout(SOON).reconnect(quick()).build()
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let look = async {
        while !is_so() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, look).await.unwrap();
}

async fn next(messenger: &Messenger) -> u32 {
    let received = timeout(SOON, messenger.next()).await.unwrap().unwrap();
    messenger.accept(&received).unwrap();
    number(&received.message().unwrap())
}

fn close(engine: &mut Connection, condition: &'static str) {
    let error = AmqpError::new(Symbol::from_static(condition), "the test says so");
    engine.close(Some(error), Clock.now());
}

/// Accepts links and grants credit.
fn take(engine: &mut Connection, event: Event) {
    let Event::AttachRequest { link, attach } = event else { return };
    let answer = Answer {
        source: attach.source.map(|source| *source),
        target: attach.target.map(|target| *target),
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        offered_capabilities: Vec::new(),
        properties: Default::default(),
    };
    engine.accept(link, answer).unwrap();
    // Only to a link by which the other end sends.
    let _ = engine.set_credit(link, 10);
}

#[tokio::test]
async fn a_broker_that_comes_back_finds_subscription_and_messages_again() {
    let mut broker = Broker::start(0);
    let (port, url) = (broker.port, broker.url("q"));
    let (reader, sender) = (messenger("reader"), messenger("sender"));
    reader.subscribe(&url).await.unwrap();
    sender.connect(&url).await.unwrap();
    for n in 0..3 {
        broker.stop().await;
        until(|| sender.connections().is_empty()).await;
        let tracker = sender.put(&url, numbered(n)).unwrap();
        assert_eq!(sender.status(tracker), Status::Pending);
        broker = Broker::start(port);
        assert_eq!(next(&reader).await, n, "put while there was no broker");
        sender.send().await.unwrap();
        assert_eq!(sender.status(tracker), Status::Accepted);
    }
    assert!(reader.take_failures().is_empty() && sender.take_failures().is_empty());
    let (one, two) = tokio::join!(reader.stop(), sender.stop());
    one.and(two).unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn what_was_sent_without_outcome_is_aborted_told_and_not_sent_again() {
    let peer = Peer::start(|number, engine, event| match event {
        Event::Delivery(_) if number == 0 => close(engine, "amqp:connection:forced"),
        Event::Delivery(delivery) => {
            engine.settle(delivery.link, delivery.id, DeliveryState::Accepted).unwrap();
        }
        event => take(engine, event),
    })
    .await;
    let sender = messenger("sender");
    let lost = sender.put(&peer.url, numbered(1)).unwrap();
    let error = sender.send().await.unwrap_err();
    assert!(matches!(error, Error::Peer { what: "connection", .. }), "{error}");
    assert_eq!(sender.status(lost), Status::Aborted);
    let good = sender.put(&peer.url, numbered(2)).unwrap();
    sender.send().await.unwrap();
    assert_eq!((sender.status(lost), sender.status(good)), (Status::Aborted, Status::Accepted));
    assert_eq!((sender.counts().sent, peer.connections()), (2, 2));
}

#[tokio::test]
async fn what_came_and_was_not_taken_comes_again_once() {
    let broker = Broker::start(0);
    let (reader, sender) = (messenger("reader"), messenger("sender"));
    let gate = Gate::start(broker.port).await;
    let url = gate.url("q");
    reader.subscribe(&url).await.unwrap();
    for n in 0..5 {
        sender.put(&broker.url("q"), numbered(n)).unwrap();
    }
    sender.send().await.unwrap();
    until(|| reader.incoming() == 5).await;
    let taken = reader.get().unwrap();
    gate.cut();
    until(|| reader.incoming() == 0).await;
    until(|| reader.incoming() == 5).await;
    assert!(matches!(reader.accept(&taken), Err(Error::LinkGone)), "it was of another connection");
    let mut came = Vec::new();
    for _ in 0..5 {
        came.push(next(&reader).await);
    }
    assert_eq!(came, [0, 1, 2, 3, 4]);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(reader.incoming(), 0);
}

#[tokio::test]
async fn a_peer_that_always_closes_gets_longer_pauses_and_one_attempt_at_a_time() {
    let peer = Peer::start(|_, engine, event| {
        if let Event::Opened(_) = event {
            close(engine, "amqp:connection:forced");
        }
    })
    .await;
    let patience = Duration::from_millis(300);
    let sender = builder("sender").timeout(patience).reconnect(quick()).build();
    sender.put(&peer.url, numbered(1)).unwrap();
    sleep(Duration::from_millis(1_200)).await;
    let came = peer.came.lock().unwrap().clone();
    // From 50 to 100 ms a pause, once they are at their longest.
    assert!((5..=26).contains(&came.len()), "{came:?}");
    let pauses: Vec<_> = came.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[3..].iter().all(|pause| *pause >= quick().most / 2), "{pauses:?}");
    assert_eq!(peer.most.load(Ordering::SeqCst), 1, "one at a time");
    assert_eq!(sender.outgoing(), 1, "it waits");
    sender.stop().await.unwrap_err();
    // What connected before the stop may be accepted after it.
    sleep(Duration::from_millis(100)).await;
    let ended = peer.connections();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(peer.connections(), ended, "a stopped messenger connects no more");
}

#[tokio::test]
async fn a_reason_that_will_not_pass_ends_it_and_is_told() {
    let conditions = ["amqp:unauthorized-access", "amqp:not-allowed", "amqp:not-implemented"];
    for condition in conditions {
        let peer = Peer::start(move |number, engine, event| match event {
            Event::Opened(_) if number > 0 => close(engine, condition),
            Event::Attached { .. } | Event::Credit { .. } => {}
            Event::Delivery(_) => close(engine, "amqp:connection:forced"),
            event => take(engine, event),
        })
        .await;
        let messenger = messenger("m");
        messenger.subscribe(&peer.url).await.unwrap();
        messenger.put(&peer.url, numbered(1)).unwrap();
        let error = timeout(SOON, messenger.next()).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(condition), "{error}");
        sleep(Duration::from_millis(300)).await;
        assert_eq!(peer.connections(), 2, "{condition}");
        assert_eq!(messenger.outgoing(), 0);
    }
}

#[tokio::test]
async fn who_was_never_reached_is_told_at_once() {
    let port = {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let messenger = messenger("m");
    let error = messenger.subscribe(&format!("amqp://127.0.0.1:{port}/q")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_demand_is_not_asked_for_twice() {
    let broker = Broker::start(0);
    let gate = Gate::start(broker.port).await;
    let (reader, sender) = (messenger("reader"), messenger("sender"));
    reader.recv(Some(3));
    reader.subscribe(&gate.url("q")).await.unwrap();
    for n in 0..10 {
        sender.put(&broker.url("q"), numbered(n)).unwrap();
    }
    assert_eq!([next(&reader).await, next(&reader).await], [0, 1]);
    until(|| reader.incoming() == 1).await;
    // Time for both outcomes to arrive.
    sleep(Duration::from_millis(200)).await;
    gate.cut();
    assert_eq!(next(&reader).await, 2);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(reader.incoming(), 0, "three were asked for");
}
