use std::collections::HashSet;

use hopline_timeline::{Stage, Timeline};

/// Checks that nothing of a timeline is lost: it begins where the message was created, has the
/// hops and the stays (ways through a node) expected of it, and all its stamps are filled in and
/// in order.
///
/// # Panics
/// If anything is missing.
pub fn assert_intact(timeline: &Timeline, hops: usize, stays: usize) {
    assert!(!timeline.overflow, "stamps were dropped: {timeline:?}");
    assert_eq!(timeline.hops().count(), hops, "hops of {timeline:?}");
    assert_eq!(timeline.stays().count(), stays, "stays of {timeline:?}");
    let has = |stage| timeline.stamps.iter().any(|stamp| stamp.known_stage() == Some(stage));
    for stage in [Stage::Create, Stage::Send] {
        assert!(has(stage), "no {} in {timeline:?}", stage.name());
    }
    assert!(timeline.stamps.iter().all(|it| it.at.is_some()), "not filled in: {timeline:?}");
    for span in timeline.hops().chain(timeline.stays()) {
        let delay_ns = timeline.delay_ns(span.from, span.to).expect("one host, one clock");
        assert!(delay_ns >= 0, "{span:?} goes back in time in {timeline:?}");
    }
}

/// Checks that no two timelines have one id.
///
/// # Panics
/// If two have.
pub fn assert_ids_differ(timelines: &[Timeline]) {
    let ids: HashSet<_> = timelines.iter().map(|timeline| timeline.id).collect();
    assert_eq!(ids.len(), timelines.len(), "ids that occur twice");
}
