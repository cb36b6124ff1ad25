//! Transactions: outcomes and deliveries that hold from commit on (part 4, 4.4.2, 4.4.3).

use crate::support::{Broker, Controller, attach, config, in_transaction};
use bytes::Bytes;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::outcome::{Declared, Rejected};
use hopline_driver::engine::wire::performative::Flow;
use hopline_driver::engine::wire::{DeliveryState, Fields, Role, Symbol, Value};

const UNKNOWN: &str = "amqp:transaction:unknown-id";
const ILLEGAL: &str = "amqp:illegal-state";

/// A broker whose queue `q` holds these messages; rejected ones go to `dead`.
fn holding(bodies: &[&str]) -> Broker {
    let mut config = config();
    config.nodes.queues = vec!["q".into(), "dead".into()];
    config.nodes.dead_letter = Some("dead".into());
    let broker = Broker::start(config);
    let mut filler = Controller::open_without(&broker);
    filler.sender(0, "q");
    for body in bodies {
        assert_eq!(filler.posted(0, body, None), DeliveryState::Accepted);
    }
    broker
}

/// A controller with a receiver of `q` that has taken all messages; delivery-ids count from 0.
fn with_receiver(broker: &Broker, count: usize) -> Controller {
    let mut controller = Controller::open(broker);
    controller.receiver(1, "q", 1000);
    for n in 0..count {
        assert_eq!(controller.receive().0.delivery_id, Some(n as u32));
    }
    controller
}

/// What others find in a queue; it is left there.
fn found(broker: &Broker, address: &str) -> Vec<String> {
    let mut browser = Controller::open_without(broker);
    let mut browses = attach("browser", 0, Role::Receiver, address);
    if let Some(source) = &mut browses.source {
        source.distribution_mode = Some(Symbol::from_static("copy"));
    }
    browser.attach(&browses);
    browser.grant(0, 1000, None);
    browser.came()
}

fn outcomes() -> Vec<DeliveryState> {
    vec![
        DeliveryState::Accepted,
        DeliveryState::Rejected(Rejected { error: None }),
        DeliveryState::Released,
        DeliveryState::modified(true, true),
    ]
}

#[test]
fn each_outcome_holds_from_commit_on() {
    for settled in [true, false] {
        for (at, outcome) in outcomes().into_iter().enumerate() {
            let broker = holding(&["m"]);
            let mut controller = with_receiver(&broker, 1);
            let txn = controller.declare();
            let state = in_transaction(&txn, Some(outcome.clone()));
            controller.dispose((0, 0), state, settled);
            controller.assert_no_delivery();
            assert!(found(&broker, "q").is_empty() && found(&broker, "dead").is_empty());
            controller.commit(&txn);
            if !settled {
                let told = controller.disposition(Role::Sender, 0);
                assert_eq!((told.settled, told.state), (true, Some(outcome)));
            }
            match at {
                // Released: it comes again, here as there is nobody else.
                2 => assert_eq!(controller.receive().1, "m"),
                // Undeliverable here: left for others.
                3 => assert_eq!(found(&broker, "q"), ["m"]),
                _ => assert!(found(&broker, "q").is_empty()),
            }
            assert_eq!(found(&broker, "dead").len(), usize::from(at == 1));
            controller.assert_no_delivery();
        }
    }
}

#[test]
fn after_a_rollback_an_unsettled_delivery_is_still_the_consumers_and_a_settled_one_is_back() {
    for settled in [true, false] {
        for outcome in outcomes() {
            let broker = holding(&["m", "n"]);
            let mut controller = with_receiver(&broker, 2);
            let txn = controller.declare();
            controller.dispose((0, 1), in_transaction(&txn, Some(outcome)), settled);
            controller.roll_back(&txn);
            if settled {
                assert_eq!(controller.receive_all(2), ["m", "n"], "in their order");
            } else {
                controller.assert_no_delivery();
                controller.dispose((0, 1), DeliveryState::Accepted, true);
                controller.sync();
            }
            assert!(found(&broker, "q").is_empty() && found(&broker, "dead").is_empty());
        }
    }
}

