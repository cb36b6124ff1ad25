//! End to end between two messengers, with no broker between.

use crate::common::{builder, listening, number, numbered};
use hopline_messenger::timeline::Stage;
use hopline_messenger::{DeliveryState, Message, Messenger, PutOptions, Span, Status, TopUp};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The snippet of the README, with the other side in the same program.
#[tokio::test]
async fn ten_lines_of_rust() {
    let messenger = Messenger::builder().name("shop").build();
    let url = messenger.subscribe("amqp://~127.0.0.1:0").await.unwrap() + "/orders";
    messenger.put(&url, Message::data("one coffee")).unwrap();
    let order = messenger.next().await.unwrap();
    assert_eq!(order.message().unwrap().octets().unwrap(), "one coffee");
    assert!(order.timeline().is_some());
    messenger.accept(&order).unwrap();
    messenger.send().await.unwrap();
    messenger.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_put_comes_out_in_order_and_is_accepted() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..300).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    for n in 0..300 {
        let received = receiver.next().await.unwrap();
        assert_eq!(number(&received.message().unwrap()), n);
        assert_eq!(received.address(), "q");
        assert_eq!(received.delivery_count(), 0);
        receiver.accept(&received).unwrap();
    }
    sender.send().await.unwrap();
    assert!(trackers.iter().all(|tracker| sender.status(*tracker) == Status::Accepted));
    assert_eq!(sender.outgoing(), 0);
    assert_eq!(sender.counts().accepted, 300);
    assert_eq!(receiver.counts().received, 300);
    sender.stop().await.unwrap();
    receiver.stop().await.unwrap();
}

#[tokio::test]
async fn peers_receive_what_the_listener_puts() {
    let (listener, url) = listening(builder("listener"), "news").await;
    let early = listener.put("news", numbered(1)).unwrap();
    let reader = builder("reader").build();
    reader.subscribe(&url).await.unwrap();
    let late = listener.put("news", numbered(2)).unwrap();
    for n in 1..=2 {
        let received = reader.next().await.unwrap();
        assert_eq!(number(&received.message().unwrap()), n);
        reader.accept(&received).unwrap();
    }
    listener.send().await.unwrap();
    for tracker in [early, late] {
        assert_eq!(listener.status(tracker), Status::Accepted);
    }
}

#[tokio::test]
async fn each_outcome_reaches_the_sender() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..4).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    let why = DeliveryState::rejected("app:bad".into(), "not for us");
    let outcomes = [
        DeliveryState::Accepted,
        why,
        DeliveryState::Released,
        DeliveryState::modified(true, false),
    ];
    for outcome in outcomes {
        let received = receiver.next().await.unwrap();
        receiver.settle(&received, outcome, Span::One).unwrap();
    }
    sender.send().await.unwrap();
    let statuses: Vec<_> = trackers.iter().map(|tracker| sender.status(*tracker)).collect();
    assert_eq!(statuses[0], Status::Accepted);
    assert!(matches!(&statuses[1], Status::Rejected(Some(error))
        if error.description.as_deref() == Some("not for us")));
    assert_eq!(statuses[2..], [Status::Released, Status::Modified]);
    let mut delays = Vec::new();
    sender.take_outcomes(|outcome| delays.push(outcome));
    assert_eq!(
        delays.iter().map(|outcome| outcome.good).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert!(delays.iter().all(|outcome| outcome.delay_ns > 0));
}

#[tokio::test]
async fn settled_messages_need_no_outcome() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let how = PutOptions { settled: true, ..PutOptions::default() };
    let tracker = sender.put_with(&url, numbered(1), how).unwrap();
    sender.send().await.unwrap();
    assert_eq!(sender.status(tracker), Status::Settled);
    let received = receiver.next().await.unwrap();
    assert!(received.is_settled());
    receiver.accept(&received).unwrap();
}

#[tokio::test]
async fn the_timeline_has_all_stages_in_order() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let due = hopline_messenger::driver::Clock.now();
    let how = PutOptions { due: Some(due), ..PutOptions::default() };
    let mut message = numbered(1);
    message.message_annotations.0.push(("x-opt-other".into(), 7u32.into()));
    sender.put_with(&url, message, how).unwrap();
    let received = receiver.next().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let timeline = received.timeline().unwrap();
    let stages: Vec<_> = timeline.stamps.iter().map(|stamp| stamp.stage).collect();
    let want = [
        Stage::Due,
        Stage::Create,
        Stage::Publish,
        Stage::Serialize,
        Stage::Send,
        Stage::Receive,
        Stage::Deserialize,
        Stage::QueueEvent,
        Stage::NextEvent,
    ];
    assert_eq!(stages, want.map(Stage::code));
    let instants: Vec<_> = timeline.stamps.iter().map(|stamp| stamp.at.unwrap()).collect();
    assert!(instants.is_sorted(), "{instants:?}");
    let names: Vec<_> = timeline.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["sender", "receiver"]);
    let kept = received.message().unwrap().message_annotations;
    assert_eq!(kept.get("x-opt-other"), Some(&7u32.into()));
}

#[tokio::test]
async fn large_messages_arrive_whole() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let body: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    sender.put(&url, Message::data(body.clone())).unwrap();
    let received = receiver.next().await.unwrap();
    assert_eq!(received.message().unwrap().octets().unwrap(), body);
    let timeline = received.timeline().unwrap();
    assert!(timeline.stamps.iter().all(|stamp| stamp.at.is_some()));
    receiver.accept(&received).unwrap();
    sender.send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_tasks_share_a_messenger() {
    let (receiver, url) = listening(builder("receiver").credit(10), "q").await;
    let sender = builder("sender").build();
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (sender, url) = (sender.clone(), url.clone());
            tokio::spawn(async move {
                for n in 0..250 {
                    sender.put(&url, numbered(n)).unwrap();
                    tokio::task::yield_now().await;
                }
                sender.send().await.unwrap();
            })
        })
        .collect();
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let receiver = receiver.clone();
            tokio::spawn(async move {
                for _ in 0..500 {
                    let received = receiver.next().await.unwrap();
                    receiver.accept(&received).unwrap();
                }
            })
        })
        .collect();
    for task in tasks.into_iter().chain(readers) {
        tokio::time::timeout(Duration::from_secs(20), task).await.unwrap().unwrap();
    }
    assert_eq!(sender.counts().accepted, 1000);
}

#[tokio::test]
async fn the_sender_settles_by_a_frame_of_its_own_where_it_is_asked_to() {
    let (receiver, url) = listening(builder("receiver").top_up(TopUp::Each), "q").await;
    let sender = builder("sender").settle_second(true).split_writes(NonZeroUsize::new(8)).build();
    for n in 0..20 {
        sender.put(&url, numbered(n)).unwrap();
        let received = receiver.next().await.unwrap();
        assert_eq!(number(&received.message().unwrap()), n);
        receiver.accept(&received).unwrap();
        sender.send().await.unwrap();
    }
    assert_eq!(sender.counts().accepted, 20);
    sender.stop().await.unwrap();
    receiver.stop().await.unwrap();
    let account = sender.take_accounts().remove(0);
    assert_eq!(account.frames.transfers_out, 20);
    // One for each message, since the next one was put after the outcome of the one before.
    assert_eq!(account.frames.dispositions_out, 20);
    assert!(account.frames.flows_in >= 20, "{:?}", account.frames);
    // Two writes for each message and each disposition.
    assert!(account.io.writes >= 80, "{:?}", account.io);
    assert_eq!(account.io.short_writes, 0);
}
