//! What the input held, and what could not be measured.

/// How often something was met.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that weren't blank.
    pub lines: u64,
    /// Messages with a timeline that went into the figures.
    pub messages: u64,
    /// Messages without a timeline, or with an empty one.
    pub untimed: u64,
    /// Messages whose timeline had arrived before at the same node, without the mark of a
    /// redelivery: left out of the figures.
    pub duplicate: u64,
    /// Messages that were delivered before, by their own account: part of the figures.
    pub redelivered: u64,
    /// Lines that are no records, too long ones among them.
    pub malformed: u64,
    /// Inputs that ended inside a line.
    pub truncated: u64,
    /// Records of kinds that this version doesn't know.
    pub unknown: u64,
    /// Stamps that were never filled in.
    pub missing: u64,
    /// Differences of neighbouring stamps below zero.
    pub negative: u64,
    /// Differences of neighbouring stamps above the range of the histograms.
    pub saturated: u64,
    /// Differences of neighbouring stamps whose clocks nothing ties together.
    pub no_common_clock: u64,
    /// Messages in whose timeline a node found no room.
    pub overflowed: u64,
    /// Stamps that nodes dropped for want of room.
    pub dropped: u64,
    /// Samples for which the table had no row left.
    pub unlisted: u64,
    /// Records of what kernels did with messages.
    pub kernel: u64,
    /// Of these, those that belong to no message that came after them.
    pub kernel_unused: u64,
    /// Records of kernels that their writers dropped for want of room.
    pub kernel_dropped: u64,
    /// Messages received, by the writers' own summaries.
    pub received: u64,
}

impl Counts {
    /// Each count with its name in the outputs.
    pub(crate) fn named(&self) -> [(&'static str, u64); 19] {
        [
            ("lines", self.lines),
            ("messages", self.messages),
            ("untimed", self.untimed),
            ("duplicate", self.duplicate),
            ("redelivered", self.redelivered),
            ("malformed", self.malformed),
            ("truncated", self.truncated),
            ("unknown", self.unknown),
            ("missing", self.missing),
            ("negative", self.negative),
            ("saturated", self.saturated),
            ("no_common_clock", self.no_common_clock),
            ("overflowed", self.overflowed),
            ("dropped", self.dropped),
            ("unlisted", self.unlisted),
            ("kernel", self.kernel),
            ("kernel_unused", self.kernel_unused),
            ("kernel_dropped", self.kernel_dropped),
            ("received", self.received),
        ]
    }

    /// Messages of any kind in the input.
    pub(crate) fn recorded(&self) -> u64 {
        self.messages + self.untimed + self.duplicate
    }
}
