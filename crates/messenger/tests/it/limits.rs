//! Store, windows, credit: what is kept, how much of it, and for how long.

use crate::common::{builder, listening, number, numbered};
use hopline_messenger::timeline::{Stage, new_timeline};
use hopline_messenger::{
    DeliveryState, Error, Message, Messenger, PutOptions, Sampling, Span, Status, Value,
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Long enough for octets to pass over loopback.
const MOMENT: Duration = Duration::from_millis(100);

async fn until(what: impl Fn() -> bool) {
    let reached = async {
        while !what() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_secs(5), reached).await.unwrap();
}

#[tokio::test]
async fn a_full_store_is_an_error_of_the_put() {
    let messenger = builder("sender").store(3, 10_000).build();
    for n in 0..3 {
        messenger.put("nobody", numbered(n)).unwrap();
    }
    let error = messenger.put("nobody", numbered(3)).unwrap_err();
    assert!(matches!(error, Error::Full { messages: 3, .. }), "{error}");
    assert_eq!((messenger.outgoing(), messenger.buffered()), (3, 3));

    let messenger = builder("sender").store(100, 10_000).build();
    messenger.put("nobody", Message::data(vec![0; 20_000])).unwrap();
    assert!(matches!(messenger.put("nobody", numbered(1)), Err(Error::Full { .. })));
}

#[tokio::test]
async fn the_store_has_room_again_once_there_are_outcomes() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").store(1, 10_000).build();
    for n in 0..10 {
        let tracker = sender.put(&url, numbered(n)).unwrap();
        assert!(sender.is_buffered(tracker) || sender.unsettled() == 1);
        receiver.accept(&receiver.next().await.unwrap()).unwrap();
        sender.settled(0).await.unwrap();
        assert!(!sender.is_buffered(tracker));
        assert_eq!((sender.outgoing(), sender.unsettled()), (0, 0));
    }
}

#[tokio::test]
async fn what_falls_out_of_the_outgoing_window_is_unknown() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").outgoing_window(2).build();
    let trackers: Vec<_> = (0..3).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    for _ in 0..3 {
        receiver.accept(&receiver.next().await.unwrap()).unwrap();
    }
    sender.send().await.unwrap();
    let statuses: Vec<_> = trackers.iter().map(|tracker| sender.status(*tracker)).collect();
    assert_eq!(statuses, [Status::Unknown, Status::Accepted, Status::Accepted]);
}

#[tokio::test]
async fn outcomes_can_be_told_up_to_a_message() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..5).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    let mut came = Vec::new();
    for _ in 0..5 {
        came.push(receiver.next().await.unwrap());
    }
    receiver.reject(&came[1], None).unwrap();
    receiver.settle(&came[3], DeliveryState::Accepted, Span::UpTo).unwrap();
    sender.send_n(4).await.unwrap();
    let statuses: Vec<_> = trackers.iter().map(|tracker| sender.status(*tracker)).collect();
    let accepted = Status::Accepted;
    let want =
        [accepted.clone(), Status::Rejected(None), accepted.clone(), accepted, Status::Pending];
    assert_eq!(statuses, want);
    let ours: Vec<_> = came.iter().map(|came| receiver.status(came.tracker())).collect();
    assert_eq!(ours, want);
    // The first outcome holds.
    assert!(matches!(receiver.release(&came[1]), Err(Error::Tracker)));
    receiver.modify(&came[4], true, false).unwrap();
    sender.send().await.unwrap();
    assert_eq!(sender.status(trackers[4]), Status::Modified);
}

#[tokio::test]
async fn trackers_settle_what_is_in_the_incoming_window() {
    let (receiver, url) = listening(builder("receiver").incoming_window(2), "q").await;
    let sender = builder("sender").build();
    for n in 0..4 {
        sender.put(&url, numbered(n)).unwrap();
    }
    let mut came = Vec::new();
    for _ in 0..4 {
        came.push(receiver.next().await.unwrap());
    }
    let settle =
        |at: usize| receiver.settle_tracker(came[at].tracker(), DeliveryState::Accepted, Span::One);
    assert_eq!(receiver.status(came[1].tracker()), Status::Unknown);
    assert!(matches!(settle(1), Err(Error::Tracker)));
    settle(2).unwrap();
    assert!(matches!(settle(2), Err(Error::Tracker)));
    // Nothing is accepted by accident, and messages themselves need no window.
    sleep(MOMENT).await;
    assert_eq!(sender.counts().accepted, 1);
    receiver.release(&came[0]).unwrap();
    sender.send_n(1).await.unwrap();
    assert_eq!(sender.counts().released, 1);
}

