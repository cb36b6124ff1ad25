//! Ends of sessions and connections, and mistakes at the level where they belong (part 2, 2.4.3 to
//! 2.4.6, 2.5.2 to 2.5.5).

use crate::support::{
    Complaint, Pair, Script, agree, attach, begin, close, config, detach, end, error, flow, grant,
    options, plain, transfer,
};
use hopline_engine::wire::performative::{Begin, Close, End, Transfer};
use hopline_engine::wire::{
    AmqpError, DeliveryState, Fields, Performative, Role, Serial, Symbol, Value, condition,
};
use hopline_engine::{CommandError, Event, LinkId, SessionId};
use std::time::Duration;

fn codes(script: &mut Script) -> Vec<u8> {
    crate::support::frames_of(&script.octets()).iter().map(|frame| frame.2).collect()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    let kind = |event: &Event| match event {
        Event::Detached { .. } => "detached",
        Event::SessionEnded { .. } => "ended",
        Event::Closed { .. } => "closed",
        Event::SessionBegun(_) => "begun",
        _ => "other",
    };
    events.iter().map(kind).collect()
}

fn session_of(script: &Script, link: LinkId) -> SessionId {
    script.end.connection.link_info(link).unwrap().session
}

#[test]
fn an_end_is_answered_and_takes_the_links_along_without_detaches() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.attach(&attach("b", 1, Role::Sender));
    script.send_on(1, &begin());
    script.heard();
    script.end.events.clear();
    script.send(&end());
    assert_eq!(codes(&mut script), [0x17]);
    assert_eq!(kinds(&script.end.events), ["detached", "detached", "ended"]);
    assert!(script.end.connection.link_info(link).is_none());
    script.send_on(1, &attach("l0", 0, Role::Receiver));
    assert_eq!(codes(&mut script), [0x12], "the other session goes on, and the name is free");
}

#[test]
fn a_channel_may_begin_anew_in_the_same_segment_as_its_end() {
    let (mut script, _) = Script::attached(config(), Role::Receiver, 0);
    let mut octets = Vec::new();
    use hopline_engine::wire::performative::Frame;
    for _ in 0..10 {
        end().put(&mut octets, 0);
        begin().put(&mut octets, 0);
        attach("l0", 0, Role::Receiver).put(&mut octets, 0);
    }
    script.raw(&octets);
    assert_eq!(codes(&mut script), [0x17, 0x11, 0x12].repeat(10));
    assert!(script.is_well());
}

#[test]
fn ends_that_cross_are_one_end() {
    let mut pair = Pair::open();
    let session = pair.begin();
    let (_, b) = pair.attach(session, options("l", Role::Sender));
    let there = pair.server.connection.link_info(b).unwrap().session;
    pair.client.take_events();
    pair.server.take_events();
    pair.client.connection.end(session, None);
    pair.server.connection.end(there, None);
    pair.run();
    for end in [&mut pair.client, &mut pair.server] {
        assert_eq!(kinds(&end.take_events()), ["detached", "ended"]);
        assert!(end.connection.is_open());
    }
    let again = pair.begin();
    assert!(pair.client.connection.attach(again, options("l", Role::Sender)).is_ok());
}

#[test]
fn behind_our_end_what_comes_is_discarded_and_nothing_goes_out() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    let receiver = script.attach(&attach("b", 1, Role::Sender));
    script.end.answers = false;
    script.send(&grant(0, 0, 10));
    script.send(&attach("late", 2, Role::Sender));
    let Some(Event::AttachRequest { link: late, .. }) = script.end.take_events().pop() else {
        panic!()
    };
    let session = session_of(&script, link);
    script.end.connection.end(session, None);
    assert_eq!(codes(&mut script), [0x17]);
    script.send(&attach("b", 9, Role::Sender));
    script.send_on(1, &begin());
    script.send_on(1, &attach("l0", 0, Role::Receiver));
    script.heard();
    script.end.take_events();
    let connection = &mut script.end.connection;
    let answer = agree(&attach("late", 2, Role::Sender));
    assert_eq!(connection.accept(late, answer), Err(CommandError::NoLink));
    connection.refuse(late, AmqpError::new(condition::NOT_FOUND, "late"));
    connection.detach(link, true, None);
    connection.detach(receiver, true, None);
    connection.end(session, None);
    assert!(connection.set_credit(receiver, 1).is_err());
    assert!(connection.settle(receiver, Serial(0), DeliveryState::Accepted).is_err());
    let refused = connection.attach(session, options("new", Role::Sender));
    assert_eq!(refused, Err(CommandError::NoSession));
    assert_eq!(script.end.send(link, b"x"), Err(CommandError::Blocked));
    script.transfer(&transfer(77, 99), b"x");
    script.send(&flow());
    assert!(codes(&mut script).is_empty());
    script.send(&end());
    assert_eq!(kinds(&script.end.events), ["detached", "detached", "detached", "ended"]);
    assert!(codes(&mut script).is_empty());
}

