//! What a connection is set up with. Every limit that a peer can reach is here, with its default.

use crate::sasl::{Authenticator, ClientSasl};
use hopline_timeline::ClockDomain;
use hopline_wire::{Fields, Symbol};
use std::sync::Arc;
use std::time::Duration;

/// Settings of one connection. The defaults are those of the broker.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our container-id.
    pub container_id: String,
    /// The host that we want (client).
    pub hostname: Option<String>,
    /// Octets of the largest frame that we read; at least 512. 131,072 by default.
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
    /// Transfers of one delivery: enough for the largest message in the smallest frames.
    /// 1,048,576 by default.
    pub max_transfers: u32,
    /// Answers to `echo` in a second; further ones wait, and then one serves all. 1,000 by default,
    /// at least 1.
    pub echo_replies_per_second: u32,
    /// Where our transfer-ids, delivery-ids and delivery-counts begin. 0 by default.
    pub first_id: u32,
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
    /// The clock that `now` is read from, for peers that want to know how far theirs is from it;
    /// `open` says it then. None by default: nobody asks.
    pub clock: Option<ClockDomain>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_id: "hopline".into(),
            hostname: None,
            max_frame_size: 131_072,
            channel_max: 255,
            handle_max: 1023,
            incoming_window: 8192,
            max_message_size: 128 << 20,
            max_partial_octets: 256 << 20,
            max_unsettled: 65_536,
            max_transfers: 1 << 20,
            echo_replies_per_second: 1000,
            first_id: 0,
            idle_timeout: Some(Duration::from_secs(60)),
            handshake_timeout: Duration::from_secs(10),
            close_timeout: Duration::from_secs(2),
            outbox_high_water: 128 << 10,
            outbox_max: 4 << 20,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
            clock: None,
        }
    }
}

/// Which end of the connection we are, and how that end authenticates.
#[derive(Clone, Debug)]
pub(crate) enum Side {
    Client(ClientSasl),
    Server(Arc<dyn Authenticator>),
}
