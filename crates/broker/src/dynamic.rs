//! Nodes that are made for a link (part 3, 3.5.3, 3.5.4), and what capabilities say of a node (JMS
//! mapping 5.2 and 5.3).

use crate::broker::Broker;
use crate::expiry::Expiry;
use crate::lifetime::Lifetime;
use crate::node::Node;
use crate::subscription::{GLOBAL, SHARED, has};
use crate::termini::{Kind, Owned, Terminus};
use crate::{ConnId, TerminusId};
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::{AmqpError, Fields, Role, Symbol, condition};

const QUEUE: &str = "queue";
const TOPIC: &str = "topic";
const TEMPORARY_QUEUE: &str = "temporary-queue";
const TEMPORARY_TOPIC: &str = "temporary-topic";

/// A node that was made for a link, as its attach is answered.
#[derive(Clone, Debug)]
pub(crate) struct Dynamic {
    pub(crate) address: String,
    pub(crate) node: Owned,
    pub(crate) properties: Option<Fields>,
    pub(crate) capabilities: Vec<Symbol>,
}

impl Broker {
    /// Makes a node for a link, or finds the one that the link has left.
    ///
    /// # Errors
    /// Properties that can't be had, or too many nodes.
    pub(crate) fn open_dynamic(
        &mut self,
        (conn, link): (ConnId, LinkId),
        (capabilities, mut properties): (&[Symbol], Option<Fields>),
        expiry: Expiry,
    ) -> Result<(Dynamic, TerminusId), AmqpError> {
        let lifetime = Lifetime::of_dynamic(&mut properties)?;
        let Some(key) = self.conns.get(conn).and_then(|conn| conn.key(link)) else {
            return Err(AmqpError::new(condition::INTERNAL_ERROR, "the link is gone"));
        };
        if let Some((id, Terminus { kind: Kind::Dynamic(dynamic), .. })) = self.termini.find(&key) {
            let dynamic = Dynamic::clone(dynamic);
            let only_for = is_temporary(&dynamic.capabilities).then_some(conn);
            self.set_owner(&dynamic.node, id, only_for);
            self.termini.join(id, expiry);
            return Ok((dynamic, id));
        }
        self.displace(&key)?;
        // Who takes from a dynamic source takes from a queue, whoever else is there.
        let is_topic = key.role == Role::Receiver && wants_topic(capabilities);
        let (address, node) = self.create_dynamic(is_topic, lifetime)?;
        let capabilities = in_force(capabilities, is_topic, is_temporary(capabilities));
        let only_for = is_temporary(&capabilities).then_some(conn);
        let dynamic = Dynamic { address, node: node.clone(), properties, capabilities };
        let kind = Kind::Dynamic(Box::new(dynamic.clone()));
        let id = self.termini.insert(Terminus::new(key, node, kind, expiry));
        self.set_owner(&dynamic.node, id, only_for);
        Ok((dynamic, id))
    }

    /// The node at an address that a link names, and the capabilities that hold there.
    ///
    /// # Errors
    /// There is none and none is made, or the address can't be used.
    pub(crate) fn find_node(
        &mut self,
        address: &str,
        capabilities: &[Symbol],
    ) -> Result<(Node, Vec<Symbol>), AmqpError> {
        let is_there = self.addresses.contains_key(address) || self.topics.contains_key(address);
        if is_temporary(capabilities) && !is_there {
            let text = format!("there is no temporary node {address:?}: one is made dynamically");
            return Err(AmqpError::new(condition::NOT_FOUND, text));
        }
        let node = self.resolve(address, wants_topic(capabilities))?;
        let is_temporary = self.only_for(address).is_some();
        Ok((node, in_force(capabilities, node == Node::Topic, is_temporary)))
    }
}

fn wants_topic(capabilities: &[Symbol]) -> bool {
    has(capabilities, TOPIC) || has(capabilities, TEMPORARY_TOPIC)
}

fn is_temporary(capabilities: &[Symbol]) -> bool {
    has(capabilities, TEMPORARY_QUEUE) || has(capabilities, TEMPORARY_TOPIC)
}

/// The capabilities that were asked for and hold.
fn in_force(asked: &[Symbol], is_topic: bool, is_temporary: bool) -> Vec<Symbol> {
    let holds = |capability: &&Symbol| match capability.as_str() {
        QUEUE => !is_topic,
        TOPIC => is_topic,
        TEMPORARY_QUEUE => is_temporary && !is_topic,
        TEMPORARY_TOPIC => is_temporary && is_topic,
        SHARED => is_topic,
        GLOBAL => is_topic && has(asked, SHARED),
        _ => false,
    };
    asked.iter().filter(holds).cloned().collect()
}
