//! Credit of links and windows of sessions (part 2, 2.5.6, 2.6.7 to 2.6.10).

use crate::support::{
    Complaint, Heard, Pair, Script, attach, begin, config, detach, flow, grant, options, transfer,
};
use hopline_engine::timeline::{Instant, Wait};
use hopline_engine::wire::performative::{Begin, Flow, Transfer};
use hopline_engine::wire::{Performative, Role, condition};
use hopline_engine::{CommandError, Config, Event, LinkId};

fn flows(heard: &[Heard]) -> Vec<&Flow> {
    let flow = |heard| match heard {
        &Heard { performative: Performative::Flow(ref flow), .. } => Some(flow),
        _ => None,
    };
    heard.iter().filter_map(flow).collect()
}

fn transfers(heard: &[Heard]) -> usize {
    heard.iter().filter(|h| matches!(h.performative, Performative::Transfer(_))).count()
}

/// Sends until it is blocked; how many went, and why no more.
fn send_all(script: &mut Script, link: LinkId) -> (usize, Wait) {
    let mut sent = 0_u32;
    while script.end.connection.send_block(link).is_none() {
        script.end.send(link, &sent.to_be_bytes()).unwrap();
        sent += 1;
    }
    (sent as usize, script.end.connection.send_block(link).unwrap())
}

#[test]
fn nothing_is_sent_before_credit_came_and_never_more_than_was_granted() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    assert_eq!(send_all(&mut script, link), (0, Wait::NoCredit));
    assert_eq!(script.end.send(link, b"x"), Err(CommandError::Blocked));
    script.send(&grant(0, 0, 5));
    assert!(matches!(script.end.events[..], [Event::Credit { .. }]));
    assert_eq!(send_all(&mut script, link), (5, Wait::NoCredit));
    assert_eq!(transfers(&script.heard()), 5);
}

#[test]
fn credit_counts_from_the_delivery_count_that_comes_with_it() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 5));
    send_all(&mut script, link);
    script.send(&grant(0, 0, 5));
    assert_eq!(script.end.connection.credit(link), 0, "the same again gives nothing");
    script.send(&grant(0, 0, 7));
    assert_eq!(script.end.connection.credit(link), 2);
    script.send(&grant(0, 5, 7));
    assert_eq!(script.end.connection.credit(link), 7);
    script.send(&Flow { delivery_count: None, ..grant(0, 0, 9) });
    assert_eq!(script.end.connection.credit(link), 4, "without a count the first one holds");
    script.send(&grant(0, 5, 0));
    assert_eq!(send_all(&mut script, link), (0, Wait::NoCredit));
    script.send(&grant(0, 5, 1));
    assert_eq!(send_all(&mut script, link), (1, Wait::NoCredit));
}

#[test]
fn the_most_credit_there_can_be_does_no_harm_at_either_end() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, u32::MAX));
    script.end.send(link, b"one").unwrap();
    assert_eq!(script.end.connection.credit(link), u32::MAX - 1);
    script.send(&Flow { drain: true, ..grant(0, 0, u32::MAX) });
    let heard = script.heard();
    let [flow] = flows(&heard)[..] else { panic!() };
    assert_eq!((flow.delivery_count, flow.link_credit), (Some(u32::MAX), Some(0)));

    let (mut script, link) = Script::attached(config(), Role::Sender, u32::MAX);
    script.transfer(&transfer(0, 0), b"x");
    assert_eq!(script.end.connection.credit(link), u32::MAX - 1);
    assert_eq!(script.end.deliveries().len(), 1);
}

#[test]
fn a_drain_of_an_empty_node_is_answered_and_new_credit_works_behind_it() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    for round in 0..3 {
        script.send(&Flow { drain: true, ..grant(0, round * 11, 10) });
        let heard = script.heard();
        let [flow] = flows(&heard)[..] else { panic!() };
        assert_eq!(flow.delivery_count, Some(round * 11 + 10));
        assert_eq!((flow.link_credit, flow.drain), (Some(0), true));
        script.send(&grant(0, round * 11 + 10, 1));
        assert_eq!(send_all(&mut script, link).0, 1);
        assert_eq!(transfers(&script.heard()), 1);
    }
    script.send(&Flow { drain: true, ..grant(0, 33, 0) });
    assert!(flows(&script.heard())[0].drain, "without credit it is answered at once");
}

