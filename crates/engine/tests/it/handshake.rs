//! From the first octet to `open`, and who keeps the connection alive (part 2, 2.2 to 2.4; part 5).

use crate::support::{
    Complaint, Guarded, Pair, Script, attach, begin, close, closed, config, detach, end, init, open,
};
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{Open, SaslOutcome};
use hopline_engine::wire::{Performative, Role, condition};
use hopline_engine::{Anonymous, Config, Event};
use std::time::Duration;

const AMQP: [u8; 8] = ProtocolHeader::Amqp.octets();
const SASL: [u8; 8] = ProtocolHeader::Sasl.octets();

#[test]
fn both_ends_open_however_the_octets_are_cut() {
    for cut in [1, 2, 3, 7, 8, 9, usize::MAX] {
        let mut pair = Pair::new(config(), config());
        pair.cut = cut;
        pair.run();
        assert!(pair.client.connection.is_open() && pair.server.connection.is_open(), "cut {cut}");
        assert_eq!(pair.server.connection.user(), Some("anonymous"));
        assert_eq!(pair.client.events.len(), 1);
    }
}

#[test]
fn a_header_without_sasl_is_answered_in_kind() {
    let mut script = Script::server(config(), Anonymous);
    AMQP.iter().for_each(|octet| script.raw(&[*octet]));
    assert_eq!(script.octets(), AMQP);
    script.send(&open());
    let [heard] = &script.heard()[..] else { panic!() };
    assert!(heard.channel == 0 && matches!(heard.performative, Performative::Open(_)));
}

#[test]
fn who_must_authenticate_and_does_not_gets_the_sasl_header_and_no_more() {
    let mut script = Script::server(config(), Guarded { scram: false });
    script.raw(&AMQP);
    script.send(&open());
    assert_eq!(script.octets(), SASL);
    assert!(script.end.connection.is_finished());
    assert_eq!(closed(&script), Some(condition::UNAUTHORIZED_ACCESS));
}

#[test]
fn each_octet_of_the_header_counts() {
    for at in 0..8 {
        for octet in [0xff, b'G', 2] {
            let mut header = AMQP;
            header[at] = octet;
            let mut script = Script::server(config(), Anonymous);
            script.raw(&header);
            assert_eq!(script.octets(), SASL, "octet {at} is {octet}");
            assert!(script.end.connection.is_finished());
            assert!(closed(&script).is_some());
        }
    }
    for other in [&b"GET / HTTP/1.1\r\n"[..], b"AMQP\x00\x00\x09\x01", b"\x16\x03\x01\x02\x00"] {
        let mut script = Script::server(config(), Anonymous);
        script.raw(other);
        assert!(script.end.connection.is_over());
    }
}

#[test]
fn a_header_cut_short_ends_quietly() {
    for len in 0..8 {
        let mut script = Script::server(config(), Anonymous);
        script.raw(&SASL[..len]);
        script.end.connection.handle_eof();
        script.end.poll(script.now);
        assert!(script.end.connection.is_finished());
        assert!(matches!(script.end.events[..], [Event::Closed { by_peer: true, .. }]));
    }
}

#[test]
fn a_whole_conversation_in_one_segment_is_answered_in_order() {
    let mut all = SASL.to_vec();
    let put = |all: &mut Vec<u8>, frame: &dyn Fn(&mut Vec<u8>)| frame(all);
    use hopline_engine::wire::performative::Frame;
    put(&mut all, &|o| init("ANONYMOUS", None).put(o, 0));
    all.extend_from_slice(&AMQP);
    put(&mut all, &|o| open().put(o, 0));
    put(&mut all, &|o| begin().put(o, 3));
    put(&mut all, &|o| attach("a", 0, Role::Sender).put(o, 3));
    put(&mut all, &|o| detach(0, true).put(o, 3));
    put(&mut all, &|o| end().put(o, 3));
    put(&mut all, &|o| close().put(o, 0));
    for cut in [1, 5, usize::MAX] {
        let mut script = Script::server(config(), Anonymous);
        all.chunks(cut).for_each(|part| script.raw(part));
        let octets = script.octets();
        let (frames, rest) = Script::sasl(&octets[8..]);
        assert_eq!((frames.len(), &rest[..8]), (2, &AMQP[..]));
        let codes: Vec<u8> = crate::support::frames_of(&rest[8..]).iter().map(|f| f.2).collect();
        assert_eq!(codes, [0x10, 0x11, 0x12, 0x16, 0x17, 0x18]);
        assert!(script.end.connection.is_finished());
    }
}

