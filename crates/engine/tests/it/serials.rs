//! Ids and counts that start just before they wrap, or change their sign (part 2, 2.8.10).

use crate::support::{
    Complaint, Script, attach, begin, config, disposition, flow, go_on, transfer,
};
use hopline_engine::wire::performative::{Attach, Begin, Flow, Transfer};
use hopline_engine::wire::{DeliveryState, Performative, Role, Serial, condition};
use hopline_engine::{Event, LinkId};

const STARTS: [u32; 2] = [0xffff_fff0, 0x7fff_fff0];

/// A peer whose transfer-ids, delivery-ids and delivery-count all begin at `start`, and its link.
fn from(start: u32, credit: u32) -> (Script, LinkId) {
    let mut script = Script::opened(config());
    script.send(&Begin { next_outgoing_id: start, ..begin() });
    script.heard();
    script.next_outgoing_id = start;
    script.end.credit = credit;
    let count = Attach { initial_delivery_count: Some(start), ..attach("l", 0, Role::Sender) };
    let link = script.attach(&count);
    (script, link)
}

#[test]
fn deliveries_come_in_across_the_wrap_in_one_transfer_or_several() {
    for start in STARTS {
        let (mut script, _) = from(start, 1000);
        for n in 0..100_u32 {
            let id = start.wrapping_add(n);
            if n % 3 == 0 {
                let first = Transfer { more: true, ..transfer(0, id) };
                script.transfer(&first, b"x");
                script.transfer(&go_on(0), b"x");
            } else {
                script.transfer(&transfer(0, id), b"x");
            }
            assert_eq!(script.end.deliveries()[0].id, Serial(id));
        }
        assert!(script.is_well());
    }
}

#[test]
fn our_flow_shows_ids_and_counts_beyond_the_wrap() {
    for start in STARTS {
        let (mut script, link) = from(start, 50);
        (0..32).for_each(|n| script.transfer(&transfer(0, start.wrapping_add(n)), b"x"));
        script.end.connection.set_credit(link, 9).unwrap();
        let heard = script.heard();
        let Performative::Flow(flow) = &heard[0].performative else { panic!() };
        let now = Some(start.wrapping_add(32));
        assert_eq!((flow.next_incoming_id, flow.delivery_count), (now, now));
        assert_eq!(flow.link_credit, Some(9));
    }
}

#[test]
fn outcomes_and_settlements_cover_ranges_over_the_wrap() {
    for start in STARTS {
        let (mut script, link) = from(start, 50);
        let id = |n: u32| start.wrapping_add(n);
        (0..32).for_each(|n| script.transfer(&transfer(0, id(n)), b"x"));
        (0..20).for_each(|n| {
            let accepted = DeliveryState::Accepted;
            script.end.connection.settle(link, Serial(id(n)), accepted).unwrap();
        });
        let heard = script.heard();
        let accepted = Some(DeliveryState::Accepted);
        let range = disposition(Role::Receiver, start, id(19), accepted);
        assert_eq!(heard[0].performative, Performative::Disposition(range));
        script.end.events.clear();
        script.send(&disposition(Role::Sender, id(10), id(25), None));
        let id_of = |event| match event {
            Event::PeerSettled { id, .. } => id.0,
            other => panic!("{other:?}"),
        };
        let settled: Vec<_> = script.end.take_events().into_iter().map(id_of).collect();
        assert_eq!(settled, (20..26).map(id).collect::<Vec<_>>());
    }
}

#[test]
fn a_drain_advances_the_count_over_the_wrap() {
    for start in STARTS {
        let (mut script, link) = from(start, 20);
        script.transfer(&transfer(0, start), b"x");
        script.end.connection.drain(link).unwrap();
        script.end.events.clear();
        script.send(&Flow {
            next_outgoing_id: script.next_outgoing_id,
            handle: Some(0),
            delivery_count: Some(start.wrapping_add(20)),
            link_credit: Some(0),
            drain: true,
            ..flow()
        });
        assert!(matches!(script.end.events[..], [Event::Drained { .. }]));
        assert_eq!(script.end.connection.credit(link), 0);
        script.end.connection.set_credit(link, 1).unwrap();
        script.transfer(&transfer(0, start.wrapping_add(1)), b"x");
        assert_eq!(script.end.connection.credit(link), 0);
        assert!(script.is_well());
    }
}

#[test]
fn limits_hold_across_the_wrap() {
    for start in STARTS {
        let (mut script, _) = from(start, 20);
        (0..20).for_each(|n| script.transfer(&transfer(0, start.wrapping_add(n)), b"x"));
        script.heard();
        script.transfer(&transfer(0, start.wrapping_add(20)), b"x");
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Link(condition::TRANSFER_LIMIT_EXCEEDED)));

        let (mut script, _) = from(start, 20);
        script.transfer(&transfer(0, start), b"x");
        script.transfer(&transfer(0, start.wrapping_add(2)), b"x");
        assert_eq!(script.complaint(), Some(Complaint::Session(condition::INVALID_FIELD)));

        let (mut script, _) = from(start, 20);
        script.send(&Flow { next_outgoing_id: start.wrapping_sub(1), ..flow() });
        assert_eq!(script.complaint(), Some(Complaint::Session(condition::WINDOW_VIOLATION)));
    }
}
