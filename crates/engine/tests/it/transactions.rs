//! What links carry of transactions: the properties of flows, the states of deliveries (part 4,
//! 4.4).

use crate::support::{Script, config, grant, transfer};
use bytes::Bytes;
use hopline_engine::Event;
use hopline_engine::wire::outcome::TransactionalState;
use hopline_engine::wire::performative::{Flow, Transfer};
use hopline_engine::wire::{DeliveryState, Fields, Performative, Role, Symbol, Value};

fn state(txn_id: &'static [u8]) -> DeliveryState {
    let txn_id = Bytes::from_static(txn_id);
    DeliveryState::Transactional(TransactionalState { txn_id, outcome: None })
}

#[test]
fn a_flows_properties_are_told_with_its_credit() {
    let (mut script, _) = Script::attached(config(), Role::Receiver, 0);
    let id = Value::Binary(Bytes::from_static(b"one"));
    let fields = Fields(vec![(Symbol::from_static("txn-id"), id)]);
    script.send(&Flow { properties: Some(fields.clone()), ..grant(0, 0, 5) });
    script.send(&grant(0, 0, 6));
    let [Event::Credit { properties: Some(told), .. }, Event::Credit { properties: None, .. }] =
        &script.end.events[..]
    else {
        panic!("{:?}", script.end.events);
    };
    assert_eq!(**told, fields);
}

#[test]
fn a_links_delivery_state_goes_with_all_transfers_of_each_delivery() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 9));
    script.end.connection.set_delivery_state(link, Some(state(b"one")));
    script.end.send(link, b"small").unwrap();
    script.end.send(link, &[7; 100_000]).unwrap();
    let mut heard = transfers(&mut script);
    script.end.connection.set_delivery_state(link, None);
    script.end.send(link, b"plain").unwrap();
    heard.extend(transfers(&mut script));
    assert!(heard.len() > 3, "the large one needs several");
    assert_eq!(heard.pop().unwrap().state, None);
    for transfer in heard {
        assert_eq!(transfer.state, Some(state(b"one")), "{transfer:?}");
    }
}

fn transfers(script: &mut Script) -> Vec<Transfer> {
    let of = |heard: crate::support::Heard| match heard.performative {
        Performative::Transfer(transfer) => Some(transfer),
        _ => None,
    };
    script.heard().into_iter().filter_map(of).collect()
}

#[test]
fn the_state_of_a_delivery_that_comes_is_that_of_its_first_transfer() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 9);
    let first = Transfer { state: Some(state(b"one")), more: true, ..transfer(0, 0) };
    script.transfer(&first, b"be");
    script.transfer(&crate::support::go_on(0), b"gun");
    let deliveries = script.end.deliveries();
    assert_eq!(deliveries[0].state.as_deref(), Some(&state(b"one")));
    script.transfer(&transfer(0, 1), b"plain");
    assert!(script.is_well());
    let other = Some(state(b"two"));
    script.transfer(&Transfer { state: Some(state(b"one")), more: true, ..transfer(0, 2) }, b"be");
    script.transfer(&Transfer { state: other, ..crate::support::go_on(0) }, b"gun");
    assert!(script.complaint().is_some(), "it changes its transaction on the way");
}