#[test]
fn a_large_message_stops_at_the_end_of_its_session() {
    for closes in [false, true] {
        let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
        script.send(&grant(0, 0, 10));
        script.end.send(link, &[1; 1_000_000]).unwrap();
        script.end.connection.poll_transmit();
        let session = session_of(&script, link);
        match closes {
            true => script.end.connection.close(None, script.now),
            false => script.end.connection.end(session, None),
        }
        let codes = codes(&mut script);
        let (last, before) = codes.split_last().unwrap();
        assert_eq!(*last, if closes { 0x18 } else { 0x17 });
        assert!(before.iter().all(|code| *code == 0x14) && before.len() < 5);
    }
}

#[test]
fn a_session_that_is_ended_before_the_peer_has_begun_it_is_over_once_it_has() {
    let mut script = Script::opened(config());
    let session = script.end.connection.begin().unwrap();
    script.end.connection.attach(session, options("l", Role::Sender)).unwrap();
    script.end.connection.end(session, None);
    assert_eq!(codes(&mut script), [0x11, 0x12, 0x17]);
    script.send_on(5, &Begin { remote_channel: Some(0), ..begin() });
    script.send_on(5, &attach("l", 0, Role::Receiver));
    script.send_on(5, &end());
    assert_eq!(kinds(&script.end.take_events()), ["begun", "detached", "ended"]);
    assert!(codes(&mut script).is_empty());
    script.end.connection.begin().unwrap();
    assert_eq!(script.heard()[0].channel, 0, "the channel is free");
}

#[test]
fn an_error_of_a_session_is_told_once_and_leaves_the_others() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.send_on(1, &begin());
    script.send_on(1, &attach("other", 0, Role::Sender));
    script.heard();
    script.end.events.clear();
    script.transfer(&transfer(9, 0), b"x");
    script.transfer(&transfer(0, 0), b"x");
    script.transfer(&transfer(9, 0), b"x");
    assert_eq!(script.complaint(), Some(Complaint::Session(condition::UNATTACHED_HANDLE)));
    assert_eq!(kinds(&script.end.take_events()), ["detached", "ended"]);
    assert!(script.end.connection.link_info(link).is_none());
    script.send(&end());
    assert!(script.end.events.is_empty() && script.heard().is_empty());
    script.send_on(1, &detach(0, true));
    assert_eq!(codes(&mut script), [0x16]);
    script.send(&begin());
    assert_eq!(codes(&mut script), [0x11]);
}

#[test]
fn a_close_is_answered_and_ends_all() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 10);
    script.transfer(&Transfer { more: true, ..transfer(0, 0) }, b"x");
    script.send(&Close { error: error("amqp:internal-error") });
    script.send(&begin());
    assert_eq!(codes(&mut script), [0x18]);
    assert_eq!(kinds(&script.end.events), ["detached", "ended", "closed"]);
    let Some(Event::Closed { by_peer: true, error: Some(why) }) = script.end.events.last() else {
        panic!()
    };
    assert_eq!(why.condition, condition::INTERNAL_ERROR);
    assert!(script.end.connection.is_finished());
    assert_eq!(script.end.connection.poll_timeout(), None);
}

#[test]
fn behind_our_close_what_comes_is_discarded_and_nothing_goes_out() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    let session = session_of(&script, link);
    script.transfer(&transfer(0, 0), b"x");
    let forced = AmqpError::new(condition::CONNECTION_FORCED, "the server stops");
    script.end.connection.close(Some(forced), script.now);
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::CONNECTION_FORCED)));
    script.end.events.clear();
    let connection = &mut script.end.connection;
    assert_eq!(connection.begin(), Err(CommandError::NotOpen));
    assert!(connection.attach(session, options("new", Role::Sender)).is_err());
    assert!(connection.settle(link, Serial(0), DeliveryState::Accepted).is_err());
    connection.detach(link, true, None);
    connection.end(session, None);
    connection.close(None, script.now);
    script.transfer(&transfer(0, 7), b"x");
    script.send_on(99, &attach("x", 0, Role::Sender));
    script.raw(&[0, 0, 0, 12, 2, 0, 0, 0, 1, 2, 3, 4]);
    assert!(script.end.events.is_empty() && codes(&mut script).is_empty());
    script.send(&close());
    assert_eq!(kinds(&script.end.events), ["detached", "ended", "closed"]);
    assert!(script.end.connection.is_finished() && codes(&mut script).is_empty());
}

#[test]
fn closes_that_cross_are_one_close() {
    let mut pair = Pair::open();
    pair.client.connection.close(None, pair.now);
    pair.server.connection.close(None, pair.now);
    pair.run();
    for end in [&pair.client, &pair.server] {
        assert!(matches!(end.events[..], [Event::Closed { error: None, .. }]));
        assert!(end.connection.is_finished());
    }
}

