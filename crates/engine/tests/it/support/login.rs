//! Who is let in, for the tests of the handshake.

use super::{Script, config};
use bytes::Bytes;
use hopline_engine::sasl::{Exchange, PLAIN, PlainServer, SCRAM_SHA_256, ScramKeys, ScramServer};
use hopline_engine::wire::Symbol;
use hopline_engine::wire::definitions::SaslCode;
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{SaslInit, SaslPerformative};
use hopline_engine::{Authenticator, Event};

/// One user, no guests; PLAIN, and SCRAM if so wanted.
#[derive(Debug)]
pub struct Guarded {
    pub scram: bool,
}

/// The salt and the server's nonce of the example in RFC 7677, section 3.
pub const SALT: [u8; 16] = [
    0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81,
];
pub const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

pub fn is_known(user: &str, password: &str) -> bool {
    [("ada", "lace"), ("user", "pencil")].contains(&(user, password))
}

impl Authenticator for Guarded {
    fn mechanisms(&self) -> Vec<Symbol> {
        if self.scram { vec![SCRAM_SHA_256, PLAIN] } else { vec![PLAIN] }
    }

    fn start(&self, mechanism: &str) -> Option<Box<dyn Exchange>> {
        let keys = |name: &str| match name {
            "user" => ScramKeys::derive("pencil", &SALT, 4096),
            "=,=" => ScramKeys::derive("odd", &SALT, 4096),
            _ => ScramKeys::decoy(b"secret", name, 4096),
        };
        match mechanism {
            "PLAIN" => Some(Box::new(PlainServer::new(is_known))),
            "SCRAM-SHA-256" if self.scram => {
                Some(Box::new(ScramServer::new(SERVER_NONCE.into(), keys)))
            }
            _ => None,
        }
    }

    fn allows_no_sasl(&self) -> bool {
        false
    }
}

pub fn init(mechanism: &'static str, response: Option<&'static [u8]>) -> SaslInit {
    SaslInit {
        mechanism: Symbol::from_static(mechanism),
        initial_response: response.map(Bytes::from_static),
        hostname: None,
    }
}

/// A server behind its SASL header and offer.
pub fn offered(authenticator: impl Authenticator + 'static) -> Script {
    let mut script = Script::server(config(), authenticator);
    script.raw(&ProtocolHeader::Sasl.octets());
    let octets = script.octets();
    assert_eq!(octets[..8], ProtocolHeader::Sasl.octets());
    let (frames, rest) = Script::sasl(&octets[8..]);
    let [SaslPerformative::SaslMechanisms(offer)] = frames.as_slice() else { panic!("{frames:?}") };
    assert!(!offer.sasl_server_mechanisms.is_empty() && rest.is_empty());
    script
}

/// The one SASL frame that the engine has sent since.
pub fn said(script: &mut Script) -> SaslPerformative {
    let octets = script.octets();
    let mut frames = Script::sasl(&octets).0;
    assert_eq!(frames.len(), 1, "{frames:?}");
    frames.remove(0)
}

pub fn outcome(script: &mut Script) -> SaslCode {
    match said(script) {
        SaslPerformative::SaslOutcome(outcome) => outcome.code,
        other => panic!("{other:?}"),
    }
}

/// What an engine gave as the reason for the end.
pub fn closed(script: &Script) -> Option<Symbol> {
    script.end.events.iter().rev().find_map(|event| match event {
        Event::Closed { error: Some(error), .. } => Some(error.condition.clone()),
        _ => None,
    })
}