#[test]
fn a_drain_waits_for_the_large_message_that_is_half_sent() {
    let mut script = Script::opened(Config { max_frame_size: 512, ..config() });
    script.send(&Begin { incoming_window: 2, ..begin() });
    let link = script.attach(&attach("l", 0, Role::Receiver));
    script.send(&Flow { incoming_window: 2, ..grant(0, 0, 10) });
    script.end.send(link, &[7; 2000]).unwrap();
    assert_eq!(transfers(&script.heard()), 2);
    script.send(&Flow { incoming_window: 0, drain: true, ..grant(0, 0, 10) });
    script.end.connection.drained(link);
    assert!(script.heard().is_empty(), "neither transfer nor flow");
    script.send(&Flow { next_incoming_id: Some(2), incoming_window: 9, ..flow() });
    let heard = script.heard();
    assert_eq!(transfers(&heard), heard.len() - 1);
    let Performative::Flow(last) = &heard.last().unwrap().performative else { panic!() };
    assert_eq!((last.delivery_count, last.link_credit, last.drain), (Some(10), Some(0), true));
    assert_eq!(last.next_outgoing_id, 2 + transfers(&heard) as u32);
}

#[test]
fn credit_that_is_no_more_to_be_drained_is_kept() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.end.answers = false;
    script.send(&Flow { drain: true, ..grant(0, 0, 3) });
    script.send(&grant(0, 0, 3));
    script.end.connection.drained(link);
    assert_eq!(script.end.connection.credit(link), 3);
}

#[test]
fn a_receiver_learns_that_its_drain_is_done_and_how_much_was_used() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let (receiver, sender) = pair.attach(session, options("l", Role::Receiver));
    for _ in 0..2 {
        pair.client.connection.set_credit(receiver, 5).unwrap();
        pair.run();
        assert_eq!(pair.server.connection.credit(sender), 5);
        pair.server.send(sender, b"one").unwrap();
        pair.client.take_events();
        pair.client.connection.drain(receiver).unwrap();
        pair.run();
        let told = pair.client.take_events();
        assert!(matches!(told[..], [Event::Delivery(_), Event::Drained { .. }]), "{told:?}");
        assert_eq!(pair.client.connection.credit(receiver), 0);
        assert_eq!(pair.server.connection.credit(sender), 0);
        let Event::Delivery(delivery) = &told[0] else { panic!() };
        let accepted = hopline_engine::wire::DeliveryState::Accepted;
        pair.client.connection.settle(receiver, delivery.id, accepted).unwrap();
    }
}

#[test]
fn nobody_is_told_of_a_drain_that_was_not_asked_for() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 5);
    script.send(&Flow { drain: true, ..grant(0, 5, 0) });
    script.send(&Flow { drain: true, ..grant(0, 5, 0) });
    let told = script.end.take_events();
    assert!(matches!(told[..], [Event::CreditUsed { .. }]), "{told:?}");
}

#[test]
fn commands_of_the_wrong_role_are_refused() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    assert_eq!(script.end.connection.set_credit(link, 1), Err(CommandError::Role));
    let (mut script, link) = Script::attached(config(), Role::Sender, 4);
    assert_eq!(script.end.send(link, b"x"), Err(CommandError::Blocked));
    script.end.connection.drained(link);
    assert_eq!(script.end.connection.credit(link), 4);
}

#[test]
fn an_echo_is_answered_with_the_state_and_a_storm_of_them_by_a_few() {
    let (mut script, _) = Script::attached(config(), Role::Receiver, 0);
    script.send(&Flow { echo: true, ..flow() });
    let heard = script.heard();
    let [answer] = flows(&heard)[..] else { panic!() };
    assert!(answer.handle.is_none() && !answer.echo);
    script.send(&Flow { echo: true, ..grant(0, 0, 3) });
    let heard = script.heard();
    let [answer] = flows(&heard)[..] else { panic!() };
    assert_eq!((answer.handle, answer.link_credit, answer.echo), (Some(0), Some(3), false));
    for _ in 0..10_000 {
        script.send(&Flow { echo: true, ..flow() });
        script.send(&Flow { echo: true, ..grant(0, 0, 3) });
    }
    assert!(script.heard().len() <= 2);
}

