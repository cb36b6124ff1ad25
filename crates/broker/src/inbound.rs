//! Deliveries from publishers: onto a queue, then accepted; credit from the room there is.

use crate::broker::{Broker, End};
use crate::config::{DurableMessages, Sampling};
use crate::forward::path;
use crate::message::Message;
use crate::node::Node;
use crate::queue::Queue;
use crate::side::check_target;
use crate::termini::Owned;
use crate::{ConnId, ProducerId, QueueId, TerminusId};
use hopline_driver::engine::wire::outcome::{Modified, Rejected};
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Fields, Symbol, Value, condition};
use hopline_driver::engine::{Delivery, LinkId};
use hopline_driver::timeline::Instant;
use std::rc::Rc;

/// Where a publisher's link leads.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Queue(QueueId),
    Topic(Rc<str>),
    /// Each message says by its `to`.
    Anonymous,
}

impl From<Owned> for Destination {
    fn from(node: Owned) -> Self {
        match node {
            Owned::Queue(queue) => Self::Queue(queue),
            Owned::Topic(topic) => Self::Topic(topic),
        }
    }
}

/// Where a message is to go.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    Queue(QueueId),
    /// To all subscribers there are when it is published.
    Topic(Rc<str>),
}

/// A link on which messages come in.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) conn: ConnId,
    pub(crate) link: LinkId,
    pub(crate) destination: Destination,
    /// Its source allows `rejected`; if not, the link ends where a message can't be taken.
    pub(crate) may_reject: bool,
    /// What outlives it, if anything does.
    pub(crate) terminus: Option<TerminusId>,
}

impl Broker {
    pub(crate) fn on_delivery(&mut self, conn: ConnId, mut delivery: Delivery, now: Instant) {
        let end = self.conns.get(conn).and_then(|conn| conn.links.get(delivery.link)).copied();
        let id = match end {
            Some(End::Producer(id)) => id,
            Some(End::Coordinator { .. }) => return self.on_control(conn, &delivery, now),
            _ => return,
        };
        if let Some(DeliveryState::Transactional(work)) = delivery.state.as_deref() {
            let txn_id = work.txn_id.clone();
            self.end_run();
            self.on_post((conn, id), &mut delivery, &txn_id, now);
            return self.grant(id);
        }
        self.go_on(conn, id);
        match self.take_in(id, &mut delivery, now) {
            Ok(()) if !delivery.settled => self.accept(&delivery),
            Ok(()) => {}
            Err(error) if error.condition == path::CIRCLE => {
                self.turn_away(conn, &delivery, &error);
            }
            Err(error) => self.refuse_delivery(conn, &delivery, error),
        }
    }

    /// A message that goes in a circle stays where it is, for other consumers there.
    fn turn_away(&mut self, conn: ConnId, delivery: &Delivery, error: &AmqpError) {
        self.losses.circling += 1;
        // Between topics that are forwarded both ways each message comes back once.
        match self.losses.circling {
            1 => tracing::warn!(%error, "not taken: it goes in a circle; others will be counted"),
            _ => tracing::debug!(%error, "not taken: it goes in a circle"),
        }
        if !delivery.settled {
            let modified = Modified { undeliverable_here: Some(true), ..Modified::default() };
            self.tell_outcome(conn, delivery, DeliveryState::Modified(Box::new(modified)));
        }
    }

    /// A publisher has used credit for nothing: it gets more of it all the same.
    pub(crate) fn on_credit_used(&mut self, conn: ConnId, link: LinkId) {
        match self.conns.get(conn).and_then(|conn| conn.links.get(link)).copied() {
            Some(End::Producer(id)) => self.grant(id),
            Some(End::Coordinator { .. }) => self.grant_control(conn, link),
            _ => {}
        }
    }

    fn take_in(
        &mut self,
        id: ProducerId,
        delivery: &mut Delivery,
        now: Instant,
    ) -> Result<(), AmqpError> {
        match self.read_in(id, delivery, now)? {
            (message, Route::Queue(queue)) => match self.pass(queue, message, now) {
                Some(message) => self.enqueue(queue, message),
                None => Ok(()),
            },
            (message, Route::Topic(topic)) => {
                let queues = self.subscriptions(&topic);
                self.check_room(&queues, &message)?;
                queues.into_iter().try_for_each(|queue| self.enqueue(queue, message.clone()))
            }
        }
    }

