//! A stamp on the hot path costs no allocation.

use allocation_counter::measure;
use hopline_timeline::{
    Appender, ClockDomain, Instant, MAX_OCTETS, Node, Stage, TimelineId, fill, is_timeline,
    new_timeline,
};

#[test]
fn a_timeline_is_begun_stamped_and_filled_in_without_allocation() {
    let record = Node::new("broker-1", ClockDomain::default()).record();
    let mut out = Vec::with_capacity(512);
    let info = measure(|| {
        new_timeline(TimelineId([1; 16]), &mut out);
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&record);
        for &stage in Stage::ALL {
            appender.stamp(stage, 0, Instant::from_nanos(1));
        }
        let slot = appender.stamp(Stage::Send, 0, Instant::UNFILLED).unwrap();
        fill(&mut out[slot..], Instant::from_nanos(2));
    });
    assert_eq!(info.count_total, 0);
    assert!(is_timeline(&out));
}

#[test]
fn not_even_the_limit_allocates() {
    let record = Node::new("broker-1", ClockDomain::default()).record();
    let mut out = Vec::with_capacity(MAX_OCTETS);
    new_timeline(TimelineId([1; 16]), &mut out);
    let mut dropped = 0;
    let info = measure(|| {
        let mut appender = Appender::new(&mut out, 0).unwrap();
        appender.node(&record);
        for ns in 0..1_000 {
            let slot = appender.stamp(Stage::Send, 0, Instant::from_nanos(ns));
            dropped += u32::from(slot.is_none());
        }
    });
    assert_eq!((info.count_total, dropped), (0, 744));
}