#[test]
fn the_peers_window_is_kept_to_whatever_its_size() {
    for window in [0_u32, 1, 2] {
        let mut script = Script::opened(config());
        script.send(&Begin { incoming_window: window, ..begin() });
        let link = script.attach(&attach("l", 0, Role::Receiver));
        script.send(&Flow { incoming_window: window, ..grant(0, 0, 100) });
        assert_eq!(send_all(&mut script, link), (window as usize, Wait::SessionWindow));
        assert_eq!(transfers(&script.heard()), window as usize);
        script.send(&Flow { incoming_window: window, ..flow() });
        assert_eq!(send_all(&mut script, link).0, 0, "the peer has seen none of it");
        let seen = Some(window);
        script.send(&Flow { next_incoming_id: seen, incoming_window: window + 1, ..flow() });
        assert_eq!(send_all(&mut script, link).0, window as usize + 1);
    }
}

#[test]
fn a_message_larger_than_the_window_goes_in_parts() {
    let mut script = Script::opened(Config { max_frame_size: 512, ..config() });
    script.send(&Begin { incoming_window: 1, ..begin() });
    let link = script.attach(&attach("l", 0, Role::Receiver));
    script.send(&Flow { incoming_window: 1, ..grant(0, 0, 1) });
    let body: Vec<u8> = (0..3000_u32).map(|n| n as u8).collect();
    script.end.send(link, &body).unwrap();
    let mut got = Vec::new();
    for seen in 1.. {
        let heard = script.heard();
        assert_eq!(heard.len(), 1, "one transfer a window");
        let Performative::Transfer(transfer) = &heard[0].performative else { panic!() };
        got.extend_from_slice(&heard[0].payload);
        if !transfer.more {
            break;
        }
        script.send(&Flow { next_incoming_id: Some(seen), incoming_window: 1, ..flow() });
    }
    assert_eq!(got, body);
}

#[test]
fn our_window_is_renewed_before_it_runs_dry() {
    for window in [0, 1, 2, 3, 10, 8192] {
        let mut script = Script::opened(Config { incoming_window: window, ..config() });
        script.send(&begin());
        let heard = script.heard();
        let Performative::Begin(told) = &heard[0].performative else { panic!() };
        let mut left = told.incoming_window;
        assert!(left >= 2);
        script.end.credit = u32::MAX;
        script.send(&attach("l", 0, Role::Sender));
        script.heard();
        for id in 0..20_000.min(window * 50 + 100) {
            assert!(left > 0, "window {window}, transfer {id}");
            script.transfer(&Transfer { settled: Some(true), ..transfer(0, id) }, b"x");
            left -= 1;
            for flow in flows(&script.heard()) {
                assert_eq!(flow.next_incoming_id, Some(id + 1));
                left = flow.incoming_window;
            }
        }
    }
}

#[test]
fn who_exceeds_our_window_loses_the_session() {
    let mut script = Script::opened(Config { incoming_window: 4, ..config() });
    script.send(&begin());
    script.end.credit = 100;
    script.attach(&attach("l", 0, Role::Sender));
    let mut octets = Vec::new();
    for id in 0..5 {
        octets.extend(Script::transfer_octets(&transfer(0, id), b"x"));
    }
    script.raw(&octets);
    assert_eq!(script.complaint(), Some(Complaint::Session(condition::WINDOW_VIOLATION)));
    assert_eq!(script.end.deliveries().len(), 4);
    assert!(script.end.connection.is_open());
}

#[test]
fn ids_that_cannot_be_are_a_window_violation() {
    for flow in [
        Flow { next_incoming_id: Some(1), ..flow() },
        Flow { next_incoming_id: Some(0x7fff_ffff), ..flow() },
        Flow { next_outgoing_id: u32::MAX, ..flow() },
        Flow { next_outgoing_id: 0x8000_0001, ..flow() },
    ] {
        let mut script = crate::support::plain();
        script.send(&flow);
        assert_eq!(script.complaint(), Some(Complaint::Session(condition::WINDOW_VIOLATION)));
    }
    let mut script = crate::support::plain();
    script.send(&Flow { next_incoming_id: None, next_outgoing_id: 5, ..flow() });
    script.next_outgoing_id = 5;
    assert!(script.is_well());
}

#[test]
fn a_full_outbox_holds_up_transfers_and_then_reading() {
    let config = Config { outbox_high_water: 1000, outbox_max: 2000, ..config() };
    let (mut script, link) = Script::attached(config, Role::Receiver, 0);
    script.send(&grant(0, 0, 1000));
    assert_eq!(send_all(&mut script, link).1, Wait::SocketFull);
    assert!(script.end.connection.outbox().len() < 1100);
    let mut n = 1;
    while script.end.connection.wants_read() {
        script.send(&attach(&"n".repeat(100), n, Role::Sender));
        n += 1;
        assert!(n < 100);
    }
    assert!(script.end.connection.outbox().len() < 2300);
    script.heard();
    assert!(script.end.connection.wants_read());
}

