//! From the first octet to `open`, and who keeps the connection alive (part 2, 2.2 to 2.4; part 5).
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use bytes::Bytes;
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{
    Open, SaslInit, SaslMechanisms, SaslOutcome, SaslPerformative, SaslResponse,
};
use hopline_engine::wire::{Performative, Role, Symbol, condition};
use hopline_engine::{Anonymous, Authenticator, ClientSasl, Config, Event, plain_parts};
use std::time::Duration;
use support::{Complaint, Pair, Script, attach, begin, close, config, detach, end, open};

const AMQP: [u8; 8] = ProtocolHeader::Amqp.octets();
const SASL: [u8; 8] = ProtocolHeader::Sasl.octets();

/// One user, no guests.
#[derive(Debug)]
struct Guarded;

impl Authenticator for Guarded {
    fn mechanisms(&self) -> Vec<Symbol> {
        vec![Symbol::from_static("PLAIN")]
    }

    fn check(&self, mechanism: &str, response: Option<&[u8]>) -> Option<String> {
        let (_, user, password) = plain_parts(response?)?;
        (mechanism == "PLAIN" && (user, password) == ("ada", "lace")).then(|| user.to_owned())
    }

    fn allows_no_sasl(&self) -> bool {
        false
    }
}

fn init(mechanism: &'static str, response: Option<&'static [u8]>) -> SaslInit {
    SaslInit {
        mechanism: Symbol::from_static(mechanism),
        initial_response: response.map(Bytes::from_static),
        hostname: None,
    }
}

fn closed(script: &Script) -> Option<Symbol> {
    script.end.events.iter().rev().find_map(|event| match event {
        Event::Closed { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}

/// A server behind its SASL header and offer.
fn offered(authenticator: impl Authenticator + 'static) -> Script {
    let mut script = Script::server(config(), authenticator);
    script.raw(&SASL);
    let octets = script.octets();
    assert_eq!(octets[..8], SASL);
    let (frames, rest) = Script::sasl(&octets[8..]);
    let [SaslPerformative::SaslMechanisms(offer)] = frames.as_slice() else { panic!("{frames:?}") };
    assert!(!offer.sasl_server_mechanisms.is_empty() && rest.is_empty());
    script
}

fn outcome(script: &mut Script) -> SaslCode {
    let octets = script.octets();
    match Script::sasl(&octets).0.as_slice() {
        [SaslPerformative::SaslOutcome(outcome)] => outcome.code,
        other => panic!("{other:?}"),
    }
}

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
    let mut script = Script::server(config(), Guarded);
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
fn plain_lets_in_who_knows_the_password() {
    let mut script = offered(Guarded);
    script.send(&init("PLAIN", Some(b"\0ada\0lace")));
    assert_eq!(outcome(&mut script), SaslCode::Ok);
    script.raw(&AMQP);
    script.send(&open());
    assert_eq!(script.octets()[..8], AMQP);
    assert_eq!(script.end.connection.user(), Some("ada"));
    assert!(script.end.connection.is_open());
}

#[test]
fn bad_credentials_and_foreign_mechanisms_are_refused_whatever_follows() {
    let bad = [
        init("PLAIN", Some(b"\0ada\0wrong")),
        init("PLAIN", Some(b"ada lace")),
        init("PLAIN", Some(b"")),
        init("PLAIN", None),
        init("ANONYMOUS", None),
        init("SCRAM-SHA-256", Some(b"n,,n=ada")),
    ];
    for init in bad {
        let mut script = offered(Guarded);
        script.send(&init);
        assert_eq!(outcome(&mut script), SaslCode::Auth, "{init:?}");
        script.raw(&AMQP);
        script.send(&open());
        assert!(script.octets().is_empty() && script.end.connection.is_finished());
        assert_eq!(script.end.connection.user(), None);
        assert_eq!(script.end.events.len(), 1);
        assert_eq!(closed(&script), Some(condition::UNAUTHORIZED_ACCESS));
    }
}

#[test]
fn sasl_frames_that_are_not_due_end_the_connection() {
    let frames: [&dyn Fn(&mut Script); 6] = [
        &|s| s.send(&SaslMechanisms { sasl_server_mechanisms: vec!["PLAIN".into()] }),
        &|s| s.send(&SaslOutcome { code: SaslCode::Ok, additional_data: None }),
        &|s| s.send(&SaslResponse { response: Bytes::new() }),
        &|s| s.raw(&[0, 0, 0, 8, 2, 1, 0, 0]),
        &|s| s.send(&open()),
        &|s| s.raw(&[0, 1, 0, 0, 2, 1, 0, 0]),
    ];
    for frame in frames {
        let mut script = offered(Anonymous);
        frame(&mut script);
        assert!(script.octets().is_empty() && script.end.connection.is_finished());
        assert!(!script.end.connection.is_open() && closed(&script).is_some());
    }
    let mut script = offered(Anonymous);
    script.send(&init("ANONYMOUS", None));
    script.send(&init("ANONYMOUS", None));
    assert!(script.end.connection.is_over(), "twice");
}

#[test]
fn a_client_takes_no_outcome_before_the_offer_and_no_second_offer() {
    let offer = SaslMechanisms { sasl_server_mechanisms: vec!["ANONYMOUS".into()] };
    let mut script = Script::client(config(), ClientSasl::Anonymous);
    script.raw(&SASL);
    script.send(&SaslOutcome { code: SaslCode::Ok, additional_data: None });
    assert!(script.end.connection.is_over());

    let mut script = Script::client(config(), ClientSasl::Anonymous);
    script.raw(&SASL);
    script.send(&offer);
    script.send(&offer);
    assert!(script.end.connection.is_over());
    assert_eq!(Script::sasl(&script.octets()[8..]).0.len(), 1, "one init");
}

#[test]
fn a_client_says_why_it_was_not_let_in() {
    let plain = ClientSasl::Plain { user: "ada".into(), password: "secret".into() };
    assert!(!format!("{plain:?}").contains("secret"));
    for code in [SaslCode::Auth, SaslCode::Sys, SaslCode::SysPerm, SaslCode::SysTemp] {
        let mut script = Script::client(config(), plain.clone());
        script.raw(&SASL);
        script.send(&SaslMechanisms { sasl_server_mechanisms: vec!["PLAIN".into()] });
        script.send(&SaslOutcome { code, additional_data: None });
        assert_eq!(closed(&script), Some(condition::UNAUTHORIZED_ACCESS));
        assert!(!format!("{:?}", script.end.events).contains("secret"));
    }
    let mut script = Script::client(config(), plain);
    script.raw(&SASL);
    script.send(&SaslMechanisms { sasl_server_mechanisms: vec!["EXTERNAL".into()] });
    assert_eq!(closed(&script), Some(condition::UNAUTHORIZED_ACCESS));
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
        let codes: Vec<u8> = support::frames_of(&rest[8..]).iter().map(|f| f.2).collect();
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
        let mut script = support::plain();
        script.raw(frame);
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Connection(condition::FRAMING_ERROR)), "{frame:?}");
    }
    let mut script = support::plain();
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
    let (_, frame, _) = &support::frames_of(&octets[8..])[0];
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
