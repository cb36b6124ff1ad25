use crate::Symbol;
use crate::definitions::condition;

/// What is wrong with octets from a peer. The text says what was met and what the standard asks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A value runs past the end of what holds it (part 1, 1.2).
    #[error("{what} is cut short: it needs {need} octets and {have} are there")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Octets needed.
        need: usize,
        /// Octets left.
        have: usize,
    },
    /// A constructor that is unknown, or not one of the type that belongs here (part 1, 1.2).
    #[error("constructor 0x{code:02x} where {expected} belongs")]
    Constructor {
        /// The format code that was met.
        code: u8,
        /// The type that belongs here.
        expected: &'static str,
    },
    /// Octets of the right type whose value is not allowed.
    #[error("{what} {detail}")]
    Invalid {
        /// Which value.
        what: &'static str,
        /// What is wrong with it.
        detail: &'static str,
    },
    /// A mandatory field is null or absent (part 1, 1.4).
    #[error("the mandatory field {field} of {composite} is missing")]
    MissingField {
        /// The composite type.
        composite: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A composite has more fields than the standard defines (part 1, 1.4).
    #[error("{composite} has {count} fields, more than the standard defines")]
    TooManyFields {
        /// The composite type.
        composite: &'static str,
        /// Fields announced.
        count: usize,
    },
    /// A described value that is not known here.
    #[error("unknown descriptor {descriptor} where {expected} belongs")]
    Descriptor {
        /// The descriptor, as text.
        descriptor: String,
        /// What belongs here.
        expected: &'static str,
    },
    /// A limit of [`crate::limits`] is exceeded.
    #[error("{what} exceeds the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The frame header itself is wrong (part 2, 2.3.1).
    #[error("malformed frame: {0}")]
    Frame(&'static str),
    /// A frame is longer than the max-frame-size in force (part 2, 2.7.1).
    #[error("a frame of {size} octets exceeds the max-frame-size of {max}")]
    FrameSize {
        /// Octets of the frame.
        size: usize,
        /// The limit in force.
        max: usize,
    },
}

impl WireError {
    /// The error condition that the standard has for this mistake (part 2, 2.8.15 and 2.8.16).
    pub fn condition(&self) -> Symbol {
        match self {
            Self::Frame(_) | Self::FrameSize { .. } => condition::FRAMING_ERROR,
            Self::Limit { .. } => condition::RESOURCE_LIMIT_EXCEEDED,
            _ => condition::DECODE_ERROR,
        }
    }
}
