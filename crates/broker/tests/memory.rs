//! What is held of messages is in proportion to their octets, not to the buffers that they were
//! read into. In a process of its own: nothing else grows meanwhile.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests too")]

#[path = "it/support/mod.rs"]
mod support;

use hopline_driver::engine::wire::Performative;
use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use support::{Broker, Raw, config, encoded, text, transfer};

/// Messages, and publishers that send them one by one, so that each comes in a read of its own.
const MESSAGES: u32 = 100_000;
const PUBLISHERS: u32 = 20;

/// What a message may take beyond its octets: its entries here and there, and the allocator's.
const OVERHEAD: usize = 1024;

/// One test at a time: what another allocates would count, too.
static ALONE: Mutex<()> = Mutex::new(());

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
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A delivery in two transfers.
fn in_halves(id: u32, message: &[u8]) -> Vec<u8> {
    let (first, second) = message.split_at(message.len() / 2);
    [transfer(id, true, first), transfer(id, false, second)].concat()
}

#[test]
fn large_messages_take_twice_their_octets_at_most() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.attach_sender("large");
    let mut ids = 0;
    let mut publish = |octets: usize, count: u32| {
        let message = encoded(&text("x".repeat(octets)));
        let before = allocated();
        for _ in 0..count {
            match octets < 100_000 {
                true => raw.write(&transfer(ids, false, &message)),
                false => raw.write(&in_halves(ids, &message)),
            }
            ids += 1;
            while !matches!(raw.frame(), Some(Performative::Disposition(_))) {}
        }
        let grown = allocated().saturating_sub(before);
        let most = 2 * octets * count as usize + (1 << 20);
        assert!(grown < most, "{count} of {octets}: {} MiB", grown >> 20);
    };
    publish(65_536, 1);
    publish(65_536, 300);
    publish(200_000, 100);
}
