use crate::{Symbol, Value, composite};
use bytes::Bytes;

composite! {
    /// What the nodes on the way need to know (3.2.1).
    Header = 0x70 "amqp:header:list" {
        /// The message is not to be lost.
        durable: bool => or(false),
        /// 0 to 9 and above; 4 is the default.
        priority: u8 => or(4),
        /// Milliseconds to live from here.
        ttl: Option<u32> => optional,
        /// Nobody acquired it before.
        first_acquirer: bool => or(false),
        /// Deliveries that failed before.
        delivery_count: u32 => or(0),
    }
}

impl Default for Header {
    fn default() -> Self {
        Self { durable: false, priority: 4, ttl: None, first_acquirer: false, delivery_count: 0 }
    }
}

composite! {
    /// The immutable properties of a message (3.2.4).
    #[derive(Default)]
    Properties = 0x73 "amqp:properties:list" {
        /// ulong, uuid, binary or string.
        message_id: Option<Value> => message_id,
        /// The user who made the message.
        user_id: Option<Bytes> => optional,
        /// The node that it is for.
        to: Option<String> => optional,
        /// What it is about.
        subject: Option<String> => optional,
        /// The node for replies.
        reply_to: Option<String> => optional,
        /// ulong, uuid, binary or string.
        correlation_id: Option<Value> => message_id,
        /// The MIME type of data sections.
        content_type: Option<Symbol> => optional,
        /// The MIME encoding.
        content_encoding: Option<Symbol> => optional,
        /// When it is of no use any more: milliseconds since 1970.
        absolute_expiry_time: Option<Timestamp> => optional,
        /// When it was made.
        creation_time: Option<Timestamp> => optional,
        /// Its group.
        group_id: Option<String> => optional,
        /// Its place in the group; wraps.
        group_sequence: Option<u32> => optional,
        /// The group for replies.
        reply_to_group_id: Option<String> => optional,
    }
}

impl Properties {
    /// Whether nothing is said: then the section is left out.
    pub const fn is_empty(&self) -> bool {
        matches!(
            self,
            Self {
                message_id: None,
                user_id: None,
                to: None,
                subject: None,
                reply_to: None,
                correlation_id: None,
                content_type: None,
                content_encoding: None,
                absolute_expiry_time: None,
                creation_time: None,
                group_id: None,
                group_sequence: None,
                reply_to_group_id: None,
            }
        )
    }
}

/// Milliseconds since 1970, UTC (part 1, 1.6.17).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Timestamp(pub i64);

impl crate::codec::Encode for Timestamp {
    fn encode(&self, out: &mut Vec<u8>) {
        Value::Timestamp(self.0).encode(out);
    }
}

impl crate::codec::Decode for Timestamp {
    fn decode(r: &mut crate::codec::Reader<'_>) -> Result<Self, crate::WireError> {
        match r.octet("timestamp")? {
            crate::codec::code::TIMESTAMP => {
                r.array("timestamp").map(|octets| Self(i64::from_be_bytes(octets)))
            }
            code => Err(crate::WireError::Constructor { code, expected: "timestamp" }),
        }
    }
}