#[tokio::test]
async fn beyond_the_window_is_accepted_if_that_was_asked_for() {
    let options = builder("receiver").incoming_window(1).accept_beyond_window(true);
    let (receiver, url) = listening(options, "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..3).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    let mut came = Vec::new();
    for _ in 0..3 {
        came.push(receiver.next().await.unwrap());
    }
    sender.send_n(2).await.unwrap();
    let statuses: Vec<_> = trackers.iter().map(|tracker| sender.status(*tracker)).collect();
    assert_eq!(statuses, [Status::Accepted, Status::Accepted, Status::Pending]);
    assert!(matches!(receiver.reject(&came[0], None), Err(Error::Tracker)));
}

#[tokio::test]
async fn no_more_comes_than_was_asked_for() {
    let (listener, url) = listening(builder("listener"), "q").await;
    let reader = builder("reader").build();
    reader.recv(Some(0));
    reader.subscribe(&url).await.unwrap();
    for n in 0..20 {
        listener.put("q", numbered(n)).unwrap();
    }
    sleep(MOMENT).await;
    assert!(reader.get().is_none());
    reader.recv(Some(3));
    until(|| reader.incoming() == 3).await;
    sleep(MOMENT).await;
    assert_eq!((reader.incoming(), listener.buffered()), (3, 17));
    // Taking them is no new demand.
    for n in 0..3 {
        assert_eq!(number(&reader.get().unwrap().message().unwrap()), n);
    }
    sleep(MOMENT).await;
    assert!(reader.get().is_none());
    reader.recv(None);
    for n in 3..20 {
        assert_eq!(number(&reader.next().await.unwrap().message().unwrap()), n);
    }
}

#[tokio::test]
async fn a_smaller_demand_does_not_break_the_link() {
    let (listener, url) = listening(builder("listener"), "q").await;
    let reader = builder("reader").build();
    reader.recv(Some(1000));
    reader.subscribe(&url).await.unwrap();
    for n in 0..50 {
        listener.put("q", numbered(n)).unwrap();
        listener.flush();
        reader.recv(Some(n % 3));
    }
    reader.recv(None);
    for n in 0..50 {
        assert_eq!(number(&reader.next().await.unwrap().message().unwrap()), n);
    }
    assert!(reader.take_failures().is_empty());
}

#[tokio::test]
async fn credit_bounds_what_waits_here() {
    let (receiver, url) = listening(builder("receiver").credit(10), "q").await;
    let sender = builder("sender").build();
    for n in 0..100 {
        sender.put(&url, numbered(n)).unwrap();
    }
    until(|| receiver.incoming() == 10).await;
    sleep(MOMENT).await;
    assert_eq!(receiver.incoming(), 10);
    for n in 0..100 {
        assert!(receiver.incoming() <= 10);
        assert_eq!(number(&receiver.next().await.unwrap().message().unwrap()), n);
    }
}

/// A subscriber that never tells outcomes is sent no more than 16,384 messages.
#[tokio::test]
async fn unsettled_messages_are_bounded() {
    let (receiver, url) = listening(builder("receiver").credit(5000), "q").await;
    let sender = builder("sender").store(20_000, 1 << 30).timelines(Sampling::Off).build();
    for n in 0..16_500 {
        sender.put(&url, numbered(n)).unwrap();
    }
    let mut last = receiver.next().await.unwrap();
    for _ in 1..16_384 {
        last = receiver.next().await.unwrap();
    }
    sleep(MOMENT).await;
    assert!(receiver.get().is_none());
    receiver.settle(&last, DeliveryState::Accepted, Span::UpTo).unwrap();
    for _ in 16_384..16_500 {
        receiver.accept(&receiver.next().await.unwrap()).unwrap();
    }
    sender.send().await.unwrap();
    assert_eq!(sender.counts().accepted, 16_500);
}

#[tokio::test]
async fn only_the_latest_outcomes_are_kept() {
    let (receiver, url) = listening(builder("receiver").credit(5000), "q").await;
    let sender = builder("sender").store(70_000, 1 << 30).timelines(Sampling::Off).build();
    let settled = PutOptions { settled: true, ..PutOptions::default() };
    for n in 0..65_600 {
        sender.put_with(&url, numbered(n), settled).unwrap();
    }
    until(|| {
        while receiver.get().is_some() {}
        sender.outgoing() == 0
    })
    .await;
    let mut kept = 0;
    sender.take_outcomes(|_| kept += 1);
    assert_eq!((kept, sender.counts().settled), (65_536, 65_600));
    sender.take_outcomes(|_| unreachable!("each is handed out once"));
}

/// Waits of 1 µs that are given up: each message must come out once all the same.
#[tokio::test]
async fn next_loses_nothing_when_it_is_dropped() {
    let (receiver, url) = listening(builder("receiver").credit(7), "q").await;
    let sender = builder("sender").build();
    for n in 0..500 {
        sender.put(&url, numbered(n)).unwrap();
    }
    let mut expected = 0;
    while expected < 500 {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            received = receiver.next() => {
                let received = received.unwrap();
                assert_eq!(number(&received.message().unwrap()), expected);
                receiver.accept(&received).unwrap();
                expected += 1;
            }
        }
        let brief = timeout(Duration::from_micros(1), receiver.next()).await;
        if let Ok(received) = brief {
            assert_eq!(number(&received.unwrap().message().unwrap()), expected);
            expected += 1;
        }
    }
}

