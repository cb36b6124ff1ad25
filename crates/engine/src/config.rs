//! What a connection is set up with. Every limit that a peer can reach is here, with its default.

use hopline_wire::{Fields, Symbol};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Settings of one connection. The defaults are those of the broker.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our container-id.
    pub container_id: String,
    /// The host that we want (client).
    pub hostname: Option<String>,
    /// Octets of the largest frame that we read; at least 512. 65,536 by default.
    pub max_frame_size: u32,
    /// The highest channel, so one less than the sessions of a connection. 255 by default.
    pub channel_max: u16,
    /// The highest handle, so one less than the links of a session. 1,023 by default.
    pub handle_max: u32,
    /// Transfers that a peer may send on a session before it hears from us; renewed at half.
    /// 8,192 by default, at least 2.
    pub incoming_window: u32,
    /// Octets of the largest message that we take. 128 MiB by default.
    pub max_message_size: u64,
    /// Octets of all unfinished deliveries of a connection. 256 MiB by default.
    pub max_partial_octets: usize,
    /// Deliveries of one session that may be unsettled, per direction; reached, the sender waits
    /// and a peer that goes on loses its session. 65,536 by default.
    pub max_unsettled: usize,
    /// When a silent peer is given up; we advertise half of it. `None`: never. 60 s by default.
    pub idle_timeout: Option<Duration>,
    /// From the first octet to `open`. 10 s by default.
    pub handshake_timeout: Duration,
    /// How long we wait for the peer's `close` after ours. 2 s by default.
    pub close_timeout: Duration,
    /// Octets in the outbox from which on no further transfer is put there. 128 KiB by default.
    pub outbox_high_water: usize,
    /// Octets in the outbox from which on nothing more is read. 4 MiB by default.
    pub outbox_max: usize,
    /// Extensions that we offer in `open`.
    pub offered_capabilities: Vec<Symbol>,
    /// About us, in `open`.
    pub properties: Fields,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_id: "hopline".into(),
            hostname: None,
            max_frame_size: 65_536,
            channel_max: 255,
            handle_max: 1023,
            incoming_window: 8192,
            max_message_size: 128 << 20,
            max_partial_octets: 256 << 20,
            max_unsettled: 65_536,
            idle_timeout: Some(Duration::from_secs(60)),
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(2),
            outbox_high_water: 128 << 10,
            outbox_max: 4 << 20,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
        }
    }
}

/// How a client authenticates.
#[derive(Clone, PartialEq, Eq)]
pub enum ClientSasl {
    /// No SASL layer: the AMQP header first.
    None,
    /// ANONYMOUS.
    Anonymous,
    /// PLAIN with these credentials.
    Plain {
        /// Who.
        user: String,
        /// The secret.
        password: String,
    },
}

impl fmt::Debug for ClientSasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Plain { user, .. } => write!(f, "Plain {{ user: {user:?} }}"),
        }
    }
}

/// Who may connect to a server.
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// The mechanisms offered, best first; at least one.
    fn mechanisms(&self) -> Vec<Symbol>;

    /// The name of the user who is let in, or `None`.
    fn check(&self, mechanism: &str, response: Option<&[u8]>) -> Option<String>;

    /// Whether a client that sends the AMQP header without SASL is let in.
    fn allows_no_sasl(&self) -> bool;
}

/// Lets everybody in as `anonymous`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticator for Anonymous {
    fn mechanisms(&self) -> Vec<Symbol> {
        vec![Symbol::from_static("ANONYMOUS")]
    }

    fn check(&self, mechanism: &str, _response: Option<&[u8]>) -> Option<String> {
        (mechanism == "ANONYMOUS").then(|| "anonymous".to_owned())
    }

    fn allows_no_sasl(&self) -> bool {
        true
    }
}

/// The three parts of a PLAIN response (RFC 4616): authorization id, user, password.
pub fn plain_parts(response: &[u8]) -> Option<(&str, &str, &str)> {
    let mut parts = std::str::from_utf8(response).ok()?.split('\0');
    let (authzid, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && !user.is_empty()).then_some((authzid, user, password))
}

/// Which end of the connection we are, and how that end authenticates.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    Client(ClientSasl),
    Server(Arc<dyn Authenticator>),
}