    /// The message of a delivery, which leaves it, and where it is to go.
    #[inline]
    pub(crate) fn read_in(
        &mut self,
        id: ProducerId,
        delivery: &mut Delivery,
        now: Instant,
    ) -> Result<(Box<Message>, Route), AmqpError> {
        let mut message = Message::read(delivery, self.wall_offset_ns)
            .map_err(|error| AmqpError::from(&error))?;
        if message.is_durable() {
            self.check_durable()?;
        }
        if let Some(path) = message.path() {
            path::check(path, &self.own_name)?;
        }
        let Some(producer) = self.producers.get(id) else { return Err(gone()) };
        message.publisher = Some(producer.conn);
        if let Some(conn) = self.conns.get(producer.conn) {
            if conn.forward.is_some() {
                message.passes(&self.own_name);
                message.comes_from(&conn.container.id);
            }
            if let Some(offset) = conn.io.engine().peer_clock(delivery.received) {
                message.set_tie(&conn.container.id, offset);
            }
        }
        let route = match &producer.destination {
            Destination::Queue(queue) => Route::Queue(*queue),
            Destination::Topic(topic) => Route::Topic(topic.clone()),
            Destination::Anonymous => self.relay(&message, delivery)?,
        };
        self.stamp_arrival(&mut message, now);
        Ok((message, route))
    }

    /// All subscriptions of a topic that want a message get it, or none does.
    fn check_room(&mut self, queues: &[QueueId], message: &Message) -> Result<(), AmqpError> {
        let mut queues = queues.iter().filter_map(|id| self.queues.get(*id));
        let full_one = queues.find(|queue| queue.is_overfull() && queue.wants(message));
        let Some(queue) = full_one else { return Ok(()) };
        self.losses.overfull += 1;
        Err(full(queue))
    }

    /// Queues are in memory only: whoever counts on more is refused, or the operator told (3.2.1).
    fn check_durable(&mut self) -> Result<(), AmqpError> {
        if self.config.nodes.durable_messages == DurableMessages::Reject {
            let text = "durable messages are refused: queues are in memory only";
            return Err(AmqpError::new(condition::PRECONDITION_FAILED, text));
        }
        if !std::mem::replace(&mut self.has_told_of_durable, true) {
            tracing::warn!(
                "a durable message was taken, but queues are in memory only: a restart loses it; \
                 to refuse such messages set nodes.durable_messages to \"reject\""
            );
        }
        Ok(())
    }

    /// Where the anonymous relay sends a message (anonymous terminus 1.0, 2.2).
    fn relay(&mut self, message: &Message, delivery: &Delivery) -> Result<Route, AmqpError> {
        let to = message.to_address().map_err(|error| AmqpError::from(&error))?;
        let to = to.unwrap_or_default();
        let resolved =
            check_target(&to).and_then(|()| self.resolve(&to, false)).map_err(|mut error| {
                let tag = bytes::Bytes::copy_from_slice(delivery.tag.as_slice());
                let key = Symbol::from_static("delivery-tag");
                error.info = Some(Fields(vec![(key, Value::Binary(tag))]));
                error
            })?;
        Ok(match resolved {
            Node::Queue(queue) => Route::Queue(queue),
            Node::Topic => Route::Topic(to.into()),
        })
    }

    fn stamp_arrival(&mut self, message: &mut Message, now: Instant) {
        if message.is_timed() {
            match self.config.timelines {
                Sampling::Off => message.stop_timeline(),
                _ => message.set_deserialized(self.clock.now()),
            }
        } else if self.samples() {
            message.start_timeline();
            message.set_deserialized(self.clock.now());
        }
        message.enqueued = now;
    }

    /// Puts a message on a queue.
    pub(crate) fn enqueue(&mut self, id: QueueId, message: Box<Message>) -> Result<(), AmqpError> {
        self.put(id, message, Queue::is_overfull)
    }

    /// Puts a message on a queue that was found to have room for it.
    pub(crate) fn append(&mut self, id: QueueId, message: Box<Message>) {
        // A queue that has gone in the meantime takes what was for it along.
        let _ = self.put(id, message, |_| false);
    }

