//! What the kernel told of a message stands in its timeline, where that is asked for.
#![cfg(target_os = "linux")]

use crate::support::{Broker, Client, config, timed, timeline};
use hopline_broker::{Config, SideSink};
use hopline_driver::KernelTimestamps;
use hopline_driver::engine::wire::condition;
use hopline_driver::engine::wire::message::{Body, Message};
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::timeline::record::Record;
use hopline_driver::timeline::{Instant, Stage, Timeline};
use std::time::Duration;

fn broker(wanted: KernelTimestamps) -> Broker {
    let mut config: Config = config();
    for listener in &mut config.listeners {
        listener.socket.kernel_timestamps = wanted;
    }
    Broker::start(config)
}

/// Messages before the first one that counts: the kernel takes a moment to begin to stamp what
/// arrives, if no other socket of the host asks for it.
const WARM_UP: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

async fn through(broker: &Broker) -> Vec<(Instant, Timeline)> {
    let mut client = Client::open(broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 100).await);
    for _ in 0..WARM_UP {
        client.send(sender, &timed("m")).await;
        client.receive(receiver).await;
        tokio::time::sleep(PAUSE).await;
    }
    let mut timelines = Vec::new();
    for _ in 0..5 {
        let before = hopline_driver::Clock.now();
        client.send(sender, &timed("m")).await;
        timelines.push((before, timeline(&client.receive(receiver).await)));
    }
    timelines
}

#[tokio::test]
async fn the_arrival_at_the_host_stands_before_the_read() {
    let broker = broker(KernelTimestamps::Receive);
    for (before, timeline) in through(&broker).await {
        let stages: Vec<_> = timeline.stamps.iter().filter(|stamp| stamp.node == 1).collect();
        assert_eq!(stages[0].known_stage(), Some(Stage::KernelReceive));
        assert_eq!(stages[1].known_stage(), Some(Stage::Receive));
        let (arrived, read) = (stages[0].at.expect("told"), stages[1].at.expect("read"));
        assert!(arrived <= read, "{arrived:?} {read:?}");
        // The clocks are compared by readings that are some 100 ns apart.
        assert!(arrived.since_ns(before) > -10_000, "{before:?} {arrived:?}");
    }
}

#[tokio::test]
async fn without_the_setting_there_is_no_such_stamp() {
    let broker = broker(KernelTimestamps::Off);
    for (_, timeline) in through(&broker).await {
        let told = |stage: u8| stage == Stage::KernelReceive.code();
        assert!(!timeline.stamps.iter().any(|stamp| told(stamp.stage)));
    }
}

/// The side records of a broker that tells them to its own consumers.
fn telling(wanted: KernelTimestamps) -> Broker {
    let mut config = Config { side_records: SideSink::Timeline, ..config() };
    for listener in &mut config.listeners {
        listener.socket.kernel_timestamps = wanted;
    }
    Broker::start(config)
}

fn record(payload: &bytes::Bytes) -> Record {
    let message = Message::decode(payload).expect("a message");
    let content_type = message.properties.content_type.expect("it says what it is");
    assert_eq!(content_type.as_str(), "application/json");
    let Body::Data(parts) = &message.body else { panic!("{:?}", message.body) };
    Record::parse_line(&parts.concat()).expect("a record")
}

#[tokio::test]
async fn what_the_kernel_tells_of_sent_messages_comes_from_an_address_of_its_own() {
    let broker = telling(KernelTimestamps::ALL);
    let mut watcher = Client::open(&broker).await;
    let told = watcher.receiver("$timeline", 100).await;
    let mut client = Client::open(&broker).await;
    let (sender, receiver) = (client.sender("q").await, client.receiver("q", 100).await);
    for _ in 0..3 {
        client.send(sender, &timed("m")).await;
        let timeline = timeline(&client.receive(receiver).await);
        let send = timeline.stamps.last().expect("stamps");
        assert_eq!(send.known_stage(), Some(Stage::Send));
        let Record::Kernel(kernel) = record(&watcher.receive(told).await.payload) else {
            panic!("no record of the kernel")
        };
        assert_eq!((kernel.id, kernel.send), (timeline.id.0, send.at));
        let stages = [Stage::KernelSched, Stage::KernelSend, Stage::KernelAck];
        let got: Vec<_> = kernel.stamps.iter().map(|stamp| stamp.stage).collect();
        assert_eq!(got, stages.map(Stage::code));
        let instants = kernel.stamps.iter().map(|stamp| stamp.at);
        assert!([send.at].into_iter().chain(instants).is_sorted(), "{kernel:?}");
    }
    let Record::SideSummary(summary) = record(&watcher.receive(told).await.payload) else {
        panic!("no summary")
    };
    assert_eq!((summary.records, summary.dropped), (3, 0));
    drop(client);
    let Record::Connection(account) = record(&watcher.receive(told).await.payload) else {
        panic!("no account of the connection")
    };
    assert_eq!((account.nodelay, account.frames.transfers_out), (Some(true), 3));
}

#[tokio::test]
async fn only_the_broker_sends_to_that_address_and_only_if_it_is_asked_to() {
    let telling = telling(KernelTimestamps::Off);
    let mut client = Client::open(&telling).await;
    let target = Target { address: Some("$timeline".into()), ..Target::default() };
    let refused = client.sender_to(target.clone()).await.expect_err("refused");
    assert_eq!(refused.condition.as_str(), condition::NOT_ALLOWED.as_str());
    let silent = broker(KernelTimestamps::Receive);
    let mut client = Client::open(&silent).await;
    assert!(client.sender_to(target).await.is_err());
    let source = Source { address: Some("$timeline".into()), ..Source::default() };
    let refused = client.receiver_from(source).await.expect_err("refused");
    assert_eq!(refused.condition.as_str(), condition::NOT_FOUND.as_str());
}
