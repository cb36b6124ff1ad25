//! Peers attach links: what they ask for, what is in force.

use crate::broker::{Broker, End};
use crate::expiry::Expiry;
use crate::filter::Filter;
use crate::forward;
use crate::inbound::{Destination, Producer};
use crate::lifetime::Lifetime;
use crate::links::Container;
use crate::node::Node;
use crate::outbound::Consumer;
use crate::side::check_target;
use crate::subscription::{Subscriber, has};
use crate::termini::Owned;
use crate::{ConnId, ProducerId, QueueId, TerminusId};
use hopline_driver::engine::wire::definitions::SenderSettleMode;
use hopline_driver::engine::wire::outcome::{Accepted, Modified, Rejected, Released};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, Fields, Role, Symbol, condition};
use hopline_driver::engine::{Answer, LinkId};

const COPY: &str = "copy";
const OUTCOMES: [&str; 4] =
    [Accepted::SYMBOL, Rejected::SYMBOL, Released::SYMBOL, Modified::SYMBOL];

impl Broker {
    pub(crate) fn on_attach(&mut self, conn: ConnId, link: LinkId, attach: Attach) {
        self.take_name(conn, link, &attach.name, attach.role.peer());
        let is_ours = self.conns.get(conn).is_some_and(|conn| conn.forward.is_some());
        let result = match attach.role {
            _ if is_ours => Err(forward::one_way()),
            _ if attach.incomplete_unsettled => Err(incomplete()),
            Role::Sender => self.attach_producer(conn, link, attach),
            Role::Receiver => self.attach_consumer(conn, link, attach),
        };
        if let Err(error) = result {
            self.free_name(conn, link);
            let Some(conn) = self.conns.get_mut(conn) else { return };
            tracing::info!(%error, "attach refused");
            conn.io.engine_mut().refuse(link, error);
        }
    }

    fn container(&self, conn: ConnId) -> Result<Container, AmqpError> {
        let conn = self.conns.get(conn).map(|conn| conn.container.clone());
        conn.ok_or_else(|| AmqpError::new(condition::INTERNAL_ERROR, "the connection is gone"))
    }

    fn attach_producer(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        attach: Attach,
    ) -> Result<(), AmqpError> {
        let modes = (attach.snd_settle_mode, attach.rcv_settle_mode);
        let mut target = match attach.target.map(|target| *target) {
            Some(TargetKind::Target(target)) => target,
            Some(TargetKind::Coordinator(_)) => {
                return self.attach_coordinator(conn_id, link, attach.source, modes);
            }
            None => return Err(invalid("a sender's attach needs a target")),
        };
        let (destination, terminus) = self.destination((conn_id, link), &mut target)?;
        let outcomes = attach.source.as_ref().map_or(&[][..], |source| &source.outcomes);
        let may_reject = outcomes.is_empty() || has(outcomes, Rejected::SYMBOL);
        let producer = Producer {
            conn: conn_id,
            link,
            destination: destination.clone(),
            may_reject,
            terminus,
        };
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
        self.grant(id);
        Ok(())
    }

