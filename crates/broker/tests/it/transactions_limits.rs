//! Transactions: their limits of time, number and size, and queues that can't take what they hold.

use crate::support::{
    Broker, Controller, Form, attach, condition_of, config, encoded, in_transaction, text, timed,
};
use bytes::Bytes;
use hopline_broker::Config;
use hopline_driver::engine::wire::control::Control;
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::performative::Performative;
use hopline_driver::engine::wire::terminus::{Declare, Source};
use hopline_driver::engine::wire::{DeliveryState, Role, Value};
use hopline_driver::timeline::{ANNOTATION, Stage, Timeline};
use std::time::Duration;

const ROLLBACK: &str = "amqp:transaction:rollback";
const LIMIT: &str = "amqp:resource-limit-exceeded";

fn broker(change: impl FnOnce(&mut Config)) -> Broker {
    let mut config = config();
    change(&mut config);
    Broker::start(config)
}

fn accepted_in(txn: &Bytes) -> DeliveryState {
    in_transaction(txn, Some(DeliveryState::Accepted))
}

fn refused_in(state: DeliveryState) -> String {
    let DeliveryState::Transactional(state) = state else { panic!("{state:?}") };
    condition_of(&state.outcome.unwrap())
}

/// A commit is refused; why.
fn refused_commit(controller: &mut Controller, txn: &[u8]) -> String {
    let state = controller.discharge(txn, false);
    assert_eq!(condition_of(&state), ROLLBACK);
    let DeliveryState::Rejected(rejected) = state else { panic!() };
    rejected.error.unwrap().description.unwrap()
}

#[test]
fn a_connection_has_as_many_transactions_as_it_may_and_no_more() {
    let broker = broker(|config| config.limits.transactions = 2);
    let mut controller = Controller::open(&broker);
    let (one, two) = (controller.declare(), controller.declare());
    let declare = Control::Declare(Declare { global_id: None });
    assert_eq!(condition_of(&controller.control(&declare)), LIMIT);
    assert!(!Controller::open(&broker).declare().is_empty(), "others have their own");
    controller.commit(&one);
    let three = controller.declare();
    assert_eq!(condition_of(&controller.control(&declare)), LIMIT);
    controller.roll_back(&two);
    controller.commit(&three);
    for _ in 0..500 {
        let txn = controller.declare();
        controller.commit(&txn);
    }
}

#[test]
fn a_transaction_holds_as_many_deliveries_as_it_may_and_no_more() {
    let broker = broker(|config| config.limits.transaction_deliveries = 3);
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    for count in [3, 4] {
        let txn = controller.declare();
        for n in 0..count {
            let state = controller.posted(1, "m", Some(&txn));
            match n < 3 {
                true => assert_eq!(state, accepted_in(&txn)),
                false => assert_eq!(refused_in(state), LIMIT),
            }
        }
        match count {
            3 => controller.commit(&txn),
            _ => assert!(refused_commit(&mut controller, &txn).contains("3 deliveries")),
        }
    }
    // The three of the first one are all there is; retiring and acquiring count as well.
    controller.receiver(2, "q", 3);
    assert_eq!(controller.receive_all(3).len(), 3);
    let txn = controller.declare();
    controller.dispose((0, 2), in_transaction(&txn, Some(DeliveryState::Accepted)), true);
    assert_eq!(refused_in(controller.posted(1, "m", Some(&txn))), LIMIT);
    assert!(refused_commit(&mut controller, &txn).contains("3 deliveries"));
    controller.grant(2, 9, None);
    assert_eq!(controller.receive_all(3).len(), 3, "they are back");
}

#[test]
fn retiring_more_than_a_transaction_holds_rolls_all_of_it_back() {
    for acquires in [true, false] {
        let broker = broker(|config| config.limits.transaction_deliveries = 2);
        let mut controller = Controller::open(&broker);
        controller.sender(1, "q");
        ["0", "1", "2"].iter().for_each(|body| {
            controller.posted(1, body, None);
        });
        controller.receiver(2, "q", 0);
        let txn = controller.declare();
        if acquires {
            controller.grant(2, 9, Some(&txn));
            assert_eq!(controller.receive_all(3).len(), 3);
        } else {
            controller.grant(2, 3, None);
            assert_eq!(controller.receive_all(3).len(), 3);
            let state = in_transaction(&txn, Some(DeliveryState::Accepted));
            controller.dispose((0, 2), state, true);
        }
        assert!(refused_commit(&mut controller, &txn).contains("2 deliveries"));
        controller.grant(2, 99, None);
        assert_eq!(controller.receive_all(3), ["0", "1", "2"]);
    }
}

#[test]
fn a_transaction_holds_as_many_octets_as_it_may_and_no_more() {
    let size = encoded(&text("12345")).len();
    let broker = broker(|config| config.limits.transaction_octets = 3 * size);
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    for last in ["12345", "123456"] {
        let txn = controller.declare();
        controller.posted(1, "12345", Some(&txn));
        controller.posted(1, "12345", Some(&txn));
        let state = controller.posted(1, last, Some(&txn));
        if last == "12345" {
            assert_eq!(state, accepted_in(&txn));
            controller.commit(&txn);
        } else {
            assert_eq!(refused_in(state), LIMIT);
            assert!(refused_commit(&mut controller, &txn).contains("octets"));
        }
    }
}

