//! Addresses and what they stand for.

use crate::broker::Broker;
use crate::queue::{Lifetime, Queue};
use crate::{ProducerId, QueueId};
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

/// A topic. It is there while somebody is attached to it.
#[derive(Debug, Default)]
pub(crate) struct Topic {
    /// The private queues of its subscribers.
    pub(crate) subscriptions: BTreeSet<QueueId>,
    pub(crate) producers: BTreeSet<ProducerId>,
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
        if address.is_empty() || address.starts_with('$') {
            let text = format!("there is no node {address:?}");
            return Err(AmqpError::new(condition::NOT_FOUND, text));
        }
        if address.len() > ADDRESS_MAX {
            let text = format!("the address is longer than {ADDRESS_MAX} octets");
            return Err(AmqpError::new(condition::INVALID_FIELD, text));
        }
        let is_denied = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => address.starts_with(prefix),
            None => pattern == address,
        };
        if self.config.nodes.deny.iter().any(is_denied) {
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
        let id = self.queues.insert(Queue::new(address.clone(), lifetime, limits));
        self.addresses.insert(address, id);
        Ok(id)
    }

    /// A queue under a fresh address, for one link.
    pub(crate) fn create_dynamic(&mut self) -> Result<(String, QueueId), AmqpError> {
        let address = format!("dynamic-{}", uuid::Uuid::new_v4().simple());
        self.create_queue(&address, Lifetime::Link).map(|id| (address, id))
    }

    /// The private queue of a topic's subscriber.
    pub(crate) fn create_subscription(&mut self, topic: &str) -> Result<QueueId, AmqpError> {
        let name = format!("{topic}#{}", uuid::Uuid::new_v4().simple());
        let id = self.create_queue(&name, Lifetime::Link)?;
        let topic: Rc<str> = topic.into();
        if let Some(queue) = self.queues.get_mut(id) {
            queue.topic = Some(topic.clone());
        }
        self.topics.entry(topic).or_default().subscriptions.insert(id);
        Ok(id)
    }

    /// Makes a topic for its publisher, if it is not there.
    pub(crate) fn create_topic(&mut self, address: &str) -> Result<Rc<str>, AmqpError> {
        if let Some((address, _)) = self.topics.get_key_value(address) {
            return Ok(address.clone());
        }
        self.check_node_limit()?;
        let address: Rc<str> = address.into();
        self.topics.insert(address.clone(), Topic::default());
        Ok(address)
    }

    /// After a link of a topic has left.
    pub(crate) fn leave_topic(&mut self, address: &str, leave: impl FnOnce(&mut Topic)) {
        let Some(topic) = self.topics.get_mut(address) else { return };
        leave(topic);
        if topic.subscriptions.is_empty() && topic.producers.is_empty() {
            self.topics.remove(address);
        }
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
        if let Some(topic) = &queue.topic {
            self.leave_topic(topic, |topic| {
                topic.subscriptions.remove(&id);
            });
        }
        self.detach_all(&queue);
    }

    /// Links of a deleted queue end (2.8.15).
    fn detach_all(&mut self, queue: &Queue) {
        let error = || AmqpError::new(condition::RESOURCE_DELETED, "the node was deleted");
        let consumers = queue.consumers.iter().filter_map(|id| self.consumers.get(*id));
        let producers = queue.producers.iter().filter_map(|id| self.producers.get(*id));
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
}
