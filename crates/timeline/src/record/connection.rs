use serde::{Deserialize, Serialize};

use super::{Schema, text};

/// What passed over a connection so far, as its own end of it saw it.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// The name of the node whose end it is.
    pub node: String,
    /// Our address and port.
    pub local: String,
    /// The peer's address and port.
    pub peer: String,
    /// TCP_NODELAY in force; `None` if the system can't say.
    #[serde(default)]
    pub nodelay: Option<bool>,
    /// Octets and calls.
    pub io: IoRecord,
    /// AMQP frames.
    pub frames: FramesRecord,
    /// Flushes after which the kernel held octets back, by reason.
    pub held: HeldRecord,
    /// For how long the peer kept this end from sending.
    #[serde(default)]
    pub waited: WaitedRecord,
    /// What TCP tells; `None` where the system can't.
    #[serde(default)]
    pub tcp: Option<TcpRecord>,
}

/// For how long a peer kept its sender waiting, whether there was something to send or not.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WaitedRecord {
    /// Links had used up their credit until more came: the sum over all links, in ns.
    #[serde(with = "text::decimal")]
    pub no_credit_ns: u64,
    /// Sessions had used up the peer's incoming window: the sum over all sessions, in ns.
    #[serde(with = "text::decimal")]
    pub no_window_ns: u64,
}

/// Reads and writes of a connection.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct IoRecord {
    /// Reads that brought octets.
    #[serde(with = "text::decimal")]
    pub reads: u64,
    /// Octets read.
    #[serde(with = "text::decimal")]
    pub octets_read: u64,
    /// Writes that took octets.
    #[serde(with = "text::decimal")]
    pub writes: u64,
    /// Octets written.
    #[serde(with = "text::decimal")]
    pub octets_written: u64,
    /// Writes that took less than there was.
    #[serde(with = "text::decimal")]
    pub short_writes: u64,
}

/// Frames of a connection, of the kinds that messages cost.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FramesRecord {
    /// Transfers that came.
    #[serde(with = "text::decimal")]
    pub transfers_in: u64,
    /// Transfers sent.
    #[serde(with = "text::decimal")]
    pub transfers_out: u64,
    /// Flows that came.
    #[serde(with = "text::decimal")]
    pub flows_in: u64,
    /// Flows sent.
    #[serde(with = "text::decimal")]
    pub flows_out: u64,
    /// Dispositions that came.
    #[serde(with = "text::decimal")]
    pub dispositions_in: u64,
    /// Dispositions sent.
    #[serde(with = "text::decimal")]
    pub dispositions_out: u64,
}

/// Flushes after which the kernel held octets back, by [`Held`](super::Held).
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeldRecord {
    /// By Nagle's algorithm.
    #[serde(with = "text::decimal")]
    pub nagle: u64,
    /// By TCP_CORK.
    #[serde(with = "text::decimal")]
    pub cork: u64,
    /// By the peer's receive window.
    #[serde(with = "text::decimal")]
    pub receive_window: u64,
    /// By the congestion window or pacing.
    #[serde(with = "text::decimal")]
    pub congestion: u64,
    /// For a reason that could not be told.
    #[serde(with = "text::decimal")]
    pub unknown: u64,
}

/// TCP's own account of a connection (TCP_INFO). A field is `None` where the kernel is too old
/// to tell it.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TcpRecord {
    /// Segments sent, ACKs included.
    #[serde(default)]
    pub segments_out: Option<u32>,
    /// Segments that came, ACKs included.
    #[serde(default)]
    pub segments_in: Option<u32>,
    /// Segments sent that carried octets.
    #[serde(default)]
    pub data_segments_out: Option<u32>,
    /// Segments that came and carried octets. The others are ACKs and window updates.
    #[serde(default)]
    pub data_segments_in: Option<u32>,
    /// Segments sent again.
    pub retransmits: u32,
    /// The smoothed round trip in us; the peer's delayed ACKs are part of it.
    pub rtt_us: u32,
    /// The least round trip that was seen, in us.
    #[serde(default)]
    pub min_rtt_us: Option<u32>,
    /// Time in us during which octets waited or were under way.
    #[serde(default, with = "text::decimal_option")]
    pub busy_us: Option<u64>,
    /// Of it, the time during which the peer's receive window was the limit, in us.
    #[serde(default, with = "text::decimal_option")]
    pub window_limited_us: Option<u64>,
    /// Of it, the time during which the send buffer was the limit, in us.
    #[serde(default, with = "text::decimal_option")]
    pub send_buffer_limited_us: Option<u64>,
    /// Octets that were given to the kernel and not sent yet.
    #[serde(default)]
    pub unsent_octets: Option<u32>,
}
