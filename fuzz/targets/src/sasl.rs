//! Octets from a peer with which nothing is agreed yet: protocol headers and SASL, at both ends.
//! Nobody comes in whom the authenticator did not let in, and who says nothing useful is given up.

use crate::engine_support::{End, Guarded, config};
use crate::input::Input;
use crate::memory;
use hopline_engine::sasl::{Exchange, PLAIN, PlainServer, SCRAM_SHA_256, ScramKeys, ScramServer};
use hopline_engine::timeline::Instant;
use hopline_engine::wire::Symbol;
use hopline_engine::{Anonymous, Authenticator, ClientSasl, Config, Connection, Event};
use std::sync::Arc;

const START: Instant = Instant::from_nanos(1);

/// Offers everything and knows nobody.
#[derive(Debug)]
struct Nobody;

impl Authenticator for Nobody {
    fn mechanisms(&self) -> Vec<Symbol> {
        vec![SCRAM_SHA_256, PLAIN]
    }

    fn start(&self, mechanism: &str) -> Option<Box<dyn Exchange>> {
        let keys = |name: &str| ScramKeys::decoy(b"secret", name, 4096);
        match mechanism {
            "PLAIN" => Some(Box::new(PlainServer::new(|_, _| false))),
            "SCRAM-SHA-256" => Some(Box::new(ScramServer::new("nonce".into(), keys))),
            _ => None,
        }
    }

    fn allows_no_sasl(&self) -> bool {
        false
    }
}

/// One octet says which end we are and how it authenticates, one the size of the pieces; the rest
/// is what the peer sends.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let (setup, piece) = (input.octet(), usize::from(input.octet()) + 1);
    let octets = input.take(usize::MAX);
    let server = |authenticator| Connection::server(config(), authenticator, START);
    let client = |sasl| Connection::client(config(), sasl, START);
    memory::in_proportion(octets.len(), 256, 64 << 10, || match setup % 6 {
        0 => {
            let end = feed(server(Arc::new(Nobody)), octets, piece);
            assert!(!end.has_opened, "somebody came in whom nobody knows");
        }
        1 => {
            let end = feed(server(Arc::new(Guarded { scram: true })), octets, piece);
            assert!(!end.has_opened || end.user.is_some(), "somebody came in without a name");
        }
        2 => drop(feed(server(Arc::new(Anonymous)), octets, piece)),
        3 => drop(feed(client(ClientSasl::None), octets, piece)),
        4 => drop(feed(client(ClientSasl::Anonymous), octets, piece)),
        _ => drop(feed(client(password()), octets, piece)),
    });
}

/// Of the example in RFC 7677, section 3.
fn password() -> ClientSasl {
    let [user, password, nonce] = ["user", "pencil", "rOprNGfwEbeRWgbNEkqO"].map(Into::into);
    ClientSasl::Password { user, password, nonce }
}

/// What came of it.
struct Fed {
    has_opened: bool,
    user: Option<String>,
}

fn feed(connection: Connection, octets: &[u8], piece: usize) -> Fed {
    let mut end = End::new(connection);
    let mut has_opened = false;
    for piece in octets.chunks(piece) {
        if end.connection.is_over() {
            break;
        }
        end.read(piece, START);
        has_opened |= end.take_events().iter().any(|event| matches!(event, Event::Opened(_)));
        assert!(end.write_all(START).len() <= 2_000 + 4 * octets.len());
    }
    if !has_opened {
        give_up(&mut end);
    }
    Fed { has_opened, user: end.connection.user().map(ToOwned::to_owned) }
}

/// Who has not opened when the time is over loses the connection.
fn give_up(end: &mut End) {
    let Config { handshake_timeout, close_timeout, .. } = config();
    let late = START.saturating_add(handshake_timeout);
    end.connection.handle_timeout(late);
    end.connection.handle_timeout(late.saturating_add(close_timeout));
    assert!(end.connection.is_over(), "a peer that does not open keeps its connection");
    end.write_all(late);
    assert!(end.connection.is_finished());
}
