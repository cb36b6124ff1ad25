//! Who comes in, by SASL (part 5, 5.3).

use crate::support::login::SERVER_NONCE;
use crate::support::{Guarded, Script, closed, config, init, offered, open, outcome, said};
use bytes::Bytes;
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{
    SaslChallenge, SaslMechanisms, SaslOutcome, SaslPerformative, SaslResponse,
};
use hopline_engine::wire::{Symbol, condition};
use hopline_engine::{Anonymous, ClientSasl};

const AMQP: [u8; 8] = ProtocolHeader::Amqp.octets();
const SASL: [u8; 8] = ProtocolHeader::Sasl.octets();
/// The client's nonce of the example in RFC 7677, section 3.
const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";

fn password(user: &str, password: &str, nonce: &str) -> ClientSasl {
    ClientSasl::Password { user: user.into(), password: password.into(), nonce: nonce.into() }
}

/// A client that was made this offer; its init is still to be read.
fn offer(sasl: ClientSasl, mechanisms: &[&'static str]) -> Script {
    let mut script = Script::client(config(), sasl);
    script.raw(&SASL);
    assert_eq!(script.octets(), SASL);
    let offer = mechanisms.iter().map(|name| Symbol::from_static(name)).collect();
    script.send(&SaslMechanisms { sasl_server_mechanisms: offer });
    script
}

fn challenge(script: &mut Script) -> String {
    match said(script) {
        SaslPerformative::SaslChallenge(challenge) => {
            String::from_utf8(challenge.challenge.to_vec()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn response(text: impl Into<String>) -> SaslResponse {
    SaslResponse { response: Bytes::from(text.into()) }
}

fn goes_on(script: &mut Script) -> bool {
    script.raw(&AMQP);
    script.send(&open());
    script.end.connection.is_open()
}

#[test]
fn plain_lets_in_who_knows_the_password() {
    let mut script = offered(Guarded { scram: false });
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
        init("ANONYMOUS", None),
        init("SCRAM-SHA-256", Some(b"n,,n=ada")),
    ];
    for init in bad {
        let mut script = offered(Guarded { scram: false });
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
    let plain = password("ada", "secret", "abc");
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
fn an_initial_response_may_be_asked_for_but_an_empty_one_is_a_response() {
    let mut script = offered(Guarded { scram: false });
    script.send(&init("PLAIN", None));
    assert_eq!(challenge(&mut script), "");
    script.send(&response("\0ada\0lace"));
    assert_eq!(outcome(&mut script), SaslCode::Ok);
    assert!(goes_on(&mut script));

    let mut script = offered(Anonymous);
    script.send(&init("ANONYMOUS", Some(b"")));
    assert_eq!(outcome(&mut script), SaslCode::Ok);
}

#[test]
fn who_acts_for_somebody_else_is_refused() {
    for (authzid, code) in [("ada", SaslCode::Ok), ("eve", SaslCode::Auth)] {
        let mut script = offered(Guarded { scram: false });
        script.send(&init("PLAIN", None));
        challenge(&mut script);
        script.send(&response(format!("{authzid}\0ada\0lace")));
        assert_eq!(outcome(&mut script), code, "{authzid}");
    }
}

/// The exchange of RFC 7677, section 3, octet by octet.
#[test]
fn scram_speaks_as_in_the_rfc() {
    let mut server = offered(Guarded { scram: true });
    server.send(&init("SCRAM-SHA-256", Some(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")));
    let first = format!("r={NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
    assert_eq!(challenge(&mut server), first);
    let proof =
        format!("c=biws,r={NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    server.send(&response(&proof));
    let signature = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_eq!(challenge(&mut server), signature);
    server.send(&response(""));
    assert_eq!(outcome(&mut server), SaslCode::Ok);
    assert!(goes_on(&mut server));
    assert_eq!(server.end.connection.user(), Some("user"));

    for in_outcome in [false, true] {
        let mut client = offer(password("user", "pencil", NONCE), &["PLAIN", "SCRAM-SHA-256"]);
        let SaslPerformative::SaslInit(init) = said(&mut client) else { panic!() };
        assert_eq!(init.initial_response.unwrap(), format!("n,,n=user,r={NONCE}"));
        client.send(&SaslChallenge { challenge: Bytes::from(first.clone()) });
        let SaslPerformative::SaslResponse(answer) = said(&mut client) else { panic!() };
        assert_eq!(answer.response, proof);
        let data = if in_outcome {
            Some(Bytes::from_static(signature.as_bytes()))
        } else {
            client.send(&SaslChallenge { challenge: Bytes::from_static(signature.as_bytes()) });
            let SaslPerformative::SaslResponse(answer) = said(&mut client) else { panic!() };
            assert!(answer.response.is_empty());
            None
        };
        client.send(&SaslOutcome { code: SaslCode::Ok, additional_data: data });
        assert_eq!(client.octets()[..8], AMQP);
    }
}

/// Sends a first message, and then what `last` makes of the server's nonce.
fn scram_try(first: &'static [u8], last: impl FnOnce(&str) -> String) -> Option<SaslCode> {
    let mut script = offered(Guarded { scram: true });
    script.send(&init("SCRAM-SHA-256", Some(first)));
    let answer = match said(&mut script) {
        SaslPerformative::SaslChallenge(challenge) => challenge.challenge,
        SaslPerformative::SaslOutcome(outcome) => return Some(outcome.code),
        other => panic!("{other:?}"),
    };
    let nonce = std::str::from_utf8(&answer).unwrap().split(',').next().unwrap();
    script.send(&response(last(nonce)));
    match said(&mut script) {
        SaslPerformative::SaslOutcome(outcome) => {
            assert!(!goes_on(&mut script));
            Some(outcome.code)
        }
        _ => None,
    }
}

#[test]
fn scram_without_the_password_leads_nowhere() {
    let firsts: [&[u8]; 15] = [
        b"",
        b"n",
        b"n,",
        b"n,,",
        b"n,,,",
        b"n,,n=,r=x",
        b"n,,n=user",
        b"n,,n=user,r=",
        b"n,,n=user,r=\x01",
        b"n,,m=x,n=user,r=x",
        b"n,a,n=user,r=x",
        b"n,a=eve,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,,n=us=er,r=x",
        b"\xff\xfe",
    ];
    for first in firsts {
        let code = scram_try(first, |_| panic!("{first:?} was answered by a challenge"));
        assert_eq!(code, Some(SaslCode::Auth), "{first:?}");
    }
    let zeros = "A".repeat(43) + "=";
    let lasts: [&dyn Fn(&str) -> String; 8] = [
        &|_| String::new(),
        &|nonce| format!("c=biws,{nonce},p={zeros}"),
        &|nonce| format!("c=biws,{nonce}"),
        &|nonce| format!("c=biws,{nonce},p="),
        &|nonce| format!("c=biws,{nonce},p=!"),
        &|nonce| format!("c=eSws,{nonce},p={zeros}"),
        &|nonce| format!("c=biws,{nonce}x,p={zeros}"),
        &|_| format!("c=biws,r=x,p={zeros}"),
    ];
    for (i, last) in lasts.iter().enumerate() {
        for first in [&b"n,,n=user,r=x"[..], b"n,,n=nobody,r=x"] {
            assert_eq!(scram_try(first, last), Some(SaslCode::Auth), "{i}");
        }
    }
}

#[test]
fn scram_users_may_have_any_name_and_those_who_dont_exist_look_alike() {
    let ask = |first: &'static [u8]| {
        let mut script = offered(Guarded { scram: true });
        script.send(&init("SCRAM-SHA-256", Some(first)));
        challenge(&mut script)
    };
    assert_eq!(ask(b"n,,n=nobody,r=x"), ask(b"n,,n=nobody,r=x"));
    assert_ne!(ask(b"n,,n=nobody,r=x"), ask(b"n,,n=noone,r=x"));

    let mut server = offered(Guarded { scram: true });
    let mut client = offer(password("=,=", "odd", "abc"), &["SCRAM-SHA-256"]);
    for _ in 0..8 {
        let octets = client.octets();
        server.raw(&octets);
        let octets = server.octets();
        client.raw(&octets);
    }
    assert!(client.end.connection.is_open() && server.end.connection.is_open());
    assert_eq!(server.end.connection.user(), Some("=,="));
}

#[test]
fn a_client_does_not_believe_a_server_that_does_not_know_the_password() {
    let start = || {
        let mut client = offer(password("user", "pencil", NONCE), &["SCRAM-SHA-256"]);
        client.octets();
        client
    };
    let ok = SaslOutcome { code: SaslCode::Ok, additional_data: None };
    let told = |text: &str| SaslChallenge { challenge: Bytes::from(text.to_owned()) };
    let salt = "s=W22ZaJ0SNY7soEsUEjb6gQ==";
    let bad_challenges = [
        String::new(),
        format!("r=other,{salt},i=4096"),
        format!("r={NONCE},{salt},i=4096"),
        format!("r={NONCE}x,{salt},i=4095"),
        format!("r={NONCE}x,{salt},i=4294967295"),
        format!("r={NONCE}x,s=!,i=4096"),
        format!("r={NONCE}x,{salt}"),
    ];
    for challenge in &bad_challenges {
        let mut client = start();
        client.send(&told(challenge));
        assert_eq!(closed(&client), Some(condition::UNAUTHORIZED_ACCESS), "{challenge}");
    }
    let proven = || {
        let mut client = start();
        client.send(&told(&format!("r={NONCE}x,{salt},i=4096")));
        client.octets();
        client
    };
    let mut client = start();
    client.send(&ok);
    assert!(client.end.connection.is_over(), "no proof at all");
    let mut client = proven();
    client.send(&ok);
    assert!(client.end.connection.is_over(), "no signature");
    for signature in ["v=", "v=AAAA", "e=invalid-proof", ""] {
        let mut client = proven();
        client.send(&told(signature));
        assert!(client.end.connection.is_over(), "{signature}");
        let mut client = proven();
        let data = Some(Bytes::from(signature.to_owned()));
        client.send(&SaslOutcome { code: SaslCode::Ok, additional_data: data });
        assert!(client.end.connection.is_over(), "{signature}");
    }
}

#[test]
fn a_client_takes_the_best_mechanism_and_one_symbol_for_an_array_of_one() {
    let chosen = |mechanisms: &[&'static str]| {
        let mut client = offer(password("user", "pencil", NONCE), mechanisms);
        let SaslPerformative::SaslInit(init) = said(&mut client) else { panic!() };
        init.mechanism.as_str().to_owned()
    };
    assert_eq!(chosen(&["PLAIN"]), "PLAIN");
    assert_eq!(chosen(&["PLAIN", "SCRAM-SHA-256", "ANONYMOUS"]), "SCRAM-SHA-256");

    let single: &[u8] = b"\x00\x53\x40\xc0\x0c\x01\xa3\x09ANONYMOUS";
    let array: &[u8] = b"\x00\x53\x40\xc0\x0f\x01\xe0\x0c\x01\xa3\x09ANONYMOUS";
    for body in [single, array] {
        let mut client = Script::client(config(), ClientSasl::Anonymous);
        client.raw(&SASL);
        client.octets();
        client.raw(&[&[0, 0, 0, 8 + body.len() as u8, 2, 1, 0, 0], body].concat());
        assert!(matches!(said(&mut client), SaslPerformative::SaslInit(_)));
    }
}

#[test]
fn sasl_frames_have_a_length_limit_and_their_channel_octets_mean_nothing() {
    let frame = |len: usize, doff: u8| {
        let mut body = b"\x00\x53\x41\xd0".to_vec();
        let header = usize::from(doff) * 4;
        let response = len - header - 4 - 8 - 11 - 5;
        body.extend(u32::try_from(4 + 11 + 5 + response).unwrap().to_be_bytes());
        body.extend(2u32.to_be_bytes());
        body.extend(b"\xa3\x09ANONYMOUS\xb0");
        body.extend(u32::try_from(response).unwrap().to_be_bytes());
        body.resize(len - header, b'x');
        let mut frame = u32::try_from(len).unwrap().to_be_bytes().to_vec();
        frame.extend([doff, 1, 0xab, 0xcd]);
        frame.resize(header, 0xee);
        frame.extend(body);
        frame
    };
    for len in [512, 513, 16_384] {
        for doff in [2, 3] {
            let mut script = offered(Anonymous);
            script.raw(&frame(len, doff));
            assert_eq!(outcome(&mut script), SaslCode::Ok, "{len}");
        }
    }
    let mut script = offered(Anonymous);
    script.raw(&frame(16_385, 2));
    assert!(script.octets().is_empty() && script.end.connection.is_over());
}

#[test]
fn frames_of_the_other_layer_end_the_connection() {
    let init: &[u8] = b"\x00\x53\x41\xc0\x0c\x01\xa3\x09ANONYMOUS";
    let of_type =
        |kind, body: &[u8]| [&[0, 0, 0, 8 + body.len() as u8, 2, kind, 0, 0], body].concat();
    let mut script = offered(Anonymous);
    script.raw(&of_type(0, init));
    assert!(script.end.connection.is_over(), "sasl-init in an AMQP frame");
    let opened: &[u8] = b"\x00\x53\x10\xc0\x04\x01\xa1\x01x";
    let mut script = Script::server(config(), Anonymous);
    script.raw(&AMQP);
    script.octets();
    script.raw(&of_type(1, opened));
    assert!(closed(&script).is_some() && !script.end.connection.is_open());
    let mut script = offered(Anonymous);
    script.raw(&of_type(1, opened));
    assert!(script.octets().is_empty() && script.end.connection.is_over());
}
