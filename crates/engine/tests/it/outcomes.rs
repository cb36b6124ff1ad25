//! What became of deliveries, and who forgets them when (part 2, 2.6.12, 2.7.6; part 3, 3.4).

use crate::support::{
    Pair, Script, attach, config, detach, disposition, error, go_on, grant, options, transfer,
};
use hopline_engine::wire::definitions::ReceiverSettleMode;
use hopline_engine::wire::outcome::{Modified, Received, Rejected};
use hopline_engine::wire::performative::{Attach, Disposition, Transfer};
use hopline_engine::wire::{DeliveryState, Performative, Role, Serial};
use hopline_engine::{AttachOptions, Event, LinkId};

fn outcomes() -> [DeliveryState; 4] {
    let modified = Modified { delivery_failed: Some(true), ..Modified::default() };
    [
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::Rejected(Rejected { error: error("amqp:not-found") }),
        DeliveryState::Modified(Box::new(modified)),
    ]
}

/// A script to which `n` deliveries were sent unsettled.
fn sent(n: u32) -> (Script, LinkId) {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, n));
    for n in 0..n {
        script.end.send(link, &n.to_be_bytes()).unwrap();
    }
    script.heard();
    script.end.events.clear();
    (script, link)
}

/// The ids of the outcomes that were told.
fn told(script: &mut Script) -> Vec<u32> {
    let id = |event| match event {
        Event::Outcome { id, .. } => Some(id.0),
        _ => None,
    };
    script.end.take_events().into_iter().filter_map(id).collect()
}

fn dispositions(script: &mut Script) -> Vec<Disposition> {
    let disposition = |heard: crate::support::Heard| match heard.performative {
        Performative::Disposition(disposition) => Some(disposition),
        _ => None,
    };
    script.heard().into_iter().filter_map(disposition).collect()
}

fn unsettled(script: &Script, link: LinkId) -> (usize, usize) {
    let session = script.end.connection.link_info(link).unwrap().session;
    script.end.connection.unsettled(session)
}

#[test]
fn each_outcome_is_carried_both_ways() {
    for state in outcomes() {
        for second in [false, true] {
            let mode = [ReceiverSettleMode::First, ReceiverSettleMode::Second][usize::from(second)];
            let mut pair = Pair::open();
            let session = pair.begin();
            let options = AttachOptions { rcv_settle_mode: mode, ..options("l", Role::Sender) };
            let (a, b) = pair.attach(session, options);
            pair.server.connection.set_credit(b, 1).unwrap();
            pair.run();
            let id = pair.client.send(a, b"one").unwrap();
            pair.run();
            let delivery = pair.server.deliveries().pop().unwrap();
            pair.client.take_events();
            pair.server.connection.settle(b, delivery.id, state.clone()).unwrap();
            pair.run();
            let [Event::Outcome { id: of, state: Some(got), settled, token: 3, .. }] =
                &pair.client.take_events()[..]
            else {
                panic!()
            };
            assert_eq!((*of, got, *settled), (id, &state, !second));
            if second {
                assert_eq!(pair.client.connection.unsettled(session).1, 1);
                pair.client.connection.settle_sent(a, id, Some(state.clone())).unwrap();
                pair.run();
                let told = pair.server.take_events();
                assert!(matches!(told[..], [Event::PeerSettled { link, .. }] if link == b));
            }
            let at_server = pair.server.connection.link_info(b).unwrap().session;
            assert_eq!(pair.client.connection.unsettled(session), (0, 0));
            assert_eq!(pair.server.connection.unsettled(at_server), (0, 0));
        }
    }
}

#[test]
fn a_range_settles_all_in_it_and_a_missing_last_means_one() {
    let (mut script, link) = sent(10);
    script.send(&disposition(Role::Receiver, 2, 5, Some(DeliveryState::Accepted)));
    assert_eq!(told(&mut script), [2, 3, 4, 5]);
    let one = Disposition { last: None, ..disposition(Role::Receiver, 7, 0, None) };
    script.send(&one);
    let [Event::Outcome { state: None, settled: true, .. }] = &script.end.take_events()[..] else {
        panic!("settled without a state")
    };
    assert_eq!(unsettled(&script, link), (0, 5));
}

#[test]
fn ids_that_are_unknown_or_settled_are_skipped() {
    let (mut script, link) = sent(4);
    for _ in 0..2 {
        script.send(&disposition(Role::Receiver, 1, 2, Some(DeliveryState::Accepted)));
    }
    assert_eq!(told(&mut script), [1, 2]);
    script.send(&disposition(Role::Receiver, 0xffff_fff0, 100, Some(DeliveryState::Released)));
    assert_eq!(told(&mut script), [0, 3]);
    script.send(&disposition(Role::Receiver, 500, 600, None));
    assert!(told(&mut script).is_empty() && script.is_well());
    assert_eq!(unsettled(&script, link), (0, 0));
}

#[test]
fn before_settlement_the_last_outcome_counts_and_afterwards_none() {
    let (mut script, link) = sent(1);
    let unsettled_state =
        |state| Disposition { settled: false, ..disposition(Role::Receiver, 0, 0, Some(state)) };
    let received = Received { section_number: 0, section_offset: 9 };
    script.send(&unsettled_state(DeliveryState::Received(received)));
    script.send(&unsettled_state(DeliveryState::Released));
    script.send(&unsettled_state(DeliveryState::Accepted));
    assert_eq!(told(&mut script), [0, 0, 0]);
    script.end.connection.settle_sent(link, Serial(0), Some(DeliveryState::Accepted)).unwrap();
    let [told_peer] = &dispositions(&mut script)[..] else { panic!() };
    assert_eq!((told_peer.role, told_peer.settled), (Role::Sender, true));
    script.send(&disposition(Role::Receiver, 0, 0, Some(DeliveryState::Released)));
    assert!(told(&mut script).is_empty());
}

