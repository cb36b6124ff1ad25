//! Transactions: the coordinator, and messages posted (part 4, 4.2 to 4.4.1).

use crate::support::{
    Broker, Controller, Form, Raw, attach, condition_of, config, control_octets, coordinator,
    discharge, encoded, first, framed, in_transaction, text,
};
use bytes::Bytes;
use hopline_driver::engine::wire::control::Control;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::message::{Message, Properties};
use hopline_driver::engine::wire::performative::{Attach, Close, End, Performative, Transfer};
use hopline_driver::engine::wire::terminus::{Declare, Target, TargetKind};
use hopline_driver::engine::wire::{DeliveryState, Role, Value};

const UNKNOWN: &str = "amqp:transaction:unknown-id";
const ROLLBACK: &str = "amqp:transaction:rollback";

fn accepted_in(txn: &Bytes) -> DeliveryState {
    in_transaction(txn, Some(DeliveryState::Accepted))
}

/// The condition of a rejection within a transaction.
fn refused_in(state: DeliveryState, txn: &Bytes) -> String {
    let DeliveryState::Transactional(state) = state else { panic!("{state:?}") };
    assert_eq!(state.txn_id, *txn);
    condition_of(&state.outcome.unwrap())
}

/// A consumer of its own, that got nothing yet.
fn consumer(broker: &Broker, address: &str) -> Controller {
    let mut consumer = Controller::open_without(broker);
    consumer.receiver(0, address, 1000);
    consumer.assert_no_delivery();
    consumer
}

#[test]
fn the_coordinator_says_what_it_can_do() {
    let broker = Broker::start(config());
    let mut controller = Controller::open_without(&broker);
    let answer = controller.attach(&coordinator(&[]));
    let Some(TargetKind::Coordinator(target)) = answer.target.as_deref() else { panic!() };
    let offered: Vec<_> = target.capabilities.iter().map(|c| c.as_str()).collect();
    let all = ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"];
    assert_eq!(offered, all);
    let mut mute = Controller::open_without(&broker);
    let snd_settle_mode = SenderSettleMode::Settled;
    let answer = mute.attach(&Attach { snd_settle_mode, ..coordinator(&[]) });
    assert!(answer.target.is_none());
    assert_eq!(mute.detached(0).unwrap(), "amqp:illegal-state");
}

#[test]
fn a_declare_gives_a_fresh_id_and_a_global_one_is_refused() {
    let broker = Broker::start(config());
    let mut controller = Controller::open(&broker);
    let ids: Vec<_> = (0..3).map(|_| controller.declare()).collect();
    assert!(ids.iter().all(|id| (1..=32).contains(&id.len())), "{ids:?}");
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    let global = Control::Declare(Declare { global_id: Some(Value::Binary(Bytes::new())) });
    assert_eq!(condition_of(&controller.control(&global)), "amqp:not-implemented");
    ids.iter().for_each(|id| controller.commit(id));
    assert!(!ids.contains(&controller.declare()), "a finished id comes again");
}

#[test]
fn what_is_posted_appears_at_commit_in_its_order_and_never_after_a_rollback() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    let (kept, dropped) = (controller.declare(), controller.declare());
    for n in 0..3 {
        let body = format!("kept {n}");
        assert_eq!(controller.posted(1, &body, Some(&kept)), accepted_in(&kept));
        let body = format!("dropped {n}");
        assert_eq!(controller.posted(1, &body, Some(&dropped)), accepted_in(&dropped));
    }
    consumer.assert_no_delivery();
    assert_eq!(controller.posted(1, "plain", None), DeliveryState::Accepted);
    assert_eq!(consumer.receive_all(1), ["plain"]);
    controller.roll_back(&dropped);
    consumer.assert_no_delivery();
    controller.commit(&kept);
    assert_eq!(consumer.receive_all(3), ["kept 0", "kept 1", "kept 2"]);
    consumer.assert_no_delivery();
}

