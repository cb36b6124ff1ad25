use crate::{MAX_OCTETS, MAX_STAMPS};

/// Why octets are not a timeline, or a line is not a record.
///
/// None of these is a reason to stop a message: a node that cannot read a timeline forwards it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// Fewer octets than the fixed header has.
    #[error(
        "{octets} octets are too few for the timeline's 20-octet header; ignore the annotation"
    )]
    TooShort {
        /// How many there are.
        octets: usize,
    },
    /// Another version of the format.
    #[error("timeline version {0} is not read here (only 1 is); update the reader")]
    Version(u8),
    /// More octets than a timeline may have.
    #[error("a timeline of {octets} octets exceeds {MAX_OCTETS}; its writer ignores the limit")]
    TooLong {
        /// How many there are.
        octets: usize,
    },
    /// More stamps than a timeline may have.
    #[error("the timeline holds more than {MAX_STAMPS} stamps; its writer ignores the limit")]
    TooManyStamps,
    /// The timeline ends inside the record that begins at `offset`.
    #[error("the timeline ends inside the record at octet {offset}; a writer cut it")]
    Truncated {
        /// Where the record begins, in octets from the start of the timeline.
        offset: usize,
    },
    /// Type octet zero, which no record has and whose length nobody knows.
    #[error("octet {offset} of the timeline is no record type (0x00); its writer is at fault")]
    RecordType {
        /// Where the type octet is.
        offset: usize,
    },
    /// A node record without room for its fixed fields.
    #[error("the node record at octet {offset} is shorter than its fixed fields; fix its writer")]
    ShortNode {
        /// Where the record begins.
        offset: usize,
    },
    /// A stamp before the first node record: nobody knows its clock.
    #[error("the stamp at octet {offset} has no node record before it; its writer forgot it")]
    StampWithoutNode {
        /// Where the stamp begins.
        offset: usize,
    },
    /// Text that should be 16 octets in hexadecimal.
    #[error("a timeline id or host is written as 32 hexadecimal digits")]
    Hex,
    /// A line of records that exceeds the limit.
    #[error("a record of {octets} octets exceeds {max}; is this a JSON-lines file?")]
    LineTooLong {
        /// How long the line is.
        octets: usize,
        /// The limit, [`record::MAX_LINE_OCTETS`](crate::record::MAX_LINE_OCTETS).
        max: usize,
    },
    /// A line that is not a record: broken JSON, a field of the wrong kind, another schema.
    #[error("not a record: {cause}; drop the line, or write it anew")]
    Line {
        /// What the JSON reader found, with the column.
        cause: String,
    },
    /// A stamp that names a node which the record does not list.
    #[error("a stamp names node {node}, but the record lists only {nodes}; fix its writer")]
    NodeIndex {
        /// The index that the stamp carries.
        node: usize,
        /// How many nodes there are.
        nodes: usize,
    },
}
