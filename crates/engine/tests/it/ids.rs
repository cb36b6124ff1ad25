//! Our own ids and counts, from wherever they begin: before the wrap, and before the change of sign
//! (part 2, 2.8.10).

use crate::support::{
    Complaint, Flow, Pair, Script, attach, begin, config, disposition, flow, grant, options,
};
use hopline_engine::timeline::Wait;
use hopline_engine::wire::performative::Begin;
use hopline_engine::wire::{DeliveryState, Performative, Role, condition};
use hopline_engine::{Config, Event, LinkId};

const STARTS: [u32; 4] = [0xffff_fff0, 0x7fff_fff0, 0x8000_0000, u32::MAX];

fn from(start: u32) -> Config {
    Config { first_id: start, ..config() }
}

/// A link on which we send, and what its attach told.
fn sending(start: u32, window: u32) -> (Script, LinkId) {
    let mut script = Script::opened(Config { max_frame_size: 512, ..from(start) });
    script.send(&Begin { incoming_window: window, ..begin() });
    let heard = script.heard();
    assert!(matches!(&heard[0].performative,
        Performative::Begin(begin) if begin.next_outgoing_id == start));
    let link = script.attach(&attach("l", 0, Role::Receiver));
    (script, link)
}

fn seen(id: u32, window: u32) -> Flow {
    Flow { next_incoming_id: Some(id), incoming_window: window, ..flow() }
}

fn granted(start: u32, count: u32, credit: u32) -> Flow {
    Flow { next_incoming_id: Some(start), ..grant(0, count, credit) }
}

#[test]
fn an_attach_tells_where_the_count_begins() {
    for start in STARTS {
        let mut script = Script::begun(from(start));
        script.send(&attach("l", 0, Role::Receiver));
        let heard = script.heard();
        let Performative::Attach(told) = &heard[0].performative else { panic!() };
        assert_eq!(told.initial_delivery_count, Some(start));
        script.send(&attach("m", 1, Role::Sender));
        let heard = script.heard();
        let Performative::Attach(told) = &heard[0].performative else { panic!() };
        assert_eq!(told.initial_delivery_count, None, "a receiver has none");
    }
}

#[test]
fn deliveries_and_transfers_are_numbered_across_the_wrap() {
    for start in STARTS {
        let (mut script, link) = sending(start, 1000);
        script.send(&granted(start, start, 100));
        let (mut ids, mut transfers) = (Vec::new(), 0);
        for n in 0..40_u32 {
            script.end.send(link, &vec![n as u8; n as usize * 40]).unwrap();
            for heard in script.heard() {
                let Performative::Transfer(transfer) = heard.performative else { panic!() };
                ids.extend(transfer.delivery_id);
                transfers += 1;
            }
        }
        assert_eq!(ids, (0..40).map(|n| start.wrapping_add(n)).collect::<Vec<_>>());
        script.send(&Flow { echo: true, ..seen(start.wrapping_add(transfers), 1000) });
        let heard = script.heard();
        let Performative::Flow(flow) = &heard[0].performative else { panic!() };
        assert_eq!(flow.next_outgoing_id, start.wrapping_add(transfers));
    }
}

#[test]
fn windows_of_one_and_of_some_are_kept_to_across_the_wrap() {
    for start in STARTS {
        for window in [0, 1, 7] {
            let (mut script, link) = sending(start, window);
            script.send(&Flow { incoming_window: window, ..granted(start, start, 1000) });
            let mut sent = 0;
            for round in 0..40_u32 {
                while script.end.connection.send_block(link).is_none() {
                    script.end.send(link, b"x").unwrap();
                    sent += 1;
                }
                assert_eq!(script.end.connection.send_block(link), Some(Wait::SessionWindow));
                assert_eq!(sent, window * (round + 1));
                script.octets();
                // Who has seen half of them opens no more than half.
                script.send(&seen(start.wrapping_add(sent), window));
            }
        }
    }
}

#[test]
fn credit_counts_across_the_wrap_and_a_drain_goes_beyond_it() {
    for start in STARTS {
        let (mut script, link) = sending(start, 1000);
        script.send(&granted(start, start, 30));
        for n in 0..20_u32 {
            script.end.send(link, &[n as u8]).unwrap();
        }
        assert_eq!(script.end.connection.credit(link), 10);
        script.send(&granted(start, start.wrapping_add(15), 30));
        assert_eq!(script.end.connection.credit(link), 25);
        script.send(&Flow { delivery_count: None, ..granted(start, 0, 25) });
        assert_eq!(script.end.connection.credit(link), 5, "without a count the first one holds");
        script.octets();
        script.send(&Flow { drain: true, ..granted(start, start.wrapping_add(20), u32::MAX) });
        let heard = script.heard();
        let Performative::Flow(flow) = &heard[0].performative else { panic!() };
        let count = start.wrapping_add(20).wrapping_add(u32::MAX);
        assert_eq!((flow.delivery_count, flow.link_credit), (Some(count), Some(0)));
    }
}