#[test]
fn outcomes_of_neighbours_share_a_frame() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 100);
    (0..20).for_each(|id| script.transfer(&transfer(0, id), b"x"));
    for id in 0..20 {
        let state = if id == 7 { DeliveryState::Released } else { DeliveryState::Accepted };
        script.end.connection.settle(link, Serial(id), state).unwrap();
        script.end.connection.settle(link, Serial(id), DeliveryState::Accepted).unwrap();
    }
    let ranges: Vec<_> =
        dispositions(&mut script).iter().map(|d| (d.first, d.last, d.settled)).collect();
    assert_eq!(ranges, [(0, Some(6), true), (7, None, true), (8, Some(19), true)]);
}

#[test]
fn a_receiver_that_settles_second_keeps_the_delivery_until_its_sender_settles() {
    let mut script = Script::begun(config());
    script.end.credit = 10;
    let second =
        Attach { rcv_settle_mode: ReceiverSettleMode::Second, ..attach("l", 0, Role::Sender) };
    let link = script.attach(&second);
    script.transfer(&transfer(0, 0), b"x");
    script.end.connection.settle(link, Serial(0), DeliveryState::Accepted).unwrap();
    let [answer] = &dispositions(&mut script)[..] else { panic!() };
    assert!(!answer.settled && unsettled(&script, link).0 == 1);
    script.end.events.clear();
    script.send(&disposition(Role::Sender, 0, 0, Some(DeliveryState::Accepted)));
    assert!(matches!(script.end.take_events()[..], [Event::PeerSettled { id: Serial(0), .. }]));
    assert_eq!(unsettled(&script, link).0, 0);
}

#[test]
fn a_sender_that_settles_first_makes_a_later_outcome_void() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.transfer(&transfer(0, 0), b"x");
    script.send(&disposition(Role::Sender, 0, 0, None));
    script.end.connection.settle(link, Serial(0), DeliveryState::Accepted).unwrap();
    assert!(dispositions(&mut script).is_empty());
}

#[test]
fn the_role_of_a_disposition_says_which_direction_it_is_about() {
    let (mut script, link) = sent(2);
    script.end.credit = 5;
    let other = script.attach(&attach("other", 1, Role::Sender));
    script.transfer(&transfer(1, 0), b"x");
    script.end.events.clear();
    script.send(&disposition(Role::Sender, 0, 1, None));
    assert!(matches!(script.end.take_events()[..], [Event::PeerSettled { link, .. }]
        if link == other));
    assert_eq!(unsettled(&script, link), (0, 2));
}

#[test]
fn dispositions_hit_the_link_that_the_delivery_is_of() {
    let (mut script, a) = Script::attached(config(), Role::Receiver, 0);
    let b = script.attach(&attach("b", 1, Role::Receiver));
    script.send(&grant(0, 0, 10));
    script.send(&grant(1, 0, 10));
    for link in [a, b, b, a] {
        script.end.send(link, b"x").unwrap();
    }
    script.end.events.clear();
    script.send(&disposition(Role::Receiver, 0, 3, Some(DeliveryState::Accepted)));
    let link = |event| match event {
        Event::Outcome { link, .. } => link,
        other => panic!("{other:?}"),
    };
    let links: Vec<_> = script.end.take_events().into_iter().map(link).collect();
    assert_eq!(links, [a, b, b, a]);
}

#[test]
fn a_disposition_behind_the_detach_of_its_link_is_ignored() {
    let (mut script, _) = sent(2);
    script.send(&detach(0, false));
    script.end.events.clear();
    script.send(&disposition(Role::Receiver, 0, 1, Some(DeliveryState::Accepted)));
    assert!(script.end.events.is_empty() && script.is_well());

    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.transfer(&transfer(0, 0), b"x");
    script.end.connection.settle(link, Serial(0), DeliveryState::Accepted).unwrap();
    script.end.connection.detach(link, true, None);
    let heard = script.heard();
    assert!(matches!(heard[0].performative, Performative::Disposition(_)), "before the detach");
    assert!(script.end.connection.settle(link, Serial(0), DeliveryState::Accepted).is_err());
}

#[test]
fn a_transfer_may_ask_for_settlement_by_the_outcome_on_a_link_of_mode_second() {
    let first = Some(ReceiverSettleMode::First);
    for (on_first, on_last, settles) in
        [(first, None, true), (None, first, true), (None, None, false)]
    {
        let mut script = Script::begun(config());
        script.end.credit = 10;
        let second = ReceiverSettleMode::Second;
        let link =
            script.attach(&Attach { rcv_settle_mode: second, ..attach("l", 0, Role::Sender) });
        let begun = Transfer { rcv_settle_mode: on_first, more: true, ..transfer(0, 0) };
        script.transfer(&begun, b"x");
        script.transfer(&Transfer { rcv_settle_mode: on_last, ..go_on(0) }, b"x");
        script.end.connection.settle(link, Serial(0), DeliveryState::Accepted).unwrap();
        let [told] = &dispositions(&mut script)[..] else { panic!() };
        assert_eq!((told.settled, unsettled(&script, link).0 == 0), (settles, settles));
    }
}