#[tokio::test]
async fn routes_lead_elsewhere_and_rewrites_change_the_to() {
    let (receiver, url) = listening(builder("receiver"), "").await;
    let sender = builder("sender")
        .route("orders/*", format!("{url}west/$1"))
        .rewrite("amqp://%/secret", "hidden-$1")
        .build();
    let to = |to: &str| {
        let mut message = numbered(1);
        message.properties.to = Some(to.into());
        message
    };
    sender.put("orders/coffee/1", to("orders/coffee/1")).unwrap();
    sender.put("orders/x", to("amqp://host/secret")).unwrap();
    sender.put("orders/x", to("amqp://me:password@host/plain")).unwrap();
    let wants = [
        ("west/coffee/1", "orders/coffee/1"),
        ("west/x", "hidden-host"),
        ("west/x", "amqp://host/plain"),
    ];
    let mut came = Vec::new();
    for _ in wants {
        let received = receiver.next().await.unwrap();
        let to = received.message().unwrap().properties.to.unwrap();
        came.push((received.address().to_owned(), to));
    }
    came.sort();
    let mut wants = wants.map(|(address, to)| (address.to_owned(), to.to_owned()));
    wants.sort();
    assert_eq!(came, wants);
}

async fn timelines(sampling: Sampling, carried: bool) -> usize {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").timelines(sampling).build();
    let mut count = 0;
    for n in 0..6 {
        let mut message = numbered(n);
        if carried {
            let id = hopline_messenger::timeline::TimelineId([7; 16]);
            let mut octets = Vec::new();
            new_timeline(id, &mut octets);
            let value = Value::Binary(octets.into());
            let name = hopline_messenger::timeline::ANNOTATION;
            message.message_annotations.0.push((name.into(), value));
        }
        sender.put(&url, message).unwrap();
        let timeline = receiver.next().await.unwrap().timeline();
        let sends = timeline.iter().flat_map(|timeline| &timeline.stamps);
        count += sends.filter(|stamp| stamp.stage == Stage::Send.code()).count();
    }
    count
}

#[tokio::test]
async fn sampling_says_who_is_stamped() {
    assert_eq!(timelines(Sampling::All, false).await, 6);
    assert_eq!(timelines(Sampling::OneIn(3), false).await, 2);
    assert_eq!(timelines(Sampling::OneIn(3), true).await, 6);
    assert_eq!(timelines(Sampling::OnlyCarried, false).await, 0);
    assert_eq!(timelines(Sampling::OnlyCarried, true).await, 6);
    assert_eq!(timelines(Sampling::Off, true).await, 0);
}

#[tokio::test]
async fn the_send_stamp_says_what_the_message_waited_for() {
    let listener = builder("listener").build();
    let url = listener.subscribe("amqp://~127.0.0.1:0").await.unwrap() + "/q";
    for n in 0..2 {
        listener.put_with("q", numbered(n), PutOptions::default()).unwrap();
    }
    let reader: Messenger = builder("reader").build();
    reader.subscribe(&url).await.unwrap();
    for wait in ["no-consumer", "order"] {
        let timeline = reader.next().await.unwrap().timeline().unwrap();
        let send = timeline.stamps.iter().find(|s| s.stage == Stage::Send.code()).unwrap();
        let found = hopline_messenger::timeline::Wait::from_code(send.detail).unwrap();
        assert_eq!(found.name(), wait);
    }
}

/// The socket takes each full outbox at once, so that nothing but ourselves sends the rest.
#[tokio::test]
async fn what_is_put_beyond_the_outbox_leaves_without_a_word_of_the_peer() {
    let (receiver, url) = listening(builder("receiver").credit(2000), "q").await;
    let sender = builder("sender").build();
    sender.connect(&url).await.unwrap();
    let how = PutOptions { settled: true, ..PutOptions::default() };
    let message = Message::data(vec![0; 5000]);
    for _ in 0..400 {
        sender.put_with(&url, &message, how).unwrap();
    }
    let (mut taken, mut came) = (Vec::new(), 0);
    while came < 400 {
        assert_eq!(receiver.get_many(&mut taken, 0), 0);
        came += receiver.next_many(&mut taken, 7).await.unwrap();
        came += receiver.get_many(&mut taken, usize::MAX);
        assert_eq!(came, taken.len());
    }
    sender.send().await.unwrap();
    assert_eq!(sender.counts().settled, 400);
}