#[test]
fn a_receiver_of_mode_second_is_answered_at_commit() {
    let broker = holding(&["m", "n"]);
    let mut controller = Controller::open(&broker);
    let mut second = attach("second", 1, Role::Receiver, "q");
    second.rcv_settle_mode = ReceiverSettleMode::Second;
    controller.attach(&second);
    controller.grant(1, 2, None);
    assert_eq!(controller.receive_all(2), ["m", "n"]);
    let (kept, dropped) = (controller.declare(), controller.declare());
    let accepted = Some(DeliveryState::Accepted);
    controller.dispose((0, 0), in_transaction(&kept, accepted.clone()), false);
    controller.dispose((1, 1), in_transaction(&dropped, accepted.clone()), false);
    controller.commit(&kept);
    let told = controller.disposition(Role::Sender, 0);
    assert_eq!((told.settled, told.state), (true, accepted.clone()));
    controller.roll_back(&dropped);
    // Plainly now.
    controller.dispose((1, 1), DeliveryState::Accepted, false);
    let told = controller.disposition(Role::Sender, 1);
    assert_eq!((told.settled, told.state), (true, accepted));
    assert!(found(&broker, "q").is_empty());
}

#[test]
fn a_retirement_in_no_transaction_ends_the_link_and_keeps_the_message() {
    for settled in [true, false] {
        for id in [Bytes::new(), Bytes::from_static(&[1; 33]), Bytes::from_static(&[0; 8])] {
            let broker = holding(&["m"]);
            let mut controller = with_receiver(&broker, 1);
            let state = in_transaction(&id, Some(DeliveryState::Accepted));
            controller.dispose((0, 0), state, settled);
            assert_eq!(controller.detached(1).unwrap(), UNKNOWN);
            assert_eq!(found(&broker, "q"), ["m"]);
        }
    }
}

#[test]
fn ranges_cross_plain_and_transactional_deliveries() {
    let bodies = ["0", "1", "2", "3", "4", "5"];
    let broker = holding(&bodies);
    let mut controller = with_receiver(&broker, 6);
    let txn = controller.declare();
    let accepted = DeliveryState::Accepted;
    controller.dispose((1, 1), DeliveryState::Accepted, true);
    // Ids that are settled, or were never given, are none of its business.
    let state = in_transaction(&txn, Some(accepted.clone()));
    controller.dispose((0, 3), state.clone(), true);
    controller.dispose((4, 4), state, false);
    // The plain range agrees with the retirement of 4, and settles 5 for good.
    controller.dispose((0, 99), accepted, true);
    controller.roll_back(&txn);
    assert_eq!(controller.receive_all(4), ["0", "2", "3", "4"]);
    controller.assert_no_delivery();
}

#[test]
fn a_delivery_has_one_transaction_and_its_last_outcome_in_it_counts() {
    let broker = holding(&["m", "n"]);
    let mut controller = with_receiver(&broker, 2);
    let (one, two) = (controller.declare(), controller.declare());
    let (accepted, released) = (Some(DeliveryState::Accepted), Some(DeliveryState::Released));
    controller.dispose((0, 1), in_transaction(&one, released.clone()), false);
    controller.dispose((0, 1), in_transaction(&one, accepted.clone()), false);
    controller.commit(&one);
    assert!(found(&broker, "q").is_empty(), "both were accepted in the end");
    controller.commit(&two);
}

#[test]
fn a_delivery_in_two_transactions_costs_the_control_link_and_all_that_was_declared_on_it() {
    for acquires in [true, false] {
        let broker = holding(&["m", "n"]);
        let mut controller = Controller::open(&broker);
        controller.receiver(1, "q", 0);
        let (one, two) = (controller.declare(), controller.declare());
        controller.grant(1, 2, acquires.then_some(&one));
        assert_eq!(controller.receive_all(2), ["m", "n"]);
        let accepted = Some(DeliveryState::Accepted);
        controller.dispose((0, 1), in_transaction(&one, accepted.clone()), false);
        controller.dispose((1, 1), in_transaction(&two, accepted), false);
        assert_eq!(controller.detached(0).unwrap(), "amqp:transaction:rollback");
        controller.detach(1, true);
        assert_eq!(found(&broker, "q"), ["m", "n"]);
    }
}