    pub(crate) fn join_as_producer(&mut self, id: ProducerId, destination: &Destination) {
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
    fn destination(
        &mut self,
        at: (ConnId, LinkId),
        target: &mut Target,
    ) -> Result<(Destination, Option<TerminusId>), AmqpError> {
        let is_nameless = self.container(at.0)?.is_nameless;
        let expiry = Expiry::in_force(&target.expiry_policy, target.timeout, is_nameless);
        (target.expiry_policy, target.timeout) = (expiry.symbol(), 0);
        target.durable = 0;
        let asked = std::mem::take(&mut target.capabilities);
        match (&target.address, target.dynamic) {
            (Some(_), true) => Err(invalid("a dynamic target must not have an address")),
            (None, true) => {
                let properties = target.dynamic_node_properties.take();
                let (dynamic, id) = self.open_dynamic(at, (&asked, properties), expiry)?;
                target.timeout = expiry.timeout_s;
                target.address = Some(dynamic.address);
                target.dynamic_node_properties = dynamic.properties;
                target.capabilities = dynamic.capabilities;
                Ok((dynamic.node.into(), Some(id)))
            }
            (None, false) => Ok((Destination::Anonymous, None)),
            (Some(address), false) => {
                check_target(address)?;
                let (node, capabilities) = self.find_node(address, &asked)?;
                target.capabilities = capabilities;
                let destination = match node {
                    Node::Queue(queue) => Destination::Queue(queue),
                    Node::Topic => {
                        Destination::Topic(self.create_topic(address, Lifetime::OnDemand)?)
                    }
                };
                Ok((destination, None))
            }
        }
    }

    fn attach_consumer(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        attach: Attach,
    ) -> Result<(), AmqpError> {
        let mut source = match &attach.source {
            Some(source) => Source::clone(source),
            None => self.look_up(&self.container(conn_id)?, &attach)?,
        };
        let filter = Filter::read(&mut source, conn_id)?;
        let (queue_id, terminus) = self.origin((conn_id, link), &attach.name, &mut source)?;
        // Looking without taking would never empty the queue of a subscription.
        let is_browser =
            source.distribution_mode.as_ref().is_some_and(|m| *m == COPY) && terminus.is_none();
        let choice = self.place_filter(queue_id, filter, is_browser)?;
        settle_source(&mut source, is_browser);
        let settled = attach.snd_settle_mode == SenderSettleMode::Settled;
        let consumer = Consumer {
            is_browser,
            choice,
            settled,
            default_outcome: source.default_outcome.clone(),
            outcomes: restricted(&source.outcomes),
            terminus,
            ..Consumer::new(conn_id, link, queue_id)
        };
        let has_choice = consumer.choice.is_some() && !is_browser;
        let id = self.consumers.insert(consumer);
        if let Some(queue) = self.queues.get_mut(queue_id) {
            queue.join(id);
            if has_choice {
                queue.choosy.insert(id);
            }
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

    /// The queue that a consumer takes from, and what of it outlives the link; `source` becomes
    /// what is in force.
    fn origin(
        &mut self,
        at: (ConnId, LinkId),
        link_name: &str,
        source: &mut Source,
    ) -> Result<(QueueId, Option<TerminusId>), AmqpError> {
        let container = self.container(at.0)?;
        let expiry = Expiry::in_force(&source.expiry_policy, source.timeout, container.is_nameless);
        let asked = source.clone();
        (source.expiry_policy, source.timeout) = (expiry.symbol(), 0);
        match (&asked.address, asked.dynamic) {
            (Some(_), true) => Err(invalid("a dynamic source must not have an address")),
            (None, true) => {
                let properties = source.dynamic_node_properties.take();
                let (dynamic, id) =
                    self.open_dynamic(at, (&asked.capabilities, properties), expiry)?;
                source.timeout = expiry.timeout_s;
                source.address = Some(dynamic.address);
                source.dynamic_node_properties = dynamic.properties;
                source.capabilities = dynamic.capabilities;
                match dynamic.node {
                    Owned::Queue(queue) => Ok((queue, Some(id))),
                    Owned::Topic(_) => Err(invalid("a dynamic source is a queue")),
                }
            }
            (None, false) => Err(invalid("a receiver's source needs an address")),
            (Some(address), false) => {
                self.check_owner(address, at.0)?;
                let (node, capabilities) = self.find_node(address, &asked.capabilities)?;
                source.capabilities = capabilities;
                match node {
                    Node::Queue(queue) => Ok((queue, None)),
                    Node::Topic => {
                        source.timeout = expiry.timeout_s;
                        let subscriber = Subscriber {
                            container: &container,
                            link_name,
                            topic: address,
                            asked: &asked,
                            expiry,
                        };
                        self.subscribe(&subscriber).map(|(queue, id)| (queue, Some(id)))
                    }
                }
            }
        }
    }

    /// Others than its owner only send to a temporary node (JMS mapping 5.3).
    fn check_owner(&self, address: &str, conn: ConnId) -> Result<(), AmqpError> {
        if self.only_for(address).is_none_or(|owner| owner == conn) {
            return Ok(());
        }
        let text = "a temporary node is consumed from on the connection that has made it";
        Err(AmqpError::new(condition::RESOURCE_LOCKED, text))
    }
}

/// What of a source is in force: nothing that outlives the broker; the outcomes that there are.
fn settle_source(source: &mut Source, is_browser: bool) {
    source.durable = 0;
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

fn invalid(text: &str) -> AmqpError {
    AmqpError::new(condition::INVALID_FIELD, text)
}

/// Whoever has left out unsettled deliveries wants them first, and nothing is kept of them here
/// (2.7.3).
fn incomplete() -> AmqpError {
    let text = "deliveries are not resumed here: attach with a null unsettled map";
    AmqpError::new(condition::NOT_IMPLEMENTED, text)
}