#[test]
fn a_count_that_is_ahead_or_far_behind_gives_no_credit_that_was_not_granted() {
    for start in [0, 0xffff_fff0, 0x7fff_fff0] {
        let (mut script, link) = sending(start, 1000);
        for ahead in [1, 100, 0x7fff_ffff] {
            script.send(&granted(start, start.wrapping_add(ahead), 5));
            assert_eq!(script.end.connection.credit(link), 5, "ahead by {ahead}");
        }
        for behind in [1, 5, 6, 100, 0x7fff_ffff] {
            script.send(&granted(start, start.wrapping_sub(behind), 5));
            let left = 5_u32.saturating_sub(behind);
            assert_eq!(script.end.connection.credit(link), left, "behind by {behind}");
        }
        script.send(&granted(start, start, 1));
        script.end.send(link, b"x").unwrap();
        assert!(script.end.send(link, b"x").is_err());
    }
}

#[test]
fn a_sender_whose_count_runs_ahead_uses_up_its_credit_and_one_behind_gets_none() {
    for start in [0, 0xffff_fff0_u32, 0x7fff_fff0] {
        for (step, left) in [(3, 7), (10, 0), (11, 0), (0x7fff_ffff, 0), (u32::MAX, 10)] {
            let mut script = Script::begun(config());
            script.end.credit = 10;
            let count = Some(start);
            let wanted = attach("l", 0, Role::Sender);
            let link =
                script.attach(&crate::support::Attach { initial_delivery_count: count, ..wanted });
            script.send(&Flow {
                handle: Some(0),
                delivery_count: Some(start.wrapping_add(step)),
                ..flow()
            });
            assert_eq!(script.end.connection.credit(link), left, "{step} steps");
        }
    }
}

#[test]
fn outcomes_of_ranges_over_the_wrap_are_told() {
    for start in STARTS {
        let (mut script, link) = sending(start, 1000);
        script.send(&granted(start, start, 100));
        for n in 0..40_u32 {
            script.end.send(link, &[n as u8]).unwrap();
        }
        script.octets();
        script.end.events.clear();
        let (first, last) = (start.wrapping_add(3), start.wrapping_add(36));
        script.send(&disposition(Role::Receiver, first, last, Some(DeliveryState::Accepted)));
        let id = |event| match event {
            Event::Outcome { id, .. } => id.0,
            other => panic!("{other:?}"),
        };
        let told: Vec<_> = script.end.take_events().into_iter().map(id).collect();
        assert_eq!(told, (3..=36).map(|n| start.wrapping_add(n)).collect::<Vec<_>>());
    }
}

#[test]
fn a_flow_that_has_seen_what_was_not_sent_is_a_window_violation_anywhere() {
    for start in STARTS {
        for ahead in [1, 0x7fff_ffff, 0x8000_0000] {
            let (mut script, _) = sending(start, 10);
            script.send(&seen(start.wrapping_add(ahead), 10));
            let complaint = script.complaint();
            assert_eq!(complaint, Some(Complaint::Session(condition::WINDOW_VIOLATION)));
        }
    }
}

#[test]
fn two_ends_with_other_numbers_understand_each_other() {
    for start in STARTS {
        for other in [0, 0xffff_fff0, 0x7fff_fff0] {
            let small = |config| Config { incoming_window: 3, max_frame_size: 512, ..config };
            let mut pair = Pair::open_with(small(from(start)), small(from(other)));
            let session = pair.begin();
            let (up, at_server) = pair.attach(session, options("up", Role::Sender));
            let (down, from_server) = pair.attach(session, options("down", Role::Receiver));
            for n in 0..40_u32 {
                pair.server.connection.set_credit(at_server, 1).unwrap();
                pair.client.connection.set_credit(down, 1).unwrap();
                pair.run();
                let body = vec![n as u8; 700];
                pair.client.send(up, &body).unwrap();
                pair.server.send(from_server, &body).unwrap();
                pair.run();
                for end in [&mut pair.client, &mut pair.server] {
                    let [got] = &end.deliveries()[..] else { panic!("delivery {n}") };
                    assert!(got.payload == body);
                    let (link, id) = (got.link, got.id);
                    end.connection.settle(link, id, DeliveryState::Accepted).unwrap();
                }
                pair.run();
            }
            assert_eq!(pair.client.connection.unsettled(session), (0, 0));
        }
    }
}
