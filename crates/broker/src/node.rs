//! Addresses and what they stand for.

use crate::broker::Broker;
use crate::lifetime::Lifetime;
use crate::queue::Queue;
use crate::side;
use crate::termini::Owned;
use crate::{ConnId, ConsumerId, ProducerId, QueueId, TerminusId};
use hopline_driver::engine::wire::{AmqpError, condition};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Octets of the longest address.
const ADDRESS_MAX: usize = 16 << 10;

/// What an address stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Each message goes to one consumer.
    Queue(QueueId),
    /// Each message goes to all subscribers there are.
    Topic,
}

/// A topic. It is there while it has a subscription or somebody is attached to it.
#[derive(Debug)]
pub(crate) struct Topic {
    /// The queues of its subscriptions.
    pub(crate) subscriptions: BTreeSet<QueueId>,
    pub(crate) producers: BTreeSet<ProducerId>,
    lifetime: Lifetime,
    /// What it was made for, while that is there.
    owner: Option<TerminusId>,
    /// Who alone may consume: it is a temporary topic (JMS mapping 5.3).
    only_for: Option<ConnId>,
}

impl Topic {
    fn new(lifetime: Lifetime) -> Self {
        Self {
            subscriptions: BTreeSet::new(),
            producers: BTreeSet::new(),
            lifetime,
            owner: None,
            only_for: None,
        }
    }

    fn is_unused(&self) -> bool {
        let has_links = !self.subscriptions.is_empty() || !self.producers.is_empty();
        self.lifetime.is_over(self.owner.is_some(), has_links, false)
    }
}

/// Whether one of the patterns fits: `*` at the end stands for any ending.
fn is_among(patterns: &[String], address: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => address.starts_with(prefix),
        None => pattern == address,
    })
}

impl Broker {
    /// The node behind an address; made if need be and allowed.
    pub(crate) fn resolve(&mut self, address: &str, wants_topic: bool) -> Result<Node, AmqpError> {
        self.check_address(address)?;
        if let Some(queue) = self.addresses.get(address) {
            return Ok(Node::Queue(*queue));
        }
        let nodes = &self.config.nodes;
        let is_topic = wants_topic
            || self.topics.contains_key(address)
            || nodes.topic_prefixes.iter().any(|prefix| address.starts_with(prefix.as_str()));
        if !nodes.auto_create && !is_topic {
            let text = format!("there is no queue {address:?}, and queues are not made on demand");
            return Err(AmqpError::new(condition::NOT_FOUND, text));
        }
        if is_topic {
            return Ok(Node::Topic);
        }
        self.create_queue(address, Lifetime::OnDemand).map(Node::Queue)
    }

    fn check_address(&self, address: &str) -> Result<(), AmqpError> {
        let is_side = address == side::ADDRESS && self.topics.contains_key(address);
        if address.is_empty() || address.starts_with('$') && !is_side {
            let text = format!("there is no node {address:?}");
            return Err(AmqpError::new(condition::NOT_FOUND, text));
        }
        if address.len() > ADDRESS_MAX {
            let text = format!("the address is longer than {ADDRESS_MAX} octets");
            return Err(AmqpError::new(condition::INVALID_FIELD, text));
        }
        if is_among(&self.config.nodes.deny, address) {
            let text = format!("the address {address:?} is not allowed here");
            return Err(AmqpError::new(condition::UNAUTHORIZED_ACCESS, text));
        }
        Ok(())
    }

