//! Definitions of part 2, 2.8: symbols, roles, settle modes, delivery-tags, errors, field maps.

use crate::codec::{Decode, Encode, Reader, code, put_variable, read_binary};
use crate::{Value, WireError, composite, limits};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A symbol (part 1, 1.6.21): ASCII, from a constrained domain. Who makes one from a text sees to
/// it that it is ASCII: the peer refuses others.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(Cow<'static, str>);

impl Symbol {
    /// A symbol that the program knows.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// A symbol off the wire.
    ///
    /// # Errors
    /// Octets that are not ASCII.
    pub fn from_octets(octets: &[u8]) -> Result<Self, WireError> {
        match std::str::from_utf8(octets) {
            Ok(text) if text.is_ascii() => Ok(Self(Cow::Owned(text.to_owned()))),
            _ => Err(WireError::Invalid { what: "symbol", detail: "is not ASCII" }),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Symbol {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl From<&'static str> for Symbol {
    fn from(text: &'static str) -> Self {
        Self::from_static(text)
    }
}

impl PartialEq<str> for Symbol {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Symbol {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ":{}", self.0)
    }
}

impl Encode for Symbol {
    fn encode(&self, out: &mut Vec<u8>) {
        put_variable(out, code::SYMBOL8, code::SYMBOL32, self.0.as_bytes());
    }
}

impl Decode for Symbol {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        match r.octet("symbol")? {
            code::SYMBOL8 => Self::from_octets(r.variable(false, "symbol")?),
            code::SYMBOL32 => Self::from_octets(r.variable(true, "symbol")?),
            code => Err(WireError::Constructor { code, expected: "symbol" }),
        }
    }
}

/// Which end of a link (part 2, 2.8.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `false` on the wire.
    Sender,
    /// `true` on the wire.
    Receiver,
}

impl Role {
    /// The other end's role.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

impl Encode for Role {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self == Self::Receiver).encode(out);
    }
}

impl Decode for Role {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(if bool::decode(r)? { Self::Receiver } else { Self::Sender })
    }
}

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident: $text:literal {
        $($(#[$doc:meta])* $variant:ident = $n:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant = $n),+ }

        impl Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                (*self as u8).encode(out);
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
                match u8::decode(r)? {
                    $($n => Ok(Self::$variant),)+
                    _ => Err(WireError::Invalid { what: $text, detail: "is none of its choices" }),
                }
            }
        }
    };
}

choice! {
    /// When a sender settles (part 2, 2.8.2).
    SenderSettleMode: "snd-settle-mode" {
        /// All deliveries are sent unsettled.
        Unsettled = 0,
        /// All deliveries are sent settled.
        Settled = 1,
        /// The sender may do either.
        Mixed = 2,
    }
}

choice! {
    /// When a receiver settles (part 2, 2.8.3).
    ReceiverSettleMode: "rcv-settle-mode" {
        /// The receiver settles of its own accord.
        First = 0,
        /// The receiver settles after the sender.
        Second = 1,
    }
}

choice! {
    /// What came of SASL (part 5, 5.3.3.6).
    SaslCode: "SASL outcome code" {
        /// Authenticated.
        Ok = 0,
        /// The credentials are wrong.
        Auth = 1,
        /// A system error.
        Sys = 2,
        /// A system error that needs a hand.
        SysPerm = 3,
        /// A system error that may pass.
        SysTemp = 4,
    }
}

/// The tag of a delivery: up to 32 octets (part 2, 2.8.7), held in place.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct DeliveryTag {
    len: u8,
    octets: [u8; limits::DELIVERY_TAG],
}

impl DeliveryTag {
    /// A tag of these octets; `None` if there are more than 32.
    #[inline]
    pub fn new(tag: &[u8]) -> Option<Self> {
        let mut octets = [0; limits::DELIVERY_TAG];
        // What most are, without a call.
        if let Ok(eight) = <&[u8; 8]>::try_from(tag) {
            octets[..8].copy_from_slice(eight);
            return Some(Self { len: 8, octets });
        }
        octets.get_mut(..tag.len())?.copy_from_slice(tag);
        Some(Self { len: tag.len() as u8, octets })
    }