    fn put(
        &mut self,
        id: QueueId,
        mut message: Box<Message>,
        is_full: impl Fn(&Queue) -> bool,
    ) -> Result<(), AmqpError> {
        let now = self.clock;
        let Some(queue) = self.queues.get_mut(id) else {
            return Err(gone());
        };
        if !queue.wants(&message) {
            return Ok(());
        }
        if is_full(queue) {
            self.losses.overfull += 1;
            return Err(full(queue));
        }
        if message.is_timed() {
            message.enqueued = now.now();
        }
        queue.push(message);
        if !std::mem::replace(&mut queue.is_listed, true) {
            self.listed.push(id);
        }
        Ok(())
    }

    pub(crate) fn tell_outcome(&mut self, conn: ConnId, delivery: &Delivery, state: DeliveryState) {
        self.tell_accepted();
        if let Some(conn) = self.conns.get_mut(conn) {
            // A link that is gone in the meantime needs no outcome.
            let _ = conn.io.engine_mut().settle(delivery.link, delivery.id, state);
        }
    }

    /// A delivery that can't be taken: rejected, or, where it can't be, the link ends.
    pub(crate) fn refuse_delivery(&mut self, conn: ConnId, delivery: &Delivery, error: AmqpError) {
        self.tell_accepted();
        tracing::info!(%error, settled = delivery.settled, "message refused");
        let end = self.conns.get(conn).and_then(|conn| conn.links.get(delivery.link));
        let may_reject = match end {
            Some(End::Producer(id)) => self.producers.get(*id).is_none_or(|it| it.may_reject),
            _ => true,
        };
        if !delivery.settled && may_reject {
            let rejected = Rejected { error: Some(Box::new(error)) };
            return self.tell_outcome(conn, delivery, DeliveryState::Rejected(rejected));
        }
        self.detach(conn, delivery.link, error);
    }

    /// Tops up a publisher's credit if half of what it may have is used.
    pub(crate) fn grant(&mut self, id: ProducerId) {
        let Some(producer) = self.producers.get(id) else { return };
        let Some(conn) = self.conns.get_mut(producer.conn) else { return };
        let wanted = self.config.limits.producer_credit;
        let left = conn.io.engine().credit(producer.link);
        if left > wanted / 2 {
            return;
        }
        let mut credit = wanted;
        let limit = |queue: &QueueId| {
            if let Some(queue) = self.queues.get_mut(*queue) {
                credit = credit.min(queue.credit(wanted));
                queue.is_tight |= credit < wanted;
            }
        };
        match &producer.destination {
            Destination::Queue(queue) => Some(queue).into_iter().for_each(limit),
            Destination::Topic(topic) => {
                let topic = self.topics.get(topic).into_iter();
                topic.flat_map(|topic| &topic.subscriptions).for_each(limit);
            }
            Destination::Anonymous => {}
        }
        if left < credit && left <= credit / 2 {
            let _ = conn.io.engine_mut().set_credit(producer.link, credit);
            let conn = producer.conn;
            self.mark_dirty(conn);
        }
    }

    /// There may be room again in a queue whose publishers got less credit than they wanted.
    pub(crate) fn loosen(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(id) else { return };
        if !queue.is_tight || !queue.has_eased() {
            return;
        }
        queue.is_tight = false;
        let topic = queue.topic.clone();
        for producer in Vec::from_iter(queue.producers.iter().copied()) {
            self.grant(producer);
        }
        if let Some(topic) = topic {
            self.grant_topic(&topic);
        }
    }

    /// A subscription holds the topic's publishers up no more.
    pub(crate) fn grant_topic(&mut self, topic: &str) {
        let Some(topic) = self.topics.get(topic) else { return };
        for producer in Vec::from_iter(topic.producers.iter().copied()) {
            self.grant(producer);
        }
    }
}

fn gone() -> AmqpError {
    AmqpError::new(condition::RESOURCE_DELETED, "the node was deleted")
}

fn full(queue: &Queue) -> AmqpError {
    let text = format!("the queue {:?} is full", queue.address);
    AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text)
}