#[test]
fn posts_reach_topics_and_the_relays_addresses() {
    let broker = Broker::start(config());
    let mut queue = consumer(&broker, "q");
    let mut early = consumer(&broker, "topic/t");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "topic/t");
    let mut relay = attach("relay", 2, Role::Sender, "");
    relay.target = Some(Box::new(TargetKind::Target(Target::default())));
    controller.attach(&relay);
    let txn = controller.declare();
    controller.posted(1, "news", Some(&txn));
    for to in ["q", "topic/t"] {
        let id =
            controller.post_octets(2, &addressed(to), Form { txn: Some(&txn), settled: false });
        assert_eq!(controller.outcome(id), accepted_in(&txn));
    }
    let mut late = consumer(&broker, "topic/t");
    early.assert_no_delivery();
    controller.commit(&txn);
    assert_eq!(queue.receive_all(1), ["to q"]);
    assert_eq!(early.receive_all(2), ["news", "to topic/t"]);
    assert_eq!(late.receive_all(2), ["news", "to topic/t"], "it was there at commit");
}

fn addressed(to: &str) -> Vec<u8> {
    let properties = Properties { to: Some(to.into()), ..Properties::default() };
    encoded(&Message { properties, ..text(format!("to {to}")) }).to_vec()
}

#[test]
fn a_to_that_is_unknown_leaves_nothing_but_rollback() {
    for settled in [true, false] {
        let broker = Broker::start(config());
        let mut consumer = consumer(&broker, "q");
        let mut controller = Controller::open(&broker);
        let mut relay = attach("relay", 1, Role::Sender, "");
        relay.target = Some(Box::new(TargetKind::Target(Target::default())));
        controller.attach(&relay);
        let (commits, rolls_back) = (controller.declare(), controller.declare());
        for txn in [&commits, &rolls_back] {
            let form = Form { txn: Some(txn), settled };
            controller.post_octets(1, &addressed("q"), form);
            let id = controller.post_octets(1, &addressed("$unknown"), form);
            if !settled {
                assert_eq!(refused_in(controller.outcome(id), txn), "amqp:not-found");
            }
        }
        assert_eq!(condition_of(&controller.discharge(&commits, false)), ROLLBACK);
        controller.roll_back(&rolls_back);
        consumer.assert_no_delivery();
        // The link has gone on.
        let id = controller.post_octets(1, &addressed("q"), Form::default());
        assert_eq!(controller.outcome(id), DeliveryState::Accepted);
        assert_eq!(consumer.receive_all(1), ["to q"]);
    }
}

#[test]
fn ids_that_nobody_has_discharge_nothing() {
    let broker = Broker::start(config());
    let mut other = Controller::open(&broker);
    let (foreign, mut controller) = (other.declare(), Controller::open(&broker));
    let (done, dropped) = (controller.declare(), controller.declare());
    controller.commit(&done);
    controller.roll_back(&dropped);
    let ids: [&[u8]; 7] = [b"", b"no-such", &[0; 8], &[0xff; 8], &[7; 33], &done, &dropped];
    for id in ids.into_iter().chain([&foreign[..]]) {
        for fail in [true, false] {
            let state = controller.discharge(id, fail);
            assert_eq!(condition_of(&state), UNKNOWN, "{id:02x?}");
        }
    }
    other.commit(&foreign);
}

#[test]
fn a_controller_that_takes_no_rejection_loses_its_link_instead() {
    let broker = Broker::start(config());
    for (outcomes, rejects) in [(vec!["amqp:accepted:list"], false), (vec![], true)] {
        let mut controller = Controller::open_without(&broker);
        controller.attach(&coordinator(&outcomes));
        let txn = controller.declare();
        let id = controller.control_only(&discharge(b"unknown", false));
        if rejects {
            assert_eq!(condition_of(&controller.outcome(id)), UNKNOWN);
            controller.commit(&txn);
        } else {
            assert_eq!(controller.detached(0).unwrap(), UNKNOWN);
        }
    }
}

#[test]
fn a_transaction_is_discharged_on_the_link_that_declared_it() {
    let broker = Broker::start(config());
    let mut controller = Controller::open(&broker);
    let mut second = coordinator(&[]);
    (second.name, second.handle) = ("second".into(), 1);
    controller.attach(&second);
    let txn = controller.declare();
    let foreign = control_octets(&discharge(&txn, false));
    let id = controller.post_octets(1, &foreign, Form::default());
    assert_eq!(condition_of(&controller.outcome(id)), UNKNOWN);
    controller.commit(&txn);
}

