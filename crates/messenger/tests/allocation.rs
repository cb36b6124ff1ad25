//! In steady state a message costs no allocation, neither where it is put nor where it is taken.
//! A program of its own: it counts what its allocator is asked for.

#![allow(clippy::unwrap_used)]

use allocation_counter::measure;
use hopline_messenger::{DeliveryState, Message, Messenger, PutOptions, Received, Sampling, Span};
use tokio::runtime::Builder;

/// Messages put and taken at once: fewer than an outbox holds, for what waits is kept apart.
const BATCH: usize = 300;
const BATCHES: usize = 40;

/// Two messengers on this thread, the only one whose allocations are counted.
struct Pair {
    sender: Messenger,
    receiver: Messenger,
    url: String,
    settled: bool,
    taken: Vec<Received>,
}

impl Pair {
    async fn new(sampling: Sampling, settled: bool) -> Self {
        let receiver = Messenger::builder().credit(4 * BATCH as u32).timelines(sampling).build();
        let url = receiver.subscribe("amqp://~127.0.0.1:0").await.unwrap() + "/q";
        let sender = Messenger::builder().timelines(sampling).build();
        sender.connect(&url).await.unwrap();
        let taken = Vec::with_capacity(BATCH);
        let mut pair = Self { sender, receiver, url, settled, taken };
        // Buffers and windows grow to their size, and outcomes to theirs.
        let message = Message::data("warm");
        for _ in 0..250 {
            pair.pass(&message).await;
        }
        pair
    }

    /// One batch, from the first put to the last outcome.
    async fn pass(&mut self, message: &Message) {
        let how = PutOptions { settled: self.settled, ..PutOptions::default() };
        for _ in 0..BATCH {
            self.sender.put_with(&self.url, message, how).unwrap();
        }
        self.sender.flush();
        let mut came = 0;
        while came < BATCH {
            came += self.receiver.next_many(&mut self.taken, BATCH).await.unwrap();
            let last = self.taken.last().unwrap();
            self.receiver.settle(last, DeliveryState::Accepted, Span::UpTo).unwrap();
            self.receiver.flush();
            self.taken.clear();
        }
        self.sender.send().await.unwrap();
    }
}

/// Allocations for each message of some batches.
fn allocations(sampling: Sampling, settled: bool, octets: usize) -> f64 {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut pair = runtime.block_on(Pair::new(sampling, settled));
    let message = Message::data(vec![7; octets]);
    let counted = measure(|| {
        for _ in 0..BATCHES {
            runtime.block_on(pair.pass(&message));
        }
    });
    counted.count_total as f64 / (BATCH * BATCHES) as f64
}

#[test]
fn a_message_costs_no_allocation() {
    for (sampling, settled) in [
        (Sampling::Off, true),
        (Sampling::Off, false),
        (Sampling::All, true),
        (Sampling::All, false),
    ] {
        let each = allocations(sampling, settled, 100);
        println!("{sampling:?} settled {settled}: {each:.4}");
        // A read, a write and a range of outcomes may cost some; they are shared by many messages.
        assert!(each < 0.1, "{each} allocations a message, {sampling:?}, settled {settled}");
    }
}

#[test]
fn the_count_is_at_work() {
    // Too large to be copied into the outbox: it is kept by reference, in a buffer of its own.
    let each = allocations(Sampling::Off, true, 5000);
    assert!(each >= 1.0, "{each} allocations a message");
}
