//! Delivery states: received, the four outcomes, and those of transactions (part 3, 3.4; part 4).

use crate::codec::{Decode, Encode, Reader};
use crate::composite::{Descriptor, FieldReader};
use crate::{AmqpError, Fields, Symbol, Value, WireError, composite};
use bytes::Bytes;

composite! {
    /// How much of a delivery is known at the receiver (3.4.1).
    Received = 0x23 "amqp:received:list" {
        /// Which section.
        section_number: u32 => required,
        /// Which octet in it.
        section_offset: u64 => required,
    }
}

composite! {
    /// The message was taken (3.4.2).
    Accepted = 0x24 "amqp:accepted:list" {}
}

composite! {
    /// The message is invalid (3.4.3).
    #[derive(Default)]
    Rejected = 0x25 "amqp:rejected:list" {
        /// Why.
        error: Option<Box<AmqpError>> => optional,
    }
}

composite! {
    /// The message was not and will not be acted upon (3.4.4).
    Released = 0x26 "amqp:released:list" {}
}

composite! {
    /// The message was modified, but not processed (3.4.5).
    #[derive(Default)]
    Modified = 0x27 "amqp:modified:list" {
        /// Count the attempt as a failed one.
        delivery_failed: Option<bool> => optional,
        /// Don't send it over this link again.
        undeliverable_here: Option<bool> => optional,
        /// Merged into the message annotations.
        message_annotations: Option<Fields> => optional,
    }
}

composite! {
    /// A transaction began (part 4, 4.5.5).
    Declared = 0x33 "amqp:declared:list" {
        /// Its id.
        txn_id: Bytes => required,
    }
}

composite! {
    /// Work within a transaction (part 4, 4.5.6).
    TransactionalState = 0x34 "amqp:transactional-state:list" {
        /// The transaction.
        txn_id: Bytes => required,
        /// The outcome that is to hold at commit.
        outcome: Option<Box<DeliveryState>> => optional,
    }
}

/// The state of a delivery at one end.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryState {
    /// Not terminal.
    Received(Received),
    /// Terminal.
    Accepted,
    /// Terminal.
    Rejected(Rejected),
    /// Terminal.
    Released,
    /// Terminal.
    Modified(Box<Modified>),
    /// Terminal, for a coordinator's deliveries.
    Declared(Declared),
    /// Work of a transaction.
    Transactional(TransactionalState),
    /// A state that the standard does not define; relayed, not understood.
    Other(Box<Value>),
}

impl DeliveryState {
    /// Whether the delivery's fate is decided by it.
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Accepted
                | Self::Rejected(_)
                | Self::Released
                | Self::Modified(_)
                | Self::Declared(_)
        )
    }

    /// Rejected with an error.
    pub fn rejected(condition: Symbol, description: impl Into<String>) -> Self {
        let error = Some(Box::new(AmqpError::new(condition, description)));
        Self::Rejected(Rejected { error })
    }

    /// Modified with the delivery counted as failed, or not; offered here again, or not.
    pub fn modified(delivery_failed: bool, undeliverable_here: bool) -> Self {
        Self::Modified(Box::new(Modified {
            delivery_failed: Some(delivery_failed),
            undeliverable_here: Some(undeliverable_here),
            message_annotations: None,
        }))
    }

    /// The symbol of the outcome, as `source.outcomes` lists it.
    pub const fn symbol(&self) -> Option<&'static str> {
        match self {
            Self::Accepted => Some(Accepted::SYMBOL),
            Self::Rejected(_) => Some(Rejected::SYMBOL),
            Self::Released => Some(Released::SYMBOL),
            Self::Modified(_) => Some(Modified::SYMBOL),
            _ => None,
        }
    }
}

impl Encode for DeliveryState {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Received(state) => state.encode(out),
            Self::Accepted => Accepted {}.encode(out),
            Self::Rejected(state) => state.encode(out),
            Self::Released => Released {}.encode(out),
            Self::Modified(state) => state.encode(out),
            Self::Declared(state) => state.encode(out),
            Self::Transactional(state) => state.encode(out),
            Self::Other(value) => value.encode(out),
        }
    }
}

macro_rules! known_state {
    ($r:ident, $descriptor:ident, { $($type:ident => $make:expr),+ $(,)? }) => {
        $(if $descriptor.is($type::CODE.into(), $type::SYMBOL) {
            return $type::decode_fields($r).map($make);
        })+
    };
}

impl Decode for DeliveryState {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let start = r.clone();
        let descriptor = Descriptor::read(r, "delivery state")?;
        known_state!(r, descriptor, {
            Accepted => |_| Self::Accepted,
            Released => |_| Self::Released,
            Rejected => Self::Rejected,
            Modified => |state| Self::Modified(Box::new(state)),
            Received => Self::Received,
            Declared => Self::Declared,
        });
        if descriptor.is(TransactionalState::CODE.into(), TransactionalState::SYMBOL) {
            return decode_transactional(r);
        }
        *r = start;
        Value::decode(r).map(|value| Self::Other(Box::new(value)))
    }
}

/// The outcome inside must be a plain one: nested states would let a peer choose our stack depth.
fn decode_transactional(r: &mut Reader<'_>) -> Result<DeliveryState, WireError> {
    let mut fields = FieldReader::new(r, "TransactionalState", 2)?;
    let txn_id = fields.required("txn_id")?;
    let outcome = fields.optional("outcome")?.map(|Outcome(state)| Box::new(state));
    fields.end()?;
    Ok(DeliveryState::Transactional(TransactionalState { txn_id, outcome }))
}

struct Outcome(DeliveryState);

impl Decode for Outcome {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut ahead = r.clone();
        let descriptor = Descriptor::read(&mut ahead, "outcome")?;
        if descriptor.is(TransactionalState::CODE.into(), TransactionalState::SYMBOL)
            || descriptor.is(Received::CODE.into(), Received::SYMBOL)
        {
            return Err(descriptor.unexpected("a plain outcome"));
        }
        DeliveryState::decode(r).map(Self)
    }
}
