/// Frames of a connection so far, of the kinds that messages cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Transfers that came.
    pub transfers_in: u64,
    /// Transfers put into the outbox.
    pub transfers_out: u64,
    /// Flows that came.
    pub flows_in: u64,
    /// Flows put into the outbox.
    pub flows_out: u64,
    /// Dispositions that came.
    pub dispositions_in: u64,
    /// Dispositions put into the outbox.
    pub dispositions_out: u64,
}
