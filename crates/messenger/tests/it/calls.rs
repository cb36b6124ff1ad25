//! What calls promise: no error where there is none, nothing lost where a future is dropped, and no
//! time spent on timers.

use crate::common::broker::Broker;
use crate::common::{builder, listening, number, numbered};
use hopline_messenger::Status;
use std::time::{Duration, Instant};
use tokio::time::timeout;

#[tokio::test]
async fn nothing_there_is_no_error() {
    let (peer, url) = listening(builder("peer"), "q").await;
    let messenger = builder("m").build();
    assert!(messenger.get().is_none());
    messenger.connect(&url).await.unwrap();
    assert!(messenger.get().is_none() && peer.get().is_none());
    messenger.send().await.unwrap();
    assert!(messenger.take_failures().is_empty() && peer.take_failures().is_empty());
}

#[tokio::test]
async fn a_send_that_is_dropped_half_way_changes_nothing() {
    let (peer, url) = listening(builder("peer").credit(2), "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..5).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    for _ in 0..20 {
        assert!(timeout(Duration::from_millis(2), sender.send()).await.is_err());
    }
    for n in 0..5 {
        let received = peer.next().await.unwrap();
        assert_eq!(number(&received.message().unwrap()), n);
        peer.accept(&received).unwrap();
    }
    sender.send().await.unwrap();
    assert!(trackers.iter().all(|tracker| sender.status(*tracker) == Status::Accepted));
    assert_eq!((sender.counts().sent, sender.outgoing()), (5, 0));
}

#[tokio::test]
async fn all_that_is_ready_goes_out_in_one_write() {
    let (peer, url) = listening(builder("peer"), "q").await;
    let sender = builder("sender").build();
    sender.put(&url, numbered(0)).unwrap();
    peer.accept(&peer.next().await.unwrap()).unwrap();
    sender.send().await.unwrap();
    let writes = || sender.connections()[0].counters.writes;
    let before = writes();
    // No task runs in between: the test does not await.
    (1..=20).for_each(|n| {
        sender.put(&url, numbered(n)).unwrap();
    });
    assert_eq!(writes(), before);
    sender.flush();
    assert_eq!(writes(), before + 1);
}

/// A missed wake-up, a delay for the sake of batches, or Nagle's algorithm would each cost every
/// message its 10 ms or more.
#[tokio::test]
async fn one_message_after_the_other_waits_for_no_timer() {
    let broker = Broker::start(0);
    let (sender, receiver) = (builder("sender").build(), builder("receiver").build());
    receiver.subscribe(&broker.url("q")).await.unwrap();
    let mut round_trips = Vec::new();
    for n in 0..40 {
        let start = Instant::now();
        sender.put(&broker.url("q"), numbered(n)).unwrap();
        receiver.accept(&receiver.next().await.unwrap()).unwrap();
        sender.send().await.unwrap();
        round_trips.push(start.elapsed());
    }
    round_trips.sort();
    assert!(round_trips[10] < Duration::from_millis(10), "{round_trips:?}");
}
