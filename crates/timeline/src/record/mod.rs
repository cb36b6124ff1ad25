//! Timelines as lines of JSON: written by `hopline-subscribe`, read by `hopline-report`.
//!
//! One object a line; `docs/timeline.md` shows each kind. Integers of 64 bits are written as
//! strings, since JSON readers that keep numbers as doubles would round them.

mod account;
mod connection;
mod kernel;
mod message;
mod side;
mod text;

use serde::{Deserialize, Serialize};

pub use connection::{
    ConnectionRecord, FramesRecord, HeldRecord, IoRecord, TcpRecord, WaitedRecord,
};
pub use kernel::{Held, KernelRecord, KernelStamp};
pub use message::{MessageInfo, MessageRecord, NodeRecord, StampRecord, TieRecord};
pub use side::{SideRecord, SideSummaryRecord};
pub use text::Schema;

use crate::{ClockDomain, ClockKind, TimelineError};

/// The longest line that is read or written, its end excluded, in octets. A full timeline takes
/// about 30,000; the rest is for addresses and message-ids.
pub const MAX_LINE_OCTETS: usize = 262_144;

/// One line.
#[derive(Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "hopline", rename_all = "lowercase")]
pub enum Record {
    /// Who wrote the lines that follow.
    Header(HeaderRecord),
    /// A message that carried a timeline.
    Message(MessageRecord),
    /// A message that carried none, or none that can be read.
    Untimed(UntimedRecord),
    /// What a sender's kernel did with a message.
    Kernel(KernelRecord),
    /// Who wrote the side records that follow.
    Side(SideRecord),
    /// How many side records there were.
    #[serde(rename = "side_summary")]
    SideSummary(SideSummaryRecord),
    /// What passed over a connection.
    Connection(ConnectionRecord),
    /// What the writer saw in all.
    Summary(SummaryRecord),
    /// A kind of record that this version does not know; readers pass over it.
    #[serde(other, skip_serializing)]
    Other,
}

/// Who wrote the lines that follow, and over which connection the messages came.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct HeaderRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// The subscriber's name, as in its timelines.
    pub node: String,
    /// The subscriber's clock.
    pub clock: ClockRecord,
    /// The clock's resolution in ns; `None` if the system can't say.
    #[serde(default)]
    pub resolution_ns: Option<u32>,
    /// The connection's socket options in force; `None` if there is no socket to ask.
    #[serde(default)]
    pub socket: Option<SocketRecord>,
    /// The address subscribed to.
    pub address: String,
}

/// A clock domain, as in [`ClockDomain`].
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClockRecord {
    /// `monotonic`, `realtime` or `#3`.
    #[serde(with = "text::clock_kind")]
    pub kind: ClockKind,
    /// The host's boot id, written as 32 hexadecimal digits.
    #[serde(with = "text::hex")]
    pub host: [u8; 16],
    /// Realtime minus this clock, in ns.
    #[serde(with = "text::decimal")]
    pub wall_offset_ns: i64,
    /// The bound of the realtime clock's error, in ns.
    #[serde(with = "text::decimal")]
    pub error_bound_ns: u64,
}

/// Socket options as the kernel has them, read back after they were set.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SocketRecord {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// SO_SNDBUF in octets.
    pub send_buffer: u32,
    /// SO_RCVBUF in octets.
    pub receive_buffer: u32,
    /// TCP_NOTSENT_LOWAT in octets; 4,294,967,295 is the kernel's "no limit".
    pub notsent_lowat: u32,
    /// Our address and port.
    pub local: String,
    /// The peer's address and port.
    pub peer: String,
}

/// A message that carried no timeline, or none that can be read.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct UntimedRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// How many messages came before it on this subscription.
    pub seq: u64,
    /// The address it came from.
    pub address: String,
    /// Octets of the message as it came, all sections.
    pub octets: u64,
    /// Why the timeline could not be read; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the writer saw in all: the last record.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SummaryRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// Messages received.
    pub received: u64,
    /// Of these, those with a timeline.
    pub timelines: u64,
    /// Of these, those with a timeline that could not be read.
    pub malformed: u64,
    /// From the first to the last message, in ns.
    #[serde(with = "text::decimal")]
    pub duration_ns: u64,
}

impl Record {
    /// Reads one line, with or without its end.
    ///
    /// # Errors
    /// A line beyond [`MAX_LINE_OCTETS`], broken JSON, a missing field, another schema. Unknown
    /// kinds of records are [`Record::Other`], unknown fields are ignored.
    pub fn parse_line(line: &[u8]) -> Result<Record, TimelineError> {
        let line = line.trim_ascii_end();
        check_length(line.len())?;
        serde_json::from_slice(line)
            .map_err(|cause| TimelineError::Line { cause: cause.to_string() })
    }

    /// Appends the record and a line feed to `out`; appends nothing if it fails.
    ///
    /// # Errors
    /// [`Record::Other`], which stands for what is not known, and a record beyond
    /// [`MAX_LINE_OCTETS`].
    pub fn write_line(&self, out: &mut Vec<u8>) -> Result<(), TimelineError> {
        let start = out.len();
        let written = serde_json::to_writer(&mut *out, self)
            .map_err(|cause| TimelineError::Line { cause: cause.to_string() })
            .and_then(|()| check_length(out.len() - start));
        match written {
            Ok(()) => out.push(b'\n'),
            Err(_) => out.truncate(start),
        }
        written
    }
}

fn check_length(octets: usize) -> Result<(), TimelineError> {
    let max = MAX_LINE_OCTETS;
    if octets > max { Err(TimelineError::LineTooLong { octets, max }) } else { Ok(()) }
}

impl From<ClockDomain> for ClockRecord {
    fn from(clock: ClockDomain) -> Self {
        let ClockDomain { kind, host, wall_offset_ns, error_bound_ns } = clock;
        ClockRecord { kind, host, wall_offset_ns, error_bound_ns }
    }
}

impl From<ClockRecord> for ClockDomain {
    fn from(clock: ClockRecord) -> Self {
        let ClockRecord { kind, host, wall_offset_ns, error_bound_ns } = clock;
        ClockDomain { kind, host, wall_offset_ns, error_bound_ns }
    }
}

impl Default for ClockRecord {
    fn default() -> Self {
        ClockDomain::default().into()
    }
}