#[test]
fn posts_with_ids_that_nobody_has_are_refused_and_not_stored() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut other = Controller::open(&broker);
    let foreign = other.declare();
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    let done = controller.declare();
    controller.commit(&done);
    let ids = [Bytes::new(), Bytes::from_static(&[7; 33]), done, foreign.clone()];
    for id in &ids {
        let state = controller.posted(1, "lost", Some(id));
        assert_eq!(condition_of(&state), UNKNOWN, "{id:?}");
    }
    let form = Form { txn: Some(&ids[0]), settled: true };
    controller.post_octets(1, &encoded(&text("lost")), form);
    assert_eq!(controller.detached(1).unwrap(), UNKNOWN);
    other.commit(&foreign);
    consumer.assert_no_delivery();
}

#[test]
fn posts_are_settled_in_each_of_the_three_ways() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    let mut second = attach("second", 2, Role::Sender, "q");
    second.rcv_settle_mode = ReceiverSettleMode::Second;
    controller.attach(&second);
    let txn = controller.declare();
    let id = controller.post(1, "the broker settles", Some(&txn));
    let told = controller.disposition(Role::Receiver, id);
    assert_eq!((told.settled, told.state), (true, Some(accepted_in(&txn))));
    let id = controller.post(2, "the broker does not settle", Some(&txn));
    let told = controller.disposition(Role::Receiver, id);
    assert_eq!((told.settled, told.state), (false, Some(accepted_in(&txn))));
    let form = Form { txn: Some(&txn), settled: true };
    controller.post_octets(1, &encoded(&text("settled")), form);
    controller.commit(&txn);
    let all = ["the broker settles", "the broker does not settle", "settled"];
    assert_eq!(consumer.receive_all(3), all);
}

#[test]
fn other_messages_are_no_work_for_a_coordinator() {
    let broker = Broker::start(config());
    let mut controller = Controller::open(&broker);
    let txn = controller.declare();
    let accepted = b"\x00\x53\x77\x00\x53\x24\x45";
    for payload in [&encoded(&text("hello"))[..], b"", b"\x00\x53\x77\x40", accepted] {
        let id = controller.post_octets(0, payload, Form::default());
        let condition = condition_of(&controller.outcome(id));
        assert_eq!(condition, "amqp:decode-error", "{payload:02x?}");
    }
    controller.commit(&txn);
}

#[test]
fn a_settled_message_to_the_coordinator_costs_the_link() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    for declares in [true, false] {
        let mut controller = Controller::open(&broker);
        controller.sender(1, "q");
        let txn = controller.declare();
        controller.posted(1, "lost", Some(&txn));
        let control = match declares {
            true => Control::Declare(Declare { global_id: None }),
            false => discharge(&txn, false),
        };
        let form = Form { txn: None, settled: true };
        controller.post_octets(0, &control_octets(&control), form);
        assert_eq!(controller.detached(0).unwrap(), "amqp:illegal-state");
        assert_eq!(condition_of(&controller.posted(1, "lost", Some(&txn))), UNKNOWN);
    }
    consumer.assert_no_delivery();
}

#[test]
fn a_discharge_may_come_in_many_transfers_and_right_behind_a_post() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    // Delivery-ids wrap on the way.
    controller.next_id = u32::MAX - 1;
    controller.sender(1, "q");
    let txn = controller.declare();
    let form = Form { txn: Some(&txn), settled: false };
    let (_, mut octets) = controller.octets(1, &encoded(&text("one")), form);
    octets.extend(controller.octets(1, &encoded(&text("two")), form).1);
    let (id, _) = controller.octets(0, b"", Form::default());
    let payload = control_octets(&discharge(&txn, false));
    for (at, octet) in payload.iter().enumerate() {
        let more = at + 1 < payload.len();
        octets.extend(framed(0, &Transfer { more, ..first(0, id) }, &[*octet]));
    }
    controller.raw.write(&octets);
    assert_eq!(controller.outcome(id), DeliveryState::Accepted);
    assert_eq!(consumer.receive_all(2), ["one", "two"]);
}

