//! SASL (part 5, 5.3): who may come in, and how a client shows who it is.

mod scram;

use bytes::Bytes;
use hopline_wire::Symbol;
use hopline_wire::definitions::SaslCode;
use std::fmt;
use std::sync::Arc;

pub(crate) use scram::ScramClient;
pub use scram::{ScramKeys, ScramServer};

/// The mechanism that lets everybody in (RFC 4505).
pub const ANONYMOUS: Symbol = Symbol::from_static("ANONYMOUS");
/// Name and password as they are (RFC 4616).
pub const PLAIN: Symbol = Symbol::from_static("PLAIN");
/// A proof of the password in place of the password (RFC 7677).
pub const SCRAM_SHA_256: Symbol = Symbol::from_static("SCRAM-SHA-256");

/// How a client authenticates.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientSasl {
    /// No SASL layer: the AMQP header first.
    None,
    /// ANONYMOUS.
    Anonymous,
    /// SCRAM-SHA-256 if the server offers it, else PLAIN.
    Password {
        /// Who.
        user: String,
        /// The secret.
        password: String,
        /// Printable ASCII without commas, never the same twice, 18 random octets or more in
        /// content: the server's proof hangs on it.
        nonce: String,
    },
}

impl fmt::Debug for ClientSasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password {{ user: {user:?} }}"),
        }
    }
}

/// Who may connect to a server.
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// The mechanisms offered, best first; at least one.
    fn mechanisms(&self) -> Vec<Symbol>;

    /// Begins an exchange by one mechanism, or `None` if it is not offered.
    fn start(&self, mechanism: &str) -> Option<Box<dyn Exchange>>;

    /// Whether a client that sends the AMQP header without SASL is let in.
    fn allows_no_sasl(&self) -> bool;
}

/// The server's side of one exchange.
pub trait Exchange: Send + fmt::Debug {
    /// Takes the initial response (`None`: the client sent none) or the response to a challenge.
    /// Not called again once it has let in or refused.
    fn step(&mut self, response: Option<&[u8]>) -> Step;
}

/// What a server answers (5.3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The client is to respond to these octets.
    Challenge(Bytes),
    /// The user of this name is let in.
    LetIn(String),
    /// Nobody is: [`SaslCode::Auth`] for wrong credentials, another one if they can't be judged.
    Refused(SaslCode),
}

/// Lets everybody in as `anonymous`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticator for Anonymous {
    fn mechanisms(&self) -> Vec<Symbol> {
        vec![ANONYMOUS]
    }

    fn start(&self, mechanism: &str) -> Option<Box<dyn Exchange>> {
        (ANONYMOUS == *mechanism).then(|| Box::new(Self) as Box<dyn Exchange>)
    }

    fn allows_no_sasl(&self) -> bool {
        true
    }
}

impl Exchange for Anonymous {
    fn step(&mut self, _trace: Option<&[u8]>) -> Step {
        Step::LetIn("anonymous".to_owned())
    }
}

/// Whether a user has a password; must not tell by its time how much of one was right.
type Check = dyn Fn(&str, &str) -> bool + Send + Sync;

/// The server's side of PLAIN.
#[derive(Clone)]
pub struct PlainServer(Arc<Check>);

impl PlainServer {
    /// Lets in those whose user and password `check` approves.
    pub fn new(check: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

impl fmt::Debug for PlainServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainServer")
    }
}

impl Exchange for PlainServer {
    /// A client without an initial response is asked for it by an empty challenge (RFC 4422, 3).
    fn step(&mut self, response: Option<&[u8]>) -> Step {
        let Some(response) = response else { return Step::Challenge(Bytes::new()) };
        match plain_parts(response) {
            Some((authzid, user, password))
                if (authzid.is_empty() || authzid == user) && (self.0)(user, password) =>
            {
                Step::LetIn(user.to_owned())
            }
            _ => Step::Refused(SaslCode::Auth),
        }
    }
}

/// The three parts of a PLAIN response (RFC 4616): authorization id, user, password.
fn plain_parts(response: &[u8]) -> Option<(&str, &str, &str)> {
    let mut parts = std::str::from_utf8(response).ok()?.split('\0');
    let (authzid, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && !user.is_empty()).then_some((authzid, user, password))
}

/// Compares secrets without telling by its time how much was right.
pub fn same_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}
