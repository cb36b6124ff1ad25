//! What a transfer may say besides its payload, and what a delivery costs (part 2, 2.6.12 to
//! 2.6.14, 2.7.5).

use crate::support::{Pair, Script, config, go_on, grant, options, transfer};
use hopline_engine::wire::outcome::TransactionalState;
use hopline_engine::wire::performative::Transfer;
use hopline_engine::wire::{DeliveryState, Performative, Role, Symbol, Value};
use hopline_engine::{CommandError, Config, Event};

#[test]
fn a_format_that_is_not_given_is_0_and_any_is_told() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 10);
    for (id, message_format) in [None, Some(0), Some(u32::MAX)].into_iter().enumerate() {
        script.transfer(&Transfer { message_format, ..transfer(0, id as u32) }, b"x");
        assert_eq!(script.end.deliveries()[0].format, message_format.unwrap_or(0));
    }
    script.transfer(&Transfer { more: true, message_format: None, ..transfer(0, 3) }, b"x");
    script.transfer(&Transfer { message_format: Some(0), ..go_on(0) }, b"x");
    assert_eq!(script.end.deliveries()[0].payload[..], b"xx"[..]);
}

#[test]
fn the_first_of_our_transfers_names_id_tag_and_format_and_the_others_need_not() {
    let narrow = Config { max_frame_size: 512, ..config() };
    let (mut script, link) = Script::attached(narrow, Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    script.end.send(link, &[7; 5000]).unwrap();
    assert_eq!(script.end.connection.credit(link), 9, "ten frames, one credit");
    let heard = script.heard();
    assert!(heard.len() > 10);
    for (n, heard) in heard.iter().enumerate() {
        let Performative::Transfer(transfer) = &heard.performative else { panic!() };
        let named =
            (transfer.delivery_id, transfer.message_format, transfer.delivery_tag.is_some());
        assert_eq!(named, if n == 0 { (Some(0), Some(0), true) } else { (None, None, false) });
    }
}

#[test]
fn a_delivery_in_many_transfers_costs_one_credit() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.transfer(&Transfer { more: true, ..transfer(0, 0) }, b"x");
    (0..100).for_each(|_| script.transfer(&Transfer { more: true, ..go_on(0) }, b"x"));
    script.transfer(&go_on(0), b"x");
    assert_eq!(script.end.connection.credit(link), 9);
}

#[test]
fn the_state_of_a_transfer_is_told_whatever_it_is() {
    let txn_id = bytes::Bytes::from_static(b"txn");
    let unknown = Value::Described(Box::new((
        Value::Symbol(Symbol::from_static("unheard:of")),
        Value::List(vec![Value::from(1_u32)]),
    )));
    for state in [
        DeliveryState::Transactional(TransactionalState { txn_id, outcome: None }),
        DeliveryState::Accepted,
        DeliveryState::Other(Box::new(unknown)),
    ] {
        let (mut script, _) = Script::attached(config(), Role::Sender, 10);
        script.transfer(&Transfer { state: Some(state.clone()), ..transfer(0, 0) }, b"x");
        assert_eq!(script.end.deliveries()[0].state.as_deref(), Some(&state));
        assert!(script.is_well());
    }
}

#[test]
fn what_resumes_a_delivery_of_which_nothing_is_kept_is_ignored() {
    for parts in [1, 2, 2000] {
        let (mut script, link) = Script::attached(config(), Role::Sender, 10);
        for part in 1..=parts {
            let begun = if part == 1 { transfer(0, 0) } else { go_on(0) };
            let resume = part == 1;
            script.transfer(&Transfer { resume, more: part < parts, ..begun }, b"old");
        }
        assert!(matches!(script.end.take_events()[..], [Event::CreditUsed { .. }]));
        assert_eq!(script.end.connection.credit(link), 9);
        script.transfer(&transfer(0, 1), b"new");
        assert_eq!(script.end.deliveries()[0].payload[..], b"new"[..]);
        assert!(script.is_well());
    }
}

#[test]
fn an_answer_that_may_wait_does_not() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.transfer(&Transfer { batchable: true, ..transfer(0, 0) }, b"x");
    let id = script.end.deliveries()[0].id;
    script.end.connection.settle(link, id, DeliveryState::Accepted).unwrap();
    assert_eq!(script.end.connection.poll_timeout(), None, "it waits for no timer");
    assert!(matches!(script.heard()[0].performative, Performative::Disposition(_)));
}

#[test]
fn each_end_reads_by_its_own_limit_and_writes_by_the_other_s() {
    for (up, down) in [(512, 65_536), (65_536, 512), (4096, 1000)] {
        let of = |max_frame_size| Config { max_frame_size, ..config() };
        let mut pair = Pair::open_with(of(down), of(up));
        let session = pair.begin();
        let (sender, at_server) = pair.attach(session, options("up", Role::Sender));
        let (receiver, from_server) = pair.attach(session, options("down", Role::Receiver));
        pair.server.connection.set_credit(at_server, 9).unwrap();
        pair.client.connection.set_credit(receiver, 9).unwrap();
        pair.run();
        let body: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        pair.client.send(sender, &body).unwrap();
        pair.server.send(from_server, &body).unwrap();
        pair.run();
        for end in [&mut pair.client, &mut pair.server] {
            assert!(end.deliveries()[0].payload == body);
        }
    }
}

#[test]
fn credit_that_is_topped_up_carries_a_hundred_thousand_messages_in_order() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let (receiver, sender) = pair.attach(session, options("l", Role::Receiver));
    let (mut sent, mut got) = (0_u32, 0_u32);
    while got < 100_000 {
        if pair.client.connection.credit(receiver) <= 50 {
            pair.client.connection.set_credit(receiver, 100).unwrap();
            pair.run();
        }
        loop {
            let sending = pair.server.send_as(sender, &sent.to_be_bytes(), b"", true);
            match sending {
                Ok(_) => sent += 1,
                Err(error) => break assert_eq!(error, CommandError::Blocked),
            }
        }
        assert!(sent - got <= 100, "no more than the credit");
        pair.run();
        for delivery in pair.client.deliveries() {
            assert_eq!(delivery.payload[..], got.to_be_bytes());
            got += 1;
        }
    }
    assert_eq!(sent, got);
}