#[test]
fn an_outcome_that_the_source_rules_out_is_none_in_a_transaction_either() {
    let broker = holding(&["m"]);
    let mut controller = Controller::open(&broker);
    let mut receiver = attach("chooses", 1, Role::Receiver, "q");
    if let Some(source) = &mut receiver.source {
        source.outcomes = vec![Symbol::from_static("amqp:accepted:list")];
    }
    controller.attach(&receiver);
    controller.grant(1, 1, None);
    assert_eq!(controller.receive().1, "m");
    let txn = controller.declare();
    let rejected = DeliveryState::Rejected(Rejected { error: None });
    controller.dispose((0, 0), in_transaction(&txn, Some(rejected)), true);
    assert_eq!(controller.detached(1).unwrap(), "amqp:not-allowed");
    controller.commit(&txn);
    assert_eq!(found(&broker, "q"), ["m"]);
}

#[test]
fn what_is_no_outcome_retires_nothing() {
    let broker = holding(&["m"]);
    let mut controller = with_receiver(&broker, 1);
    let txn = controller.declare();
    let declared = DeliveryState::Declared(Declared { txn_id: txn.clone() });
    for state in [None, Some(declared)] {
        controller.dispose((0, 0), in_transaction(&txn, state), false);
    }
    controller.commit(&txn);
    controller.assert_no_delivery();
    controller.dispose((0, 0), DeliveryState::Released, true);
    assert_eq!(controller.receive().1, "m");
}

#[test]
fn a_plain_outcome_that_contradicts_the_transactions_ends_the_link() {
    let broker = holding(&["m"]);
    let mut controller = with_receiver(&broker, 1);
    let txn = controller.declare();
    let state = in_transaction(&txn, Some(DeliveryState::Accepted));
    controller.dispose((0, 0), state, false);
    controller.dispose((0, 0), DeliveryState::Released, true);
    assert_eq!(controller.detached(1).unwrap(), ILLEGAL);
    assert!(found(&broker, "q").is_empty(), "it is the transaction's");
    controller.roll_back(&txn);
    assert_eq!(found(&broker, "q"), ["m"]);
}

#[test]
fn the_receiving_link_may_be_gone_at_the_discharge() {
    for (settled, fails) in [(true, true), (true, false), (false, true), (false, false)] {
        let broker = holding(&["m", "n"]);
        let mut controller = with_receiver(&broker, 2);
        let txn = controller.declare();
        let state = in_transaction(&txn, Some(DeliveryState::Accepted));
        controller.dispose((0, 0), state, settled);
        controller.detach(1, true);
        assert_eq!(found(&broker, "q"), ["n"], "what was not retired is back");
        match fails {
            true => controller.roll_back(&txn),
            false => controller.commit(&txn),
        }
        let left: &[&str] = if fails { &["m", "n"] } else { &["n"] };
        assert_eq!(found(&broker, "q"), left);
    }
}

#[test]
fn an_on_demand_queue_stays_for_what_a_transaction_has_retired() {
    let broker = Broker::start(config());
    let mut controller = Controller::open(&broker);
    controller.sender(1, "on-demand");
    controller.posted(1, "m", None);
    controller.receiver(2, "on-demand", 9);
    assert_eq!(controller.receive().1, "m");
    let txn = controller.declare();
    controller.dispose((0, 0), in_transaction(&txn, Some(DeliveryState::Accepted)), true);
    controller.detach(1, true);
    controller.detach(2, true);
    controller.roll_back(&txn);
    controller.receiver(1, "on-demand", 9);
    assert_eq!(controller.receive().1, "m");
}

#[test]
fn the_connections_loss_gives_back_what_was_retired() {
    let broker = holding(&["m"]);
    let mut controller = with_receiver(&broker, 1);
    let txn = controller.declare();
    controller.dispose((0, 0), in_transaction(&txn, Some(DeliveryState::Accepted)), true);
    controller.sync();
    drop(controller);
    let mut next = Controller::open_without(&broker);
    next.receiver(0, "q", 1);
    assert_eq!(next.receive().1, "m");
}

