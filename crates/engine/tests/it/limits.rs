//! Each limit of a connection that no other file is about: it is reached, and honest traffic just
//! below it goes on. What comes and goes leaves nothing.

use crate::support::{
    Complaint, Flow, Pair, Script, attach, begin, config, detach, disposition, end, flow, go_on,
    grant, open, options, plain, transfer,
};
use hopline_engine::wire::definitions::ReceiverSettleMode;
use hopline_engine::wire::performative::{Frame, Transfer};
use hopline_engine::wire::{DeliveryState, Role, Serial, condition};
use hopline_engine::{Anonymous, AttachOptions, Config, Event, LinkId};
use std::time::Duration;

fn state(script: &Script) -> usize {
    format!("{:?}", script.end.connection).len()
}

/// A delivery in `n` transfers of one octet each.
fn in_single_octets(script: &mut Script, id: u32, n: u32) {
    for at in 1..=n {
        let begun = if at == 1 { transfer(0, id) } else { go_on(0) };
        script.transfer(&Transfer { more: at < n, ..begun }, b"x");
    }
}

#[test]
fn a_delivery_has_no_more_transfers_than_the_limit_says() {
    let limits = Config { max_transfers: 1000, ..config() };
    let (mut script, _) = Script::attached(limits, Role::Sender, 100);
    in_single_octets(&mut script, 0, 1000);
    assert_eq!(script.end.deliveries()[0].payload.len(), 1000);
    let before = state(&script);
    in_single_octets(&mut script, 1, 1001);
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Link(condition::RESOURCE_LIMIT_EXCEEDED)));
    assert!(script.end.deliveries().is_empty() && state(&script) < before + 1000);
    assert!(script.is_well());
}

#[test]
fn endless_deliveries_of_single_octets_end_at_the_size_of_a_message() {
    let limits = Config { max_message_size: 100_000, ..config() };
    let (mut script, _) = Script::attached(limits, Role::Sender, 100);
    script.transfer(&Transfer { more: true, ..transfer(0, 0) }, b"x");
    for n in 1.. {
        script.transfer(&Transfer { more: true, ..go_on(0) }, b"x");
        if n % 4000 == 0 || n == 100_000 {
            assert!(state(&script) < 500_000);
            if let Some(complaint) = script.complaint() {
                assert_eq!(
                    (n, complaint),
                    (100_000, Complaint::Link(condition::MESSAGE_SIZE_EXCEEDED))
                );
                break;
            }
        }
    }
    assert!(state(&script) < 10_000, "what had come is given back");
}

#[test]
fn an_open_just_in_time_is_in_time_and_ends_the_handshakes_limit() {
    let mut script = Script::server(config(), Anonymous);
    script.raw(b"AMQP\x00\x01\x00\x00");
    script.octets();
    script.pass(Duration::from_millis(9_999));
    script.send(&open());
    script.heard();
    script.pass(Duration::from_secs(3600));
    assert!(script.end.connection.is_open() && script.heard().is_empty());
}

#[test]
fn as_many_links_as_there_may_be_carry_messages_and_one_more_is_refused() {
    let (handle_max, credit) = (9, 5);
    let mut script = Script::begun(Config { handle_max, ..config() });
    script.end.credit = credit;
    for handle in 0..=handle_max {
        script.attach(&attach(&handle.to_string(), handle, Role::Sender));
    }
    for handle in 0..=handle_max {
        script.transfer(&transfer(handle, handle), b"x");
    }
    assert_eq!(script.end.deliveries().len(), 10);
    script.send(&attach("more", handle_max + 1, Role::Sender));
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::FRAMING_ERROR)));
}

#[test]
fn as_many_sessions_as_there_may_be_carry_messages_and_one_more_is_refused() {
    let mut script = Script::opened(Config { channel_max: 4, ..config() });
    script.end.credit = 5;
    for channel in 0..=4 {
        script.send_on(channel, &begin());
        script.send_on(channel, &attach(&channel.to_string(), 0, Role::Sender));
    }
    script.heard();
    for channel in 0..=4 {
        script.send_on(channel, &transfer(0, 0));
    }
    assert_eq!(script.end.deliveries().len(), 5);
    script.send_on(5, &begin());
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::FRAMING_ERROR)));
}

