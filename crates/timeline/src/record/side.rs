use serde::{Deserialize, Serialize};

use super::{ClockRecord, Schema, text};

/// Who wrote the side records that follow.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SideRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// The node's name, as in timelines.
    pub node: String,
    /// The node's clock.
    pub clock: ClockRecord,
}

/// How many side records there were: the last one.
#[derive(Clone, Eq, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SideSummaryRecord {
    /// The schema of the record.
    #[serde(default)]
    pub schema: Schema,
    /// The node's name, as in timelines.
    pub node: String,
    /// Records of messages and connections that were written.
    #[serde(with = "text::decimal")]
    pub records: u64,
    /// Messages and connections of which nothing was written, for want of room.
    #[serde(with = "text::decimal")]
    pub dropped: u64,
}
