//! Dispositions of ranges: whatever numbers they name, they cost what is unsettled, and what a peer
//! has paid for by deliveries (part 2, 2.7.6, 2.8.10).

use crate::support::{Complaint, Script, attach, config, detach, disposition, grant, transfer};
use hopline_engine::wire::outcome::Rejected;
use hopline_engine::wire::performative::{Disposition, Transfer};
use hopline_engine::wire::{AmqpError, DeliveryState, Role, condition};
use hopline_engine::{Config, Event, LinkId};

const ALL: (u32, u32) = (0, u32::MAX);

/// A script to which `n` deliveries were sent unsettled, the first with the id `first`.
fn sent_from(first: u32, n: u32) -> (Script, LinkId) {
    let config = Config { first_id: first, ..config() };
    let (mut script, link) = Script::attached(config, Role::Receiver, 0);
    let granted = crate::support::Flow { next_incoming_id: Some(first), ..grant(0, first, n) };
    script.send(&granted);
    for n in 0..n {
        script.end.send(link, &n.to_be_bytes()).unwrap();
        if n % 1000 == 999 {
            script.octets();
            let seen = Some(first.wrapping_add(n + 1));
            script.send(&crate::support::Flow { next_incoming_id: seen, ..crate::support::flow() });
        }
    }
    script.heard();
    script.end.events.clear();
    (script, link)
}

fn told(script: &mut Script) -> Vec<u32> {
    let id = |event| match event {
        Event::Outcome { id, .. } | Event::PeerSettled { id, .. } => Some(id.0),
        _ => None,
    };
    script.end.take_events().into_iter().filter_map(id).collect()
}

/// Tells all deliveries again and again; how often that went well.
fn repeat(script: &mut Script, state: &DeliveryState, times: usize) -> usize {
    let (first, last) = ALL;
    let all = Disposition {
        settled: false,
        ..disposition(Role::Receiver, first, last, Some(state.clone()))
    };
    for n in 0..times {
        script.send(&all);
        script.end.events.clear();
        if let Some(complaint) = script.complaint() {
            assert_eq!(complaint, Complaint::Session(condition::RESOURCE_LIMIT_EXCEEDED));
            return n;
        }
    }
    times
}

fn rejected(octets: usize) -> DeliveryState {
    let error = AmqpError::new(condition::NOT_FOUND, "x".repeat(octets));
    DeliveryState::Rejected(Rejected { error: Some(Box::new(error)) })
}

#[test]
fn the_whole_number_space_settles_all_that_there_is() {
    for start in [0, 5, 0x7fff_fff0, 0x8000_0000, 0xffff_fff0] {
        let (mut script, _) = sent_from(start, 32);
        script.send(&disposition(Role::Receiver, ALL.0, ALL.1, Some(DeliveryState::Accepted)));
        let all: Vec<_> = (0..32).map(|n| start.wrapping_add(n)).collect();
        assert_eq!(told(&mut script), all);
        for _ in 0..100_000 {
            script.send(&disposition(Role::Receiver, ALL.0, ALL.1, None));
        }
        assert!(told(&mut script).is_empty(), "unknown ids are skipped");
        assert!(script.complaint().is_none() && script.end.connection.is_open());
    }
    let (mut script, _) = Script::attached(config(), Role::Sender, 10);
    (0..3).for_each(|id| script.transfer(&transfer(0, id), b"x"));
    script.end.events.clear();
    script.send(&disposition(Role::Sender, ALL.0, ALL.1, None));
    assert_eq!(told(&mut script), [0, 1, 2]);
}

#[test]
fn half_of_the_number_space_is_the_widest_range_and_the_last_is_never_before_the_first() {
    let (mut script, _) = sent_from(0, 3);
    for _ in 0..100_000 {
        script.send(&disposition(Role::Receiver, 3, 0x8000_0002, None));
    }
    script.send(&disposition(Role::Receiver, 0, 0x7fff_ffff, None));
    assert_eq!(told(&mut script), [0, 1, 2]);
    for (first, last) in [(5, 3), (1, 0), (0, 0x8000_0000), (7, 0x8000_0007), (0, 0xffff_fffe)] {
        let (mut script, _) = sent_from(0, 1);
        script.send(&disposition(Role::Receiver, first, last, None));
        assert_eq!(script.complaint(), Some(Complaint::Session(condition::INVALID_FIELD)));
        assert!(script.end.connection.is_open());
    }
}

#[test]
fn ranges_of_three_over_the_wrap_hit_their_three() {
    for start in [0xffff_fffe_u32, 0x7fff_fffe] {
        let (mut script, _) = sent_from(start.wrapping_sub(2), 8);
        script.send(&disposition(Role::Receiver, start, start.wrapping_add(3), None));
        let four: Vec<_> = (0..4).map(|n| start.wrapping_add(n)).collect();
        assert_eq!(told(&mut script), four);
    }
}

#[test]
fn who_tells_of_all_deliveries_over_and_over_loses_the_session() {
    let (mut script, _) = sent_from(0, 10_000);
    let times = repeat(&mut script, &DeliveryState::Accepted, 1000);
    assert!((10..100).contains(&times), "{times} times 10,000 deliveries");
    assert!(script.end.connection.is_open());
}

#[test]
fn long_states_for_many_deliveries_cost_more_than_short_ones() {
    let (mut script, _) = sent_from(0, 10_000);
    let long = repeat(&mut script, &rejected(60_000), 1000);
    assert!(long < 10, "{long} times");
    let (mut script, _) = sent_from(0, 10);
    assert_eq!(repeat(&mut script, &rejected(60_000), 500), 500, "few deliveries may");
}

#[test]
fn who_tells_and_then_settles_goes_on_for_ever() {
    let (mut script, link) = sent_from(0, 0);
    script.send(&grant(0, 0, u32::MAX));
    for round in 0..600_u32 {
        let (first, last) = (round * 100, round * 100 + 99);
        for id in first..=last {
            script.end.send(link, &id.to_be_bytes()).unwrap();
        }
        script.octets();
        let seen = Some(last + 1);
        script.send(&crate::support::Flow { next_incoming_id: seen, ..crate::support::flow() });
        let state = Some(rejected(900));
        let told = disposition(Role::Receiver, first, last, state);
        script.send(&Disposition { settled: false, ..told.clone() });
        script.send(&Disposition { settled: false, ..told.clone() });
        script.send(&told);
        script.end.events.clear();
    }
    assert!(script.complaint().is_none());
}

#[test]
fn links_that_come_and_go_do_not_cost_what_others_have_unsettled() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 100_000);
    for id in 0..60_000 {
        script.transfer(&transfer(0, id), b"");
        if id % 1000 == 0 {
            script.octets();
            script.end.events.clear();
        }
    }
    let began = std::time::Instant::now();
    for n in 0..6000_u32 {
        script.attach(&attach(&n.to_string(), 1, Role::Sender));
        script.transfer(&Transfer { more: false, ..transfer(1, 60_000 + n) }, b"");
        script.send(&detach(1, true));
        script.octets();
        script.end.events.clear();
    }
    // Looking through 60,000 at each detach would take minutes in a test's build.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    script.send(&disposition(Role::Sender, ALL.0, ALL.1, None));
    let told = told(&mut script);
    assert_eq!(told, (0..60_000).collect::<Vec<_>>(), "those of the links that are gone are not");
}
