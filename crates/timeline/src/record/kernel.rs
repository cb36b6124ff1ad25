use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Schema, text};
use crate::Instant;

/// What a sender's kernel did with one message: a side record, since most of it is known only when
/// the message has left. Belongs to the timeline of this id, and there to the SEND stamp of this
/// node at this instant.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct KernelRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// The name of the node that sent.
    pub node: String,
    /// The timeline's id, written as 32 hexadecimal digits.
    #[serde(with = "text::hex")]
    pub id: [u8; 16],
    /// The message's SEND stamp at this node, in ns on its clock. `None`: the timeline has none.
    #[serde(rename = "send_ns", with = "text::instant")]
    pub send: Option<Instant>,
    /// Why octets were held back right after the write of the message's last octet, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "text::held")]
    pub held: Option<Held>,
    /// The kernel's stamps in the order of their stages; those that never came are not listed.
    pub stamps: Vec<KernelStamp>,
}

/// One instant that the kernel told.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelStamp {
    /// KERNEL_SCHED, KERNEL_SEND or KERNEL_ACK, by its code.
    #[serde(with = "text::stage")]
    pub stage: u8,
    /// When, in ns on the node's clock.
    #[serde(rename = "at_ns", with = "text::instant")]
    pub at: Option<Instant>,
    /// An upper bound: the stamp is of a later octet, with which the message's last shares a
    /// segment buffer. It may have passed earlier.
    #[serde(default, skip_serializing_if = "is_false")]
    pub upper_bound: bool,
    /// The octets were sent again; this is the first time.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retransmitted: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Why a kernel holds octets back that it was given to send.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub enum Held {
    /// Nagle's algorithm: less than a segment, while an earlier one is not acknowledged, and
    /// TCP_NODELAY is off.
    Nagle,
    /// TCP_CORK: less than a segment, and the socket is corked.
    Cork,
    /// The peer's receive window has no room for them.
    ReceiveWindow,
    /// The congestion window is full, or the congestion control paces.
    Congestion,
    /// The kernel doesn't tell enough.
    Unknown,
}

impl Held {
    /// Every reason.
    pub const ALL: &[Held] =
        &[Held::Nagle, Held::Cork, Held::ReceiveWindow, Held::Congestion, Held::Unknown];

    /// The name in reports and records, such as `receive-window`.
    pub fn name(self) -> &'static str {
        match self {
            Held::Nagle => "nagle",
            Held::Cork => "cork",
            Held::ReceiveWindow => "receive-window",
            Held::Congestion => "congestion",
            Held::Unknown => "unknown",
        }
    }

    /// The reason of a [`name`](Self::name), spelled exactly so.
    pub fn from_name(name: &str) -> Option<Held> {
        Self::ALL.iter().copied().find(|held| held.name() == name)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
