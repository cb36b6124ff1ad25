//! Peers attach links: what they ask for, what is in force.

use crate::broker::{Broker, End};
use crate::inbound::{Destination, Producer};
use crate::node::Node;
use crate::outbound::Consumer;
use crate::{ConnId, ProducerId, QueueId};
use hopline_driver::engine::wire::definitions::SenderSettleMode;
use hopline_driver::engine::wire::outcome::{Accepted, Modified, Rejected, Released};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, Fields, Role, Symbol, condition};
use hopline_driver::engine::{Answer, LinkId};
use slab::Slab;

const TOPIC: &str = "topic";
const QUEUE: &str = "queue";
const COPY: &str = "copy";
const OUTCOMES: [&str; 4] =
    [Accepted::SYMBOL, Rejected::SYMBOL, Released::SYMBOL, Modified::SYMBOL];

impl Broker {
    pub(crate) fn on_attach(&mut self, conn: ConnId, link: LinkId, attach: Attach) {
        let result = match attach.role {
            Role::Sender => self.attach_producer(conn, link, attach),
            Role::Receiver => self.attach_consumer(conn, link, attach),
        };
        if let Err(error) = result
            && let Some(conn) = self.conns.get_mut(conn)
        {
            tracing::info!(%error, "attach refused");
            conn.io.engine_mut().refuse(link, error);
        }
    }

    fn attach_producer(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        attach: Attach,
    ) -> Result<(), AmqpError> {
        let mut target = match attach.target.map(|target| *target) {
            Some(TargetKind::Target(target)) => target,
            Some(TargetKind::Coordinator(_)) => {
                let text = "transactions are not offered";
                return Err(AmqpError::new(condition::NOT_IMPLEMENTED, text));
            }
            None => return Err(invalid("a sender's attach needs a target")),
        };
        let (destination, owns_queue) = self.destination(&mut target)?;
        let producer =
            Producer { conn: conn_id, link, destination: destination.clone(), owns_queue };
        let id = self.producers.insert(producer);
        self.join_as_producer(id, &destination);
        let Some(conn) = self.conns.get_mut(conn_id) else { return Ok(()) };
        conn.links.insert(link, End::Producer(id));
        let answer = Answer {
            source: attach.source.map(|source| *source),
            target: Some(TargetKind::Target(target)),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
        };
        if conn.io.engine_mut().accept(link, answer).is_err() {
            self.forget_link(conn_id, link, true);
            return Ok(());
        }
        self.grant(id, true);
        Ok(())
    }