    fn check_node_limit(&self) -> Result<(), AmqpError> {
        if self.queues.len() + self.topics.len() >= self.config.nodes.max_nodes {
            let text = "the broker has as many queues and topics as it may have";
            return Err(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        Ok(())
    }

    /// Makes a queue.
    pub(crate) fn create_queue(
        &mut self,
        address: &str,
        lifetime: Lifetime,
    ) -> Result<QueueId, AmqpError> {
        self.check_node_limit()?;
        let address: Rc<str> = address.into();
        let nodes = &self.config.nodes;
        let limits = (nodes.max_messages, nodes.max_octets);
        let mut queue = Queue::new(address.clone(), lifetime, limits);
        queue.has_priorities = is_among(&nodes.priority_queues, &address);
        let is_shared = matches!(lifetime, Lifetime::Permanent | Lifetime::OnDemand);
        let has_groups = is_shared && is_among(&nodes.group_queues, &address);
        queue.groups = has_groups.then(Box::default);
        let id = self.queues.insert(queue);
        self.addresses.insert(address, id);
        Ok(id)
    }

    /// A node under a fresh address.
    pub(crate) fn create_dynamic(
        &mut self,
        is_topic: bool,
        lifetime: Lifetime,
    ) -> Result<(String, Owned), AmqpError> {
        let address = format!("dynamic-{}", uuid::Uuid::new_v4().simple());
        let node = match is_topic {
            true => Owned::Topic(self.create_topic(&address, lifetime)?),
            false => Owned::Queue(self.create_queue(&address, lifetime)?),
        };
        Ok((address, node))
    }

    /// The node belongs to a terminus, and maybe only that connection may consume from it.
    pub(crate) fn set_owner(&mut self, node: &Owned, id: TerminusId, only_for: Option<ConnId>) {
        match node {
            Owned::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(*queue) {
                    (queue.owner, queue.only_for) = (Some(id), only_for);
                }
            }
            Owned::Topic(topic) => {
                if let Some(topic) = self.topics.get_mut(topic) {
                    (topic.owner, topic.only_for) = (Some(id), only_for);
                }
            }
        }
    }

    /// Whose temporary node an address is.
    pub(crate) fn only_for(&self, address: &str) -> Option<ConnId> {
        match self.addresses.get(address) {
            Some(queue) => self.queues.get(*queue)?.only_for,
            None => self.topics.get(address)?.only_for,
        }
    }

    /// The queue of a topic's subscription.
    pub(crate) fn create_subscription(
        &mut self,
        topic: &str,
        lifetime: Lifetime,
    ) -> Result<QueueId, AmqpError> {
        let name = format!("{topic}#{}", uuid::Uuid::new_v4().simple());
        let id = self.create_queue(&name, lifetime)?;
        let topic: Rc<str> = topic.into();
        if let Some(queue) = self.queues.get_mut(id) {
            queue.topic = Some(topic.clone());
        }
        let known = self.topics.entry(topic).or_insert_with(|| Topic::new(Lifetime::OnDemand));
        known.subscriptions.insert(id);
        Ok(id)
    }

    /// Makes a topic for its publisher, if it is not there.
    pub(crate) fn create_topic(
        &mut self,
        address: &str,
        lifetime: Lifetime,
    ) -> Result<Rc<str>, AmqpError> {
        if let Some((address, _)) = self.topics.get_key_value(address) {
            return Ok(address.clone());
        }
        self.check_node_limit()?;
        let address: Rc<str> = address.into();
        self.topics.insert(address.clone(), Topic::new(lifetime));
        Ok(address)
    }

    /// After a link of a topic has left.
    pub(crate) fn leave_topic(&mut self, address: &str, leave: impl FnOnce(&mut Topic)) {
        let Some(topic) = self.topics.get_mut(address) else { return };
        leave(topic);
        if topic.is_unused() {
            self.delete_topic(address);
        }
    }

    fn delete_topic(&mut self, address: &str) {
        let Some(topic) = self.topics.remove(address) else { return };
        for queue in topic.subscriptions {
            self.delete_queue(queue);
        }
        self.detach_all(&BTreeSet::new(), &topic.producers);
    }

    /// The queues that a message for `topic` goes to.
    pub(crate) fn subscriptions(&self, topic: &str) -> Vec<QueueId> {
        let topic = self.topics.get(topic);
        topic.map(|topic| topic.subscriptions.iter().copied().collect()).unwrap_or_default()
    }

    /// Removes a queue and what is in it.
    pub(crate) fn delete_queue(&mut self, id: QueueId) {
        let Some(queue) = self.queues.remove(id) else { return };
        self.addresses.remove(&queue.address);
        if let Some(owner) = queue.owner {
            self.termini.remove(owner);
        }
        if let Some(topic) = &queue.topic {
            self.leave_topic(topic, |topic| {
                topic.subscriptions.remove(&id);
            });
            if queue.is_tight {
                self.grant_topic(topic);
            }
        }
        self.detach_all(&queue.consumers, &queue.producers);
    }

    /// Links of a deleted node end (2.8.15).
    fn detach_all(&mut self, consumers: &BTreeSet<ConsumerId>, producers: &BTreeSet<ProducerId>) {
        let error = || AmqpError::new(condition::RESOURCE_DELETED, "the node was deleted");
        let consumers = consumers.iter().filter_map(|id| self.consumers.get(*id));
        let producers = producers.iter().filter_map(|id| self.producers.get(*id));
        let links: Vec<_> = consumers
            .map(|consumer| (consumer.conn, consumer.link))
            .chain(producers.map(|producer| (producer.conn, producer.link)))
            .collect();
        for (conn, link) in links {
            if let Some(conn) = self.conns.get_mut(conn) {
                conn.io.engine_mut().detach(link, true, Some(error()));
            }
            self.forget_link(conn, link, true);
            self.mark_dirty(conn);
        }
    }

    /// After a link has left: a queue that nobody would miss goes.
    pub(crate) fn drop_if_unused(&mut self, id: QueueId) {
        if self.queues.get(id).is_some_and(Queue::is_unused) {
            self.delete_queue(id);
        }
    }

    /// A terminus is over: its node goes, unless that has reason to stay.
    pub(crate) fn delete_terminus(&mut self, id: TerminusId) {
        let Some(terminus) = self.termini.remove(id) else { return };
        match terminus.node {
            Owned::Queue(id) => {
                if let Some(queue) = self.queues.get_mut(id) {
                    queue.owner = None;
                }
                self.drop_if_unused(id);
            }
            Owned::Topic(address) => self.leave_topic(&address, |topic| topic.owner = None),
        }
    }

    /// Termini whose time is over go.
    pub(crate) fn expire_termini(&mut self) {
        let now = self.clock.now();
        while let Some(id) = self.termini.due(now) {
            self.delete_terminus(id);
        }
    }
}