#[test]
fn as_many_unsettled_deliveries_as_there_may_be_and_room_for_one_more_with_each_settled() {
    let limits = Config { max_unsettled: 50, ..config() };
    let (mut script, link) = Script::attached(limits, Role::Sender, 100_000);
    (0..50).for_each(|id| script.transfer(&transfer(0, id), b"x"));
    for id in 0..1000_u32 {
        script.end.connection.settle(link, Serial(id), DeliveryState::Accepted).unwrap();
        script.transfer(&transfer(0, id + 50), b"x");
        assert!(script.complaint().is_none());
    }
    script.transfer(&transfer(0, 1050), b"x");
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Session(condition::RESOURCE_LIMIT_EXCEEDED)));
}

#[test]
fn sessions_that_come_and_go_leave_nothing() {
    let mut script = Script::opened(config());
    script.end.credit = 10;
    let mut octets = Vec::new();
    begin().put(&mut octets, 7);
    attach("l", 1000, Role::Sender).put(&mut octets, 7);
    attach("m", 1001, Role::Receiver).put(&mut octets, 7);
    transfer(1000, 0).put(&mut octets, 7);
    end().put(&mut octets, 7);
    for _ in 0..3000 {
        script.raw(&octets);
        script.octets();
        script.end.events.clear();
    }
    assert!(script.end.connection.is_open());
    assert!(state(&script) < 10_000, "{} octets of state", state(&script));
}

#[test]
fn links_that_come_and_go_between_transfers_leave_nothing() {
    let mut script = plain();
    script.end.credit = 10;
    for n in 0..3000 {
        script.send(&attach("l", n % 3, Role::Sender));
        script.transfer(&transfer(n % 3, n), b"x");
        script.send(&detach(n % 3, n % 2 == 0));
        script.octets();
        script.end.events.clear();
    }
    assert!(script.is_well() && state(&script) < 10_000);
}

/// Flows and dispositions that change nothing, a hundred thousand of each.
fn idle_talk(script: &mut Script, link: LinkId) {
    let mut octets = Vec::new();
    for n in 0..1000_u32 {
        flow().put(&mut octets, 0);
        grant(0, 0, n).put(&mut octets, 0);
        disposition(Role::Receiver, n, n + 1000, None).put(&mut octets, 0);
        disposition(Role::Sender, 0, u32::MAX, Some(DeliveryState::Released)).put(&mut octets, 0);
    }
    for _ in 0..100 {
        script.raw(&octets);
        script.end.events.clear();
    }
    assert_eq!(script.end.connection.credit(link), 999);
}

#[test]
fn flows_and_dispositions_that_change_nothing_are_neither_answered_nor_kept() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    let before = state(&script);
    idle_talk(&mut script, link);
    assert!(script.octets().is_empty());
    assert!(state(&script) < before + 1000);
    script.send(&Flow { echo: true, ..flow() });
    assert_eq!(script.heard().len(), 1);
}

#[test]
fn two_ends_of_one_limit_never_run_into_it() {
    let narrow = || Config { max_unsettled: 3, ..config() };
    let mut pair = Pair::open_with(narrow(), narrow());
    let session = pair.begin();
    let second = ReceiverSettleMode::Second;
    let options = AttachOptions { rcv_settle_mode: second, ..options("l", Role::Sender) };
    let (sender, receiver) = pair.attach(session, options);
    pair.server.connection.set_credit(receiver, 1000).unwrap();
    pair.run();
    let mut n = 0_u32;
    for _ in 0..100 {
        while pair.client.send(sender, &n.to_be_bytes()).is_ok() {
            n += 1;
        }
        pair.run();
        for delivery in pair.server.deliveries() {
            let accepted = DeliveryState::Accepted;
            pair.server.connection.settle(receiver, delivery.id, accepted).unwrap();
        }
        pair.run();
        for event in pair.client.take_events() {
            if let Event::Outcome { id, .. } = event {
                pair.client.connection.settle_sent(sender, id, None).unwrap();
            }
        }
    }
    assert_eq!(pair.server.connection.credit(receiver), 700);
}
