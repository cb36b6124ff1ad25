//! What is held of many small messages is in proportion to their octets, not to the buffers that
//! they were read into. In a process of its own: nothing else grows meanwhile.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests too")]

#[path = "it/support/mod.rs"]
mod support;

use hopline_driver::engine::wire::Performative;
use std::io::Read;
use std::ops::Range;
use support::{Broker, Raw, config, encoded, text, transfer};

/// Messages, and publishers that send them one by one, so that each comes in a read of its own.
const MESSAGES: u32 = 100_000;
const PUBLISHERS: u32 = 20;

/// What a message may take beyond its octets: its entries here and there, and the allocator's.
const OVERHEAD: usize = 1024;

/// Octets that this process has allocated, whether they were written to or not.
fn allocated() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = status.split(' ').nth(5).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

/// Sends messages with these ids from each publisher, each after the outcome of the one before.
fn publish(publishers: &mut [Raw], ids: Range<u32>) {
    let message = encoded(&text("a small message"));
    for id in ids {
        for raw in &mut *publishers {
            raw.write(&transfer(id, false, &message));
        }
        for raw in &mut *publishers {
            while !matches!(raw.frame(), Some(Performative::Disposition(_))) {}
        }
    }
}

fn publishers(broker: &Broker, queue: &str) -> Vec<Raw> {
    let publisher = |_| {
        let mut raw = Raw::open(broker);
        raw.attach_sender(queue);
        raw
    };
    (0..PUBLISHERS).map(publisher).collect()
}

#[test]
fn many_small_messages_do_not_keep_their_read_buffers() {
    let broker = Broker::start(config());
    // Two consumers that settle nothing: a session holds no more than 65,536 unsettled.
    for _ in 0..2 {
        let mut consumer = Raw::open(&broker);
        consumer.attach_receiver("held", MESSAGES);
        std::thread::spawn(move || while consumer.socket.read(&mut [0; 65_536]).is_ok() {});
    }
    for (queue, messages) in [("held", MESSAGES), ("waiting", MESSAGES / 5)] {
        let mut publishers = publishers(&broker, queue);
        publish(&mut publishers, 0..50);
        let before = allocated();
        publish(&mut publishers, 50..50 + messages / PUBLISHERS);
        let grown = allocated().saturating_sub(before);
        assert!(grown < messages as usize * OVERHEAD, "{queue}: {} MiB", grown >> 20);
    }
}