#[test]
fn credit_granted_before_the_peer_has_attached_is_told_once_it_has() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let client = &mut pair.client.connection;
    let receiver = client.attach(session, options("l", Role::Receiver)).unwrap();
    client.set_credit(receiver, 3).unwrap();
    pair.run();
    let Some(Event::Credit { link, .. }) = pair.server.take_events().pop() else { panic!() };
    assert_eq!(pair.server.connection.credit(link), 3);
}

#[test]
fn flows_for_a_link_that_we_have_detached_are_not_told() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.end.connection.detach(link, true, None);
    script.send(&Flow { echo: true, ..grant(0, 0, 9) });
    script.send(&detach(0, true));
    assert!(matches!(script.end.events[..], [Event::Detached { by_peer: false, .. }]));
    assert!(script.is_well());
}

#[test]
fn as_many_deliveries_are_unsettled_as_we_allow_and_no_more() {
    let config = Config { max_unsettled: 3, ..config() };
    let (mut script, link) = Script::attached(config, Role::Receiver, 0);
    script.send(&grant(0, 0, 100));
    assert_eq!(send_all(&mut script, link), (3, Wait::NoCredit));
    script.send(&crate::support::disposition(Role::Receiver, 1, 1, None));
    assert_eq!(send_all(&mut script, link), (1, Wait::NoCredit));
}

#[test]
fn credit_that_is_lowered_covers_what_was_on_its_way() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 5);
    script.end.connection.set_credit(link, 1).unwrap();
    (0..5).for_each(|id| script.transfer(&transfer(0, id), b"x"));
    assert_eq!(script.end.deliveries().len(), 5);
    assert_eq!(script.end.connection.credit(link), 0);
    script.heard();
    script.transfer(&transfer(0, 5), b"x");
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Link(condition::TRANSFER_LIMIT_EXCEEDED)));
}

#[test]
fn a_drain_asked_for_before_the_peer_has_attached_is_met() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let receiver = pair.client.connection.attach(session, options("l", Role::Receiver)).unwrap();
    pair.client.connection.drain(receiver).unwrap();
    pair.run();
    assert!(matches!(pair.client.take_events().pop(), Some(Event::Drained { .. })));
}

#[test]
fn how_long_credit_and_window_were_used_up_is_counted() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    let at = Instant::from_nanos;
    let waited = |script: &Script, ns: i64| {
        let waited = script.end.connection.waited(at(ns));
        (waited.no_credit_ns, waited.no_window_ns)
    };
    assert_eq!(waited(&script, 1_000), (0, 0), "before the first credit came");
    script.now = at(1_000);
    script.send(&grant(0, 0, 5));
    assert_eq!(waited(&script, 1_500), (0, 0));
    script.now = at(2_000);
    script.send(&grant(0, 0, 5));
    send_all(&mut script, link);
    assert_eq!(waited(&script, 2_700), (700, 0));
    script.now = at(3_000);
    script.send(&Flow { incoming_window: 7, ..grant(0, 5, 5) });
    assert_eq!(waited(&script, 9_000), (1_000, 0));
    send_all(&mut script, link);
    assert_eq!(waited(&script, 3_400), (1_000, 400), "credit is left, the window isn't");
    script.now = at(4_000);
    script.send(&grant(0, 7, 100));
    assert_eq!(waited(&script, 9_000), (1_000, 1_000));
}

#[test]
fn the_abort_that_uses_the_window_up_counts_as_well() {
    let config = Config { outbox_high_water: 1, ..config() };
    let (mut script, link) = Script::attached(config, Role::Receiver, 0);
    let at = Instant::from_nanos;
    script.now = at(1_000);
    script.send(&Flow { incoming_window: 2, ..grant(0, 0, 5) });
    let body = vec![0; 100_000];
    script.end.send(link, &body).unwrap();
    // One frame of it fills the outbox; its abort is the second one.
    script.end.connection.poll_transmit();
    assert_eq!(script.end.connection.waited(at(9_000)).no_window_ns, 0);
    script.end.connection.detach(link, true, None);
    assert_eq!(transfers(&script.heard()), 2);
    assert_eq!(script.end.connection.waited(at(1_700)).no_window_ns, 700);
}
