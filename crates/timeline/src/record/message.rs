use serde::{Deserialize, Serialize};

use super::{ClockRecord, Schema, text};
use crate::{
    ClockOffset, Instant, Node, Reserved, Stamp, Timeline, TimelineError, TimelineId, Wait,
};

/// A message that carried a timeline.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// How many messages came before it on this subscription.
    pub seq: u64,
    /// The timeline's id, written as 32 hexadecimal digits.
    #[serde(with = "text::hex")]
    pub id: [u8; 16],
    /// The address it came from.
    pub address: String,
    /// Octets of the message as it came, all sections.
    pub octets: u64,
    /// The message-id property as text.
    #[serde(default)]
    pub message_id: Option<String>,
    /// Whether it was delivered before: its delivery-count is above zero.
    #[serde(default)]
    pub redelivered: bool,
    /// Whether a node dropped something for want of room.
    #[serde(default)]
    pub overflow: bool,
    /// How many stamps were dropped.
    #[serde(default)]
    pub dropped: u16,
    /// The nodes in the order of their records in the timeline.
    pub nodes: Vec<NodeRecord>,
    /// The stamps in the order of the timeline.
    pub stamps: Vec<StampRecord>,
}

/// A node of a timeline.
#[derive(Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The node's name.
    pub name: String,
    /// Its clock; the fields stand beside the name.
    #[serde(flatten)]
    pub clock: ClockRecord,
    /// What it has found out about the clock of the node before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TieRecord>,
}

/// How far a clock is ahead of another.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct TieRecord {
    /// In ns; negative where it is behind.
    #[serde(with = "text::decimal")]
    pub ahead_ns: i64,
    /// By how much that can be wrong, in ns.
    #[serde(with = "text::decimal")]
    pub error_bound_ns: u64,
}

/// A stamp of a timeline.
#[derive(Copy, Clone, Eq, PartialEq, Debug, Serialize, Deserialize)]
pub struct StampRecord {
    /// Index of the node that stamped.
    pub node: usize,
    /// The stage's code, written as its name, or as `#77`.
    #[serde(with = "text::stage")]
    pub stage: u8,
    /// When, in ns on the node's clock; `None` if the slot was not filled in.
    #[serde(rename = "at_ns", with = "text::instant")]
    pub at: Option<Instant>,
    /// What the message waited for, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "text::wait")]
    pub wait: Option<Wait>,
    /// The detail octet, where it is neither 0 nor a [`Wait`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detail: u8,
}

/// What a message's record says beside its timeline.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct MessageInfo {
    /// How many messages came before it on this subscription.
    pub seq: u64,
    /// The address it came from.
    pub address: String,
    /// Octets of the message as it came, all sections.
    pub octets: u64,
    /// The message-id property as text.
    pub message_id: Option<String>,
    /// Whether it was delivered before.
    pub redelivered: bool,
}

impl MessageRecord {
    /// The record of a message and its timeline; of [`Timeline::reserved`] only what
    /// [`Timeline::tie`] reads is kept.
    pub fn new(info: MessageInfo, timeline: &Timeline) -> Self {
        let MessageInfo { seq, address, octets, message_id, redelivered } = info;
        let TimelineId(id) = timeline.id;
        MessageRecord {
            schema: Schema,
            seq,
            id,
            address,
            octets,
            message_id,
            redelivered,
            overflow: timeline.overflow,
            dropped: timeline.dropped,
            nodes: timeline
                .nodes
                .iter()
                .enumerate()
                .map(|(n, node)| record(node, timeline.tie(n)))
                .collect(),
            stamps: timeline.stamps.iter().map(StampRecord::from).collect(),
        }
    }

    /// The timeline that the record was made of.
    ///
    /// # Errors
    /// A stamp that names a node which is not listed.
    pub fn timeline(&self) -> Result<Timeline, TimelineError> {
        let nodes = self.nodes.len();
        if let Some(stamp) = self.stamps.iter().find(|stamp| stamp.node >= nodes) {
            return Err(TimelineError::NodeIndex { node: stamp.node, nodes });
        }
        Ok(Timeline {
            id: TimelineId(self.id),
            overflow: self.overflow,
            dropped: self.dropped,
            nodes: self.nodes.iter().map(Node::from).collect(),
            stamps: self.stamps.iter().map(Stamp::from).collect(),
            reserved: self.ties(),
        })
    }

    fn ties(&self) -> Vec<Reserved> {
        let ties = self.nodes.iter().enumerate().filter_map(|(n, node)| Some((n, node.before?)));
        let record = |(n, tie): (usize, TieRecord)| {
            let stamps = self.stamps.iter().position(|stamp| stamp.node >= n);
            let stamps = stamps.unwrap_or(self.stamps.len());
            Timeline::tie_record(n, stamps, tie.into())
        };
        ties.map(record).collect()
    }
}

fn record(node: &Node, tie: Option<ClockOffset>) -> NodeRecord {
    NodeRecord { name: node.name.clone(), clock: node.clock.into(), before: tie.map(Into::into) }
}

impl From<ClockOffset> for TieRecord {
    fn from(offset: ClockOffset) -> Self {
        let ClockOffset { ahead_ns, error_bound_ns } = offset;
        TieRecord { ahead_ns, error_bound_ns }
    }
}

impl From<TieRecord> for ClockOffset {
    fn from(tie: TieRecord) -> Self {
        let TieRecord { ahead_ns, error_bound_ns } = tie;
        ClockOffset { ahead_ns, error_bound_ns }
    }
}

impl From<&NodeRecord> for Node {
    fn from(record: &NodeRecord) -> Self {
        Node { name: record.name.clone(), clock: record.clock.into() }
    }
}

impl From<&Stamp> for StampRecord {
    fn from(stamp: &Stamp) -> Self {
        let wait = stamp.wait().filter(|wait| *wait != Wait::None);
        let detail = if wait.is_some() { 0 } else { stamp.detail };
        StampRecord { node: stamp.node, stage: stamp.stage, at: stamp.at, wait, detail }
    }
}

impl From<&StampRecord> for Stamp {
    fn from(record: &StampRecord) -> Self {
        let detail = record.wait.map_or(record.detail, Wait::code);
        Stamp { node: record.node, stage: record.stage, detail, at: record.at }
    }
}

fn is_zero(detail: &u8) -> bool {
    *detail == 0
}
