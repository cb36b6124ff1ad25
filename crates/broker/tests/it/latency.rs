//! Nothing waits for company, and what is ready together goes together.

use crate::support::{Broker, Raw, config, encoded, text, transfer};
use hopline_driver::engine::wire::frame::FrameHeader;
use std::io::Read;
use std::time::{Duration, Instant};

/// Less than what a delayed acknowledgement or a tick of a timer takes.
const AT_ONCE: Duration = Duration::from_millis(30);

fn pair(broker: &Broker) -> (Raw, Raw) {
    let (mut publisher, mut consumer) = (Raw::open(broker), Raw::open(broker));
    publisher.attach_sender("q");
    consumer.attach_receiver("q", 1000);
    (publisher, consumer)
}

/// Reads until so many transfers have come; how many reads that took.
fn read_transfers(consumer: &mut Raw, count: usize) -> usize {
    let (mut octets, mut reads) = (Vec::new(), 0);
    loop {
        let mut chunk = [0; 65_536];
        let n = consumer.socket.read(&mut chunk).expect("something comes");
        octets.extend_from_slice(&chunk[..n]);
        reads += 1;
        let (mut at, mut transfers) = (0, 0);
        while let Ok(Some(frame)) = FrameHeader::parse(&octets[at..], u32::MAX)
            && octets.len() - at >= frame.size
        {
            transfers += usize::from(octets[at + frame.body..].starts_with(&[0, 0x53, 0x14]));
            at += frame.size;
        }
        if transfers == count {
            return reads;
        }
    }
}

#[test]
fn a_message_that_comes_alone_goes_on_at_once() {
    let broker = Broker::start(config());
    let (mut publisher, mut consumer) = pair(&broker);
    let mut times = Vec::new();
    for id in 0..21 {
        let begun = Instant::now();
        publisher.write(&transfer(id, false, &encoded(&text("m"))));
        read_transfers(&mut consumer, 1);
        times.push(begun.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    times.sort();
    assert!(times[10] < AT_ONCE, "{times:?}");
}

#[test]
fn what_is_ready_together_is_written_together() {
    let broker = Broker::start(config());
    let (mut publisher, mut consumer) = pair(&broker);
    for round in 0..5 {
        let ids = round * 100..round * 100 + 100;
        let burst: Vec<u8> = ids.flat_map(|id| transfer(id, false, &encoded(&text("m")))).collect();
        publisher.write(&burst);
        let reads = read_transfers(&mut consumer, 100);
        assert!(reads <= 3, "{reads} reads for one burst");
    }
}
