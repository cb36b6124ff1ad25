//! Sources and targets (part 3, 3.5) and the coordinator (part 4, 4.5.1).

use crate::codec::{Decode, Encode, Reader};
use crate::composite::Descriptor;
use crate::{DeliveryState, Fields, Symbol, WireError, composite};

composite! {
    /// Where a link's messages come from (3.5.3).
    Source = 0x28 "amqp:source:list" {
        /// The node.
        address: Option<String> => optional,
        /// What of it survives (0 none, 1 configuration, 2 unsettled state).
        durable: u32 => or(0),
        /// From when the timeout counts.
        expiry_policy: Symbol => or(Symbol::from_static("session-end")),
        /// Seconds.
        timeout: u32 => or(0),
        /// Make a node.
        dynamic: bool => or(false),
        /// What kind of node to make.
        dynamic_node_properties: Option<Fields> => optional,
        /// `move` or `copy`.
        distribution_mode: Option<Symbol> => optional,
        /// Which messages.
        filter: Option<Fields> => optional,
        /// What holds if a delivery is settled without an outcome.
        default_outcome: Option<DeliveryState> => optional,
        /// The outcomes that may be used.
        outcomes: Vec<Symbol> => multiple,
        /// Extensions.
        capabilities: Vec<Symbol> => multiple,
    }
}

composite! {
    /// Where a link's messages go (3.5.4).
    Target = 0x29 "amqp:target:list" {
        /// The node; none for the anonymous terminus.
        address: Option<String> => optional,
        /// What of it survives.
        durable: u32 => or(0),
        /// From when the timeout counts.
        expiry_policy: Symbol => or(Symbol::from_static("session-end")),
        /// Seconds.
        timeout: u32 => or(0),
        /// Make a node.
        dynamic: bool => or(false),
        /// What kind of node to make.
        dynamic_node_properties: Option<Fields> => optional,
        /// Extensions.
        capabilities: Vec<Symbol> => multiple,
    }
}

composite! {
    /// The target of a link that controls transactions (part 4, 4.5.1).
    Coordinator = 0x30 "amqp:coordinator:list" {
        /// What is wanted or offered.
        capabilities: Vec<Symbol> => multiple,
    }
}

impl Default for Source {
    fn default() -> Self {
        Self {
            address: None,
            durable: 0,
            expiry_policy: Symbol::from_static("session-end"),
            timeout: 0,
            dynamic: false,
            dynamic_node_properties: None,
            distribution_mode: None,
            filter: None,
            default_outcome: None,
            outcomes: Vec::new(),
            capabilities: Vec::new(),
        }
    }
}

impl Default for Target {
    fn default() -> Self {
        Self {
            address: None,
            durable: 0,
            expiry_policy: Symbol::from_static("session-end"),
            timeout: 0,
            dynamic: false,
            dynamic_node_properties: None,
            capabilities: Vec::new(),
        }
    }
}

impl Source {
    /// A source at a node.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..Self::default() }
    }
}

impl Target {
    /// A target at a node.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: Some(address.into()), ..Self::default() }
    }
}

/// What `attach.target` may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKind {
    /// A node, or the anonymous terminus.
    Target(Target),
    /// The coordinator of transactions.
    Coordinator(Coordinator),
}

impl Encode for TargetKind {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Target(target) => target.encode(out),
            Self::Coordinator(coordinator) => coordinator.encode(out),
        }
    }
}

impl Decode for TargetKind {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let descriptor = Descriptor::read(r, "target")?;
        if descriptor.is(Target::CODE.into(), Target::SYMBOL) {
            Target::decode_fields(r).map(Self::Target)
        } else if descriptor.is(Coordinator::CODE.into(), Coordinator::SYMBOL) {
            Coordinator::decode_fields(r).map(Self::Coordinator)
        } else {
            Err(descriptor.unexpected("a target"))
        }
    }
}

composite! {
    /// Begins a transaction (part 4, 4.5.2).
    Declare = 0x31 "amqp:declare:list" {
        /// A distributed transaction; refused here.
        global_id: Option<crate::Value> => optional,
    }
}

composite! {
    /// Ends a transaction (part 4, 4.5.3).
    Discharge = 0x32 "amqp:discharge:list" {
        /// Which.
        txn_id: bytes::Bytes => required,
        /// Roll it back.
        fail: bool => or(false),
    }
}
