//! What the kernel told of a message stands in its timeline, where that is asked for.
#![cfg(target_os = "linux")]

use crate::support::{Broker, Client, config, timed, timeline};
use hopline_broker::Config;
use hopline_driver::KernelTimestamps;
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