    /// Its octets.
    pub fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

/// Most tags are much shorter than they may be: what is not used is not hashed.
impl Hash for DeliveryTag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl From<u64> for DeliveryTag {
    /// The number in eight octets.
    fn from(n: u64) -> Self {
        let mut octets = [0; limits::DELIVERY_TAG];
        octets[..8].copy_from_slice(&n.to_be_bytes());
        Self { len: 8, octets }
    }
}

impl fmt::Debug for DeliveryTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl Encode for DeliveryTag {
    fn encode(&self, out: &mut Vec<u8>) {
        put_variable(out, code::BINARY8, code::BINARY32, self.as_slice());
    }
}

impl Decode for DeliveryTag {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let detail = "is longer than 32 octets";
        Self::new(read_binary(r)?).ok_or(WireError::Invalid { what: "delivery-tag", detail })
    }
}

/// A map with symbolic keys (part 2, 2.8.13), in the order that it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(pub Vec<(Symbol, Value)>);

impl Fields {
    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Encode for Fields {
    fn encode(&self, out: &mut Vec<u8>) {
        crate::value::encode_map(out, self.0.len(), |out| {
            for (key, value) in &self.0 {
                key.encode(out);
                value.encode(out);
            }
        });
    }
}

impl Decode for Fields {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (mut inner, count) = r.map("map of fields")?;
        let mut fields = Vec::new();
        for _ in 0..count / 2 {
            fields.push((Symbol::decode(&mut inner)?, Value::decode(&mut inner)?));
        }
        inner.end("map of fields")?;
        Ok(Self(fields))
    }
}

composite! {
    /// Why a link, a session or a connection ends, or a message is rejected (part 2, 2.8.14).
    AmqpError = 0x1d "amqp:error:list" {
        /// A symbolic value that names the kind.
        condition: Symbol => required,
        /// For people.
        description: Option<String> => optional,
        /// For programs.
        info: Option<Fields> => optional,
    }
}

impl AmqpError {
    /// An error with a text for people.
    pub fn new(condition: Symbol, description: impl Into<String>) -> Self {
        Self { condition, description: Some(description.into()), info: None }
    }
}

impl fmt::Display for AmqpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.description {
            Some(text) => write!(f, "{}: {text}", self.condition),
            None => write!(f, "{}", self.condition),
        }
    }
}

impl From<&WireError> for AmqpError {
    fn from(error: &WireError) -> Self {
        Self::new(error.condition(), error.to_string())
    }
}

/// The error conditions of part 2 (2.8.15 to 2.8.18) and part 4 (4.5.8).
#[allow(missing_docs)]
pub mod condition {
    use super::Symbol;

    macro_rules! conditions {
        ($($name:ident = $text:literal;)+) => {
            $(pub const $name: Symbol = Symbol::from_static($text);)+
        };
    }

    conditions! {
        INTERNAL_ERROR = "amqp:internal-error";
        NOT_FOUND = "amqp:not-found";
        UNAUTHORIZED_ACCESS = "amqp:unauthorized-access";
        DECODE_ERROR = "amqp:decode-error";
        RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded";
        NOT_ALLOWED = "amqp:not-allowed";
        INVALID_FIELD = "amqp:invalid-field";
        NOT_IMPLEMENTED = "amqp:not-implemented";
        RESOURCE_LOCKED = "amqp:resource-locked";
        PRECONDITION_FAILED = "amqp:precondition-failed";
        RESOURCE_DELETED = "amqp:resource-deleted";
        ILLEGAL_STATE = "amqp:illegal-state";
        FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small";
        CONNECTION_FORCED = "amqp:connection:forced";
        FRAMING_ERROR = "amqp:connection:framing-error";
        CONNECTION_REDIRECT = "amqp:connection:redirect";
        WINDOW_VIOLATION = "amqp:session:window-violation";
        ERRANT_LINK = "amqp:session:errant-link";
        HANDLE_IN_USE = "amqp:session:handle-in-use";
        UNATTACHED_HANDLE = "amqp:session:unattached-handle";
        DETACH_FORCED = "amqp:link:detach-forced";
        TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded";
        MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded";
        LINK_REDIRECT = "amqp:link:redirect";
        STOLEN = "amqp:link:stolen";
        UNKNOWN_ID = "amqp:transaction:unknown-id";
        ROLLBACK = "amqp:transaction:rollback";
        TIMEOUT = "amqp:transaction:timeout";
    }
}