#[test]
fn work_that_fails_leaves_nothing_but_rollback() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    for settled in [true, false] {
        for fail in [true, false] {
            let txn = controller.declare();
            let form = Form { txn: Some(&txn), settled };
            assert_eq!(controller.posted(1, "before", Some(&txn)), accepted_in(&txn));
            let id = controller.post_octets(1, b"\x00\x53\x99\x45", form);
            if !settled {
                assert_eq!(refused_in(controller.outcome(id), &txn), "amqp:decode-error");
            }
            let state = controller.posted(1, "after", Some(&txn));
            assert_eq!(refused_in(state, &txn), ROLLBACK);
            match fail {
                true => controller.roll_back(&txn),
                false => assert_eq!(condition_of(&controller.discharge(&txn, false)), ROLLBACK),
            }
            assert_eq!(condition_of(&controller.discharge(&txn, true)), UNKNOWN);
        }
    }
    consumer.assert_no_delivery();
}

#[test]
fn a_transaction_spans_sessions_and_links_of_its_connection() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    controller.begin(1);
    controller.put(1, &attach("far", 0, Role::Sender, "q"));
    let (one, two) = (controller.declare(), controller.declare());
    controller.posted(1, "near", Some(&one));
    let far = |id, txn| {
        let state = Some(in_transaction(txn, None));
        framed(1, &Transfer { state, ..first(0, id) }, &encoded(&text(format!("far {id}"))))
    };
    controller.raw.write(&[far(0, &two), far(1, &one)].concat());
    controller.take("answers", |channel, frame, _| match frame {
        Performative::Disposition(d) if channel == 1 && d.last.unwrap_or(d.first) == 1 => Some(()),
        _ => None,
    });
    controller.commit(&one);
    assert_eq!(consumer.receive_all(2), ["near", "far 1"]);
    consumer.assert_no_delivery();
    controller.commit(&two);
    assert_eq!(consumer.receive_all(1), ["far 0"]);
}

#[test]
fn the_posting_link_may_be_gone_at_commit() {
    let broker = Broker::start(config());
    for closed in [true, false] {
        let mut controller = Controller::open(&broker);
        controller.sender(1, "made-on-demand");
        let (kept, dropped) = (controller.declare(), controller.declare());
        controller.posted(1, "kept", Some(&kept));
        controller.posted(1, "dropped", Some(&dropped));
        controller.detach(1, closed);
        controller.commit(&kept);
        controller.roll_back(&dropped);
        controller.receiver(1, "made-on-demand", 9);
        let (delivery, body) = controller.receive();
        assert_eq!(body, "kept");
        let id = delivery.delivery_id.unwrap();
        controller.dispose((id, id), DeliveryState::Accepted, true);
        controller.assert_no_delivery();
    }
}

#[test]
fn a_coordinator_that_is_lost_rolls_back_what_it_has_declared() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    for closed in [true, false] {
        let txn = controller.declare();
        controller.posted(1, "lost", Some(&txn));
        controller.detach(0, closed);
        assert_eq!(condition_of(&controller.posted(1, "lost", Some(&txn))), UNKNOWN);
        controller.attach(&coordinator(&[]));
        assert_eq!(condition_of(&controller.discharge(&txn, false)), UNKNOWN);
    }
    consumer.assert_no_delivery();
    assert_eq!(controller.posted(1, "plain", None), DeliveryState::Accepted);
    assert_eq!(consumer.receive_all(1), ["plain"]);
}

#[test]
fn a_session_or_connection_that_is_lost_rolls_back_too() {
    let broker = Broker::start(config());
    let mut consumer = consumer(&broker, "q");
    for how in ["end", "close", "reset"] {
        let mut controller = Controller::open(&broker);
        controller.sender(1, "q");
        let txn = controller.declare();
        controller.posted(1, "lost", Some(&txn));
        match how {
            "end" => {
                controller.put(0, &End { error: None });
                controller.take("end", |_, f, _| matches!(f, Performative::End(_)).then_some(()));
            }
            "close" => {
                controller.put(0, &Close { error: None });
                assert_eq!(controller.raw.closed(), None);
            }
            _ => drop(controller),
        }
        // Who comes later finds nothing, and what it sends is the first to come.
        let mut later = Raw::open(&broker);
        later.attach_sender("q");
        later.write(&crate::support::transfer(0, false, &encoded(&text(how))));
        assert_eq!(consumer.receive_all(1), [how]);
    }
    consumer.assert_no_delivery();
}