#[test]
fn what_is_acquired_stays_after_commit_and_comes_back_by_rollback() {
    for settled in [true, false] {
        for fails in [true, false] {
            let broker = holding(&["m", "n", "o"]);
            let mut controller = Controller::open(&broker);
            let mut receiver = attach("acquires", 1, Role::Receiver, "q");
            if settled {
                receiver.snd_settle_mode = SenderSettleMode::Settled;
            }
            controller.attach(&receiver);
            let txn = controller.declare();
            controller.grant(1, 2, Some(&txn));
            for body in ["m", "n"] {
                let (transfer, came) = controller.receive();
                assert_eq!(came, body);
                assert_eq!(transfer.state, Some(in_transaction(&txn, None)));
                assert_eq!(transfer.settled.unwrap_or(false), settled);
            }
            match fails {
                true => controller.roll_back(&txn),
                false => controller.commit(&txn),
            }
            controller.assert_no_delivery();
            let left: &[&str] = if fails { &["m", "n", "o"] } else { &["o"] };
            assert_eq!(found(&broker, "q"), left);
            if fails && !settled {
                let told = controller.disposition(Role::Sender, 1);
                assert_eq!((told.settled, told.state), (true, Some(DeliveryState::Released)));
            }
            // Plain credit goes on plainly.
            controller.grant(1, 3, None);
            let (transfer, body) = controller.receive();
            assert_eq!((transfer.state, body.as_str()), (None, left[0]));
        }
    }
}

#[test]
fn acquired_deliveries_are_retired_in_the_transaction_or_plainly() {
    let broker = holding(&["m", "n", "o"]);
    let mut controller = Controller::open(&broker);
    controller.receiver(1, "q", 0);
    let txn = controller.declare();
    controller.grant(1, 3, Some(&txn));
    assert_eq!(controller.receive_all(3), ["m", "n", "o"]);
    controller.dispose((0, 0), in_transaction(&txn, Some(DeliveryState::Accepted)), true);
    controller.dispose((1, 1), DeliveryState::Accepted, true);
    controller.roll_back(&txn);
    assert_eq!(found(&broker, "q"), ["m", "o"], "what was accepted plainly is gone");
}

#[test]
fn credit_of_a_transaction_ends_with_it() {
    let broker = holding(&[]);
    let mut controller = Controller::open(&broker);
    controller.receiver(1, "q", 0);
    controller.sender(2, "q");
    let txn = controller.declare();
    controller.grant(1, 10, Some(&txn));
    controller.posted(2, "in it", None);
    assert_eq!(controller.receive().0.state, Some(in_transaction(&txn, None)));
    controller.commit(&txn);
    controller.posted(2, "after it", None);
    controller.assert_no_delivery();
    controller.grant(1, 10, None);
    assert_eq!(controller.receive().1, "after it");
}

#[test]
fn acquisition_in_no_transaction_ends_the_link() {
    let broker = holding(&["m"]);
    let mut other = Controller::open(&broker);
    let foreign = other.declare();
    for id in [Bytes::new(), Bytes::from_static(&[9; 33]), foreign] {
        let mut controller = Controller::open(&broker);
        controller.receiver(1, "q", 0);
        controller.grant(1, 10, Some(&id));
        assert_eq!(controller.detached(1).unwrap(), UNKNOWN);
        controller.assert_no_delivery();
    }
    let mut controller = Controller::open(&broker);
    controller.receiver(1, "q", 0);
    let properties = Some(Fields(vec![(Symbol::from_static("txn-id"), Value::Boolean(true))]));
    let flow = Flow { properties, link_credit: Some(1), ..controller.flow(Some(1)) };
    controller.put(0, &flow);
    assert_eq!(controller.detached(1).unwrap(), "amqp:invalid-field");
    assert_eq!(found(&broker, "q"), ["m"]);
}