    fn join_as_producer(&mut self, id: ProducerId, destination: &Destination) {
        match destination {
            Destination::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(*queue) {
                    queue.producers.insert(id);
                }
            }
            Destination::Topic(topic) => {
                if let Some(topic) = self.topics.get_mut(topic) {
                    topic.producers.insert(id);
                }
            }
            Destination::Anonymous => {}
        }
    }

    /// Where a publisher's link leads; `target` becomes what is in force.
    fn destination(&mut self, target: &mut Target) -> Result<(Destination, bool), AmqpError> {
        let asked = std::mem::take(&mut target.capabilities);
        match (&target.address, target.dynamic) {
            (Some(_), true) => Err(invalid("a dynamic target must not have an address")),
            (None, true) => {
                let (address, queue) = self.create_dynamic()?;
                target.address = Some(address);
                Ok((Destination::Queue(queue), true))
            }
            (None, false) => Ok((Destination::Anonymous, false)),
            (Some(address), false) => {
                let node = self.resolve(address, has(&asked, TOPIC))?;
                target.capabilities = in_force(&asked, node);
                let destination = match node {
                    Node::Queue(queue) => Destination::Queue(queue),
                    Node::Topic => Destination::Topic(self.create_topic(address)?),
                };
                Ok((destination, false))
            }
        }
    }

    fn attach_consumer(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        attach: Attach,
    ) -> Result<(), AmqpError> {
        let Some(mut source) = attach.source.map(|source| *source) else {
            return Err(invalid("a receiver's attach needs a source"));
        };
        let (queue_id, owns_queue) = self.origin(&mut source)?;
        // A subscriber is alone on its queue: looking without taking would never empty it.
        let is_browser =
            source.distribution_mode.as_ref().is_some_and(|m| *m == COPY) && !owns_queue;
        settle_source(&mut source, is_browser);
        let settled = attach.snd_settle_mode == SenderSettleMode::Settled;
        let consumer = Consumer {
            conn: conn_id,
            link,
            queue: queue_id,
            is_browser,
            cursor: 0,
            settled,
            default_outcome: source.default_outcome.clone(),
            outcomes: restricted(&source.outcomes),
            unsettled: Slab::new(),
            next_tag: 0,
            is_ready: false,
            is_draining: false,
            owns_queue,
        };
        let id = self.consumers.insert(consumer);
        if let Some(queue) = self.queues.get_mut(queue_id) {
            queue.join(id);
        }
        let Some(conn) = self.conns.get_mut(conn_id) else { return Ok(()) };
        conn.links.insert(link, End::Consumer(id));
        let answer = Answer {
            source: Some(source),
            target: attach.target.map(|target| *target),
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
        };
        if conn.io.engine_mut().accept(link, answer).is_err() {
            self.forget_link(conn_id, link, true);
        }
        Ok(())
    }

    /// The queue that a consumer takes from, and whether it was made for this link; `source`
    /// becomes what is in force.
    fn origin(&mut self, source: &mut Source) -> Result<(QueueId, bool), AmqpError> {
        let asked = std::mem::take(&mut source.capabilities);
        match (&source.address, source.dynamic) {
            (Some(_), true) => Err(invalid("a dynamic source must not have an address")),
            (None, true) => {
                let (address, queue) = self.create_dynamic()?;
                source.address = Some(address);
                Ok((queue, true))
            }
            (None, false) => Err(invalid("a receiver's source needs an address")),
            (Some(address), false) => {
                let node = self.resolve(address, has(&asked, TOPIC))?;
                source.capabilities = in_force(&asked, node);
                match node {
                    Node::Queue(queue) => Ok((queue, false)),
                    Node::Topic => self.create_subscription(address).map(|queue| (queue, true)),
                }
            }
        }
    }
}

/// What of a source is in force: no filters, no durability; the outcomes that there are.
fn settle_source(source: &mut Source, is_browser: bool) {
    source.filter = None;
    source.durable = 0;
    source.timeout = 0;
    let mode = if is_browser { COPY } else { "move" };
    source.distribution_mode = Some(Symbol::from_static(mode));
    source.default_outcome = source.default_outcome.take().filter(|it| it.symbol().is_some());
    source.outcomes.retain(|outcome| OUTCOMES.contains(&outcome.as_str()));
    if source.outcomes.is_empty() {
        source.outcomes = OUTCOMES.map(Symbol::from_static).to_vec();
    }
}

/// The outcomes that a consumer may choose, unless it may choose any.
fn restricted(outcomes: &[Symbol]) -> Option<Box<[Symbol]>> {
    let all = OUTCOMES.iter().all(|name| outcomes.iter().any(|outcome| *outcome == **name));
    (!all).then(|| outcomes.into())
}

fn has(capabilities: &[Symbol], name: &str) -> bool {
    capabilities.iter().any(|capability| *capability == *name)
}

/// The node capabilities that were asked for and hold (JMS mapping 5.2).
fn in_force(asked: &[Symbol], node: Node) -> Vec<Symbol> {
    let name = match node {
        Node::Queue(_) => QUEUE,
        Node::Topic => TOPIC,
    };
    asked.iter().filter(|capability| **capability == *name).cloned().collect()
}

fn invalid(text: &str) -> AmqpError {
    AmqpError::new(condition::INVALID_FIELD, text)
}