#[test]
fn a_commit_to_a_queue_without_room_does_nothing_at_all() {
    let broker = broker(|config| config.nodes.max_messages = 4);
    let mut controller = Controller::open(&broker);
    controller.sender(1, "full");
    controller.sender(2, "other");
    let mut taker = Controller::open_without(&broker);
    taker.receiver(0, "other", 9);
    let txn = controller.declare();
    for _ in 0..5 {
        assert_eq!(controller.posted(1, "m", Some(&txn)), accepted_in(&txn));
    }
    controller.posted(2, "m", Some(&txn));
    assert!(refused_commit(&mut controller, &txn).contains("\"full\" has no room"));
    taker.assert_no_delivery();
    // Four fit; a fifth does as soon as the same transaction makes room for it.
    let txn = controller.declare();
    (0..4).for_each(|_| drop(controller.posted(1, "m", Some(&txn))));
    controller.commit(&txn);
    let txn = controller.declare();
    controller.posted(1, "m", Some(&txn));
    assert!(refused_commit(&mut controller, &txn).contains("no room"));
    controller.receiver(3, "full", 1);
    controller.receive();
    let txn = controller.declare();
    controller.posted(1, "last", Some(&txn));
    controller.dispose((0, 0), accepted_in(&txn), true);
    controller.commit(&txn);
    controller.grant(3, 9, None);
    assert_eq!(controller.receive_all(4), ["m", "m", "m", "last"]);
}

#[test]
fn a_commit_to_a_queue_without_octets_left_does_nothing_either() {
    let size = encoded(&text("12345")).len();
    let broker = broker(|config| config.nodes.max_octets = 2 * size);
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    let txn = controller.declare();
    ["12345", "123456"].iter().for_each(|body| drop(controller.posted(1, body, Some(&txn))));
    assert!(refused_commit(&mut controller, &txn).contains("no room"));
    let txn = controller.declare();
    ["12345", "54321"].iter().for_each(|body| drop(controller.posted(1, body, Some(&txn))));
    controller.commit(&txn);
    controller.receiver(2, "q", 9);
    assert_eq!(controller.receive_all(2), ["12345", "54321"]);
}

#[test]
fn a_node_that_was_deleted_takes_the_whole_transaction_along() {
    let broker = broker(|_| {});
    let mut controller = Controller::open(&broker);
    let mut dynamic = attach("dynamic", 1, Role::Receiver, "");
    dynamic.source = Some(Box::new(Source { dynamic: true, ..Source::default() }));
    let answer = controller.attach(&dynamic);
    let address = answer.source.unwrap().address.unwrap();
    controller.sender(2, &address);
    controller.sender(3, "q");
    let mut taker = Controller::open_without(&broker);
    taker.receiver(0, "q", 9);
    let txn = controller.declare();
    controller.posted(2, "m", Some(&txn));
    controller.posted(3, "m", Some(&txn));
    controller.detach(1, true);
    assert_eq!(controller.detached(2).unwrap(), "amqp:resource-deleted");
    assert!(refused_commit(&mut controller, &txn).contains("deleted"));
    taker.assert_no_delivery();
}

#[test]
fn a_transaction_whose_time_is_up_is_rolled_back_and_its_discharge_says_so() {
    let broker = broker(|config| config.limits.transaction_timeout = Duration::from_secs(1));
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    controller.posted(1, "retired", None);
    controller.receiver(2, "q", 1);
    controller.receive();
    let (commits, rolls_back) = (controller.declare(), controller.declare());
    controller.posted(1, "lost", Some(&commits));
    controller.dispose((0, 0), accepted_in(&commits), true);
    let mut other = Controller::open_without(&broker);
    other.receiver(0, "q", 9);
    // The rollback itself needs no discharge.
    assert_eq!(other.receive().1, "retired");
    let state = controller.discharge(&commits, false);
    assert_eq!(condition_of(&state), "amqp:transaction:timeout");
    controller.roll_back(&rolls_back);
    other.assert_no_delivery();
    let prompt = controller.declare();
    controller.posted(1, "in time", Some(&prompt));
    controller.commit(&prompt);
    assert_eq!(other.receive().1, "in time");
}

#[test]
fn a_timeline_shows_how_long_a_message_waited_for_the_commit() {
    let broker = broker(|_| {});
    let mut taker = Controller::open_without(&broker);
    taker.receiver(0, "q", 9);
    let mut controller = Controller::open(&broker);
    controller.sender(1, "q");
    let txn = controller.declare();
    let form = Form { txn: Some(&txn), settled: false };
    let id = controller.post_octets(1, &encoded(&timed("m")), form);
    controller.outcome(id);
    let waited = Duration::from_millis(30);
    std::thread::sleep(waited);
    controller.commit(&txn);
    let payload = taker.take("delivery", |_, frame, payload| {
        matches!(frame, Performative::Transfer(_)).then(|| Bytes::copy_from_slice(payload))
    });
    let message = Message::decode(&payload).unwrap();
    let Some(Value::Binary(octets)) = message.message_annotations.get(ANNOTATION) else { panic!() };
    let timeline = Timeline::parse(octets).unwrap();
    let at = |stage| {
        timeline.stamps.iter().rev().find(|s| s.stage == Stage::code(stage)).unwrap().at.unwrap()
    };
    let held = at(Stage::Enqueue).saturating_duration_since(at(Stage::Deserialize));
    assert!(held >= waited, "{held:?}");
    assert!(at(Stage::Send) >= at(Stage::Dequeue) && at(Stage::Dequeue) >= at(Stage::Enqueue));
}