#[test]
fn opens_that_break_the_rules_are_refused_with_a_close() {
    use Complaint::Connection;
    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.octets();
    script.send(&Open { max_frame_size: 511, ..open() });
    assert_eq!(script.complaint(), Some(Connection(condition::INVALID_FIELD)));

    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.octets();
    script.send_on(1, &open());
    assert_eq!(script.complaint(), Some(Connection(condition::FRAMING_ERROR)));

    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.octets();
    script.send(&begin());
    assert_eq!(script.complaint(), Some(Connection(condition::ILLEGAL_STATE)));

    let mut script = Script::opened(config());
    script.send(&open());
    assert_eq!(script.complaint(), Some(Connection(condition::ILLEGAL_STATE)));

    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.octets();
    script.send(&Open { idle_time_out: Some(1), ..open() });
    assert_eq!(script.complaint(), Some(Connection(condition::INVALID_FIELD)));
}

#[test]
fn bad_frames_end_the_connection_and_extended_headers_do_not() {
    for frame in [
        &[0, 0, 0, 7, 2, 0, 0, 0][..],
        &[0, 0, 0, 8, 1, 0, 0, 0],
        &[0, 0, 0, 8, 3, 0, 0, 0],
        &[0, 0, 0, 8, 2, 9, 0, 0],
        &[0, 0, 0, 8, 2, 1, 0, 0],
        &[0, 2, 0, 0, 2, 0, 0, 0],
    ] {
        let mut script = crate::support::plain();
        script.raw(frame);
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Connection(condition::FRAMING_ERROR)), "{frame:?}");
    }
    let mut script = crate::support::plain();
    script.raw(&[0, 0, 0, 12, 3, 0, 0, 0, 1, 2, 3, 4]);
    script.raw(&[0, 0, 0, 8, 2, 0, 0, 7]);
    assert!(script.is_well());
    script.send(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::FRAMING_ERROR)));
}

#[test]
fn who_does_not_open_in_time_is_given_up() {
    let said: [&dyn Fn(&mut Script); 4] = [
        &|_| {},
        &|s| s.raw(&SASL),
        &|s| {
            s.raw(&SASL);
            s.send(&init("ANONYMOUS", None));
        },
        &|s| s.raw(&AMQP),
    ];
    for say in said {
        let mut script = Script::server(Config::default(), Anonymous);
        say(&mut script);
        script.pass(Duration::from_millis(9_999));
        assert!(script.end.events.is_empty());
        script.pass(Duration::from_millis(1));
        assert_eq!(closed(&script), Some(condition::RESOURCE_LIMIT_EXCEEDED));
        script.pass(Duration::from_secs(2));
        assert!(script.end.connection.is_over());
        assert_eq!(script.end.connection.poll_timeout(), None);
    }
}

#[test]
fn the_idle_timeout_is_advertised_by_half_and_enforced_whole() {
    let mut script = Script::server(Config::default(), Anonymous);
    script.raw(&AMQP);
    script.send(&open());
    let octets = script.octets();
    let (_, frame, _) = &crate::support::frames_of(&octets[8..])[0];
    let Ok((Performative::Open(told), _)) = Performative::decode(frame) else { panic!() };
    assert_eq!(told.idle_time_out, Some(30_000));
    for _ in 0..10 {
        script.pass(Duration::from_secs(59));
        script.raw(&[0, 0, 0, 8, 2, 0, 0, 0]);
    }
    assert!(script.end.connection.is_open(), "heartbeats are a sign of life");
    assert!(script.octets().is_empty(), "none are owed");
    script.pass(Duration::from_secs(60));
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Connection(condition::RESOURCE_LIMIT_EXCEEDED)));
    assert!(!script.end.connection.is_over());
    script.pass(Duration::from_secs(2));
    assert!(script.end.connection.is_over(), "the peer's close is not waited for for ever");
}

#[test]
fn heartbeats_go_out_twice_as_often_as_asked_for() {
    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.send(&Open { idle_time_out: Some(1000), ..open() });
    script.octets();
    for _ in 0..5 {
        script.pass(Duration::from_millis(499));
        assert!(script.octets().is_empty());
        script.pass(Duration::from_millis(1));
        assert_eq!(script.octets(), [0, 0, 0, 8, 2, 0, 0, 0]);
    }
}

#[test]
fn two_ends_that_have_nothing_to_say_stay_connected() {
    let secs = |n| Config { idle_timeout: Some(Duration::from_secs(n)), ..Config::default() };
    let mut pair = Pair::open_with(secs(3), secs(60));
    pair.pass(Duration::from_secs(3600));
    assert!(pair.client.connection.is_open() && pair.server.connection.is_open());
}