#[test]
fn a_close_without_an_answer_is_over_in_time() {
    let mut script = plain();
    script.end.connection.close(None, script.now);
    script.pass(Duration::from_millis(1999));
    assert!(!script.end.connection.is_over());
    script.pass(Duration::from_millis(1));
    assert!(script.end.connection.is_over());
    assert_eq!(kinds(&script.end.events), ["ended", "closed"]);
}

#[test]
fn the_end_of_the_octets_cleans_up_like_a_close() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    script.raw(&[0, 0, 1, 0, 2, 0]);
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    assert_eq!(kinds(&script.end.events), ["detached", "ended", "closed"]);
    let lost = script.end.events.last();
    assert!(matches!(lost, Some(Event::Closed { by_peer: true, error: Some(_) })));
    assert!(script.end.connection.link_info(link).is_none());
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    assert_eq!(script.end.events.len(), 3, "told once");

    let mut script = plain();
    script.end.connection.close(None, script.now);
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    let expected = script.end.events.last();
    assert!(matches!(expected, Some(Event::Closed { by_peer: false, error: None })));
}

#[test]
fn bodies_that_cannot_be_read_close_the_connection_with_a_decode_error() {
    let bodies: [&[u8]; 6] = [
        &[0x00, 0x53, 0x99, 0x45],
        &[0x00, 0x53, 0x14, 0x45],
        &[0x00, 0x53, 0x12, 0xc0, 0xff, 0x01],
        &[0x00, 0x53, 0x11, 0xc0, 5, 4, 0x40, 0x40, 0x40, 0x40],
        &[0x40],
        &[0x00, 0x53, 0x17, 0xc0, 3, 2, 0x40, 0x40],
    ];
    for body in bodies {
        let (mut script, _) = Script::attached(config(), Role::Sender, 10);
        let mut octets = vec![0, 0, 0, 8 + body.len() as u8, 2, 0, 0, 0];
        octets.extend_from_slice(body);
        script.raw(&octets);
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Connection(condition::DECODE_ERROR)), "{body:x?}");
        assert_eq!(kinds(&script.end.events), ["detached", "ended", "closed"]);
        script.end.events.clear();
        script.send(&close());
        assert!(script.end.events.is_empty() && script.end.connection.is_finished());
    }
}

#[test]
fn an_end_with_an_error_tells_its_links_why() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 10);
    script.send(&End { error: error("amqp:not-found") });
    let [Event::Detached { error: Some(a), .. }, Event::SessionEnded { error: Some(b), .. }] =
        &script.end.events[..]
    else {
        panic!()
    };
    assert!(a.condition == condition::NOT_FOUND && b.condition == condition::NOT_FOUND);
    assert!(matches!(script.heard()[0].performative, Performative::End(End { error: None })));
}

#[test]
fn who_only_ends_its_own_side_has_all_taken_that_it_sent_and_hears_the_answers() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    let mut octets = Vec::new();
    (0..5).for_each(|id| octets.extend(Script::transfer_octets(&transfer(0, id), b"x")));
    script.raw(&octets);
    for delivery in script.end.deliveries() {
        script.end.connection.settle(link, delivery.id, DeliveryState::Accepted).unwrap();
    }
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    let heard = script.heard();
    let [told, closed] = &heard[..] else { panic!("{heard:?}") };
    assert!(matches!(&told.performative, Performative::Disposition(d) if d.last == Some(4)));
    assert!(matches!(&closed.performative, Performative::Close(close) if close.error.is_some()));
    assert!(script.end.connection.is_finished());
}

#[test]
fn a_close_before_half_a_close_is_answered_as_ever() {
    for ours_first in [false, true] {
        let mut script = plain();
        if ours_first {
            script.end.connection.close(None, script.now);
        }
        script.send(&close());
        script.end.connection.handle_eof();
        script.end.poll(script.now);
        assert_eq!(codes(&mut script), [0x18]);
        let last = script.end.events.last();
        assert!(matches!(last, Some(Event::Closed { error: None, .. })));
    }
}

#[test]
fn a_close_that_comes_while_frames_wait_is_answered_behind_them_and_told_whole() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    script.end.send(link, b"small").unwrap();
    script.end.send(link, &[1; 1_000_000]).unwrap();
    script.end.connection.poll_transmit();
    let host = (Symbol::from_static("network-host"), Value::from("elsewhere"));
    let redirect = AmqpError {
        condition: Symbol::from_static("amqp:connection:redirect"),
        description: None,
        info: Some(Fields(vec![host])),
    };
    script.send(&Close { error: Some(Box::new(redirect.clone())) });
    let codes = codes(&mut script);
    let (last, before) = codes.split_last().unwrap();
    assert!(*last == 0x18 && before.iter().all(|code| *code == 0x14) && before.len() < 5);
    let Some(Event::Closed { error: Some(why), .. }) = script.end.events.last() else { panic!() };
    assert_eq!(**why, redirect);
    assert!(script.end.connection.is_finished());
}
