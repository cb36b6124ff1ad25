//! Octets from a peer with which nothing is agreed yet: protocol headers and SASL, at both ends.
//! Nobody comes in whom the authenticator did not let in, and who says nothing useful is given up.

use crate::engine_support::{End, config};
use crate::input::Input;
use crate::memory;
use hopline_engine::timeline::Instant;
use hopline_engine::wire::Symbol;
use hopline_engine::{Authenticator, ClientSasl, Config, Connection, Event, plain_parts};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const START: Instant = Instant::from_nanos(1);

/// Lets in one user, and remembers that it did.
#[derive(Debug, Default)]
struct Doorman {
    allows_no_sasl: bool,
    has_let_in: AtomicBool,
}

impl Authenticator for Doorman {
    fn mechanisms(&self) -> Vec<Symbol> {
        vec![Symbol::from_static("PLAIN")]
    }

    fn check(&self, mechanism: &str, response: Option<&[u8]>) -> Option<String> {
        let (_, user, password) = response.and_then(plain_parts)?;
        let lets_in = mechanism == "PLAIN" && (user, password) == ("u", "p");
        self.has_let_in.fetch_or(lets_in, Ordering::Relaxed);
        lets_in.then(|| user.to_owned())
    }

    fn allows_no_sasl(&self) -> bool {
        self.allows_no_sasl
    }
}

/// One octet says which end we are and how it authenticates, one the size of the pieces; the rest
/// is what the peer sends.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let (setup, piece) = (input.octet(), usize::from(input.octet()) + 1);
    let octets = input.take(usize::MAX);
    memory::in_proportion(octets.len(), 256, 64 << 10, || match setup % 5 {
        0 => serve(false, octets, piece),
        1 => serve(true, octets, piece),
        2 => connect(ClientSasl::None, octets, piece),
        3 => connect(ClientSasl::Anonymous, octets, piece),
        _ => {
            let (user, password) = ("u".into(), "p".into());
            connect(ClientSasl::Plain { user, password }, octets, piece);
        }
    });
}

fn serve(allows_no_sasl: bool, octets: &[u8], piece: usize) {
    let doorman = Arc::new(Doorman { allows_no_sasl, ..Doorman::default() });
    let server = Connection::server(config(), Arc::clone(&doorman) as _, START);
    let has_opened = feed(server, octets, piece);
    let is_known = doorman.has_let_in.load(Ordering::Relaxed);
    assert!(!has_opened || is_known || allows_no_sasl, "somebody came in without a password");
}

fn connect(sasl: ClientSasl, octets: &[u8], piece: usize) {
    feed(Connection::client(config(), sasl, START), octets, piece);
}

/// Whether the connection opened.
fn feed(connection: Connection, octets: &[u8], piece: usize) -> bool {
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
    has_opened
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
