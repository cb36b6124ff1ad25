//! What consumers say of their deliveries, and what becomes of those of links that left.

use crate::broker::{Broker, End};
use crate::dead_letter::Death;
use crate::inbound::Destination;
use crate::message::Message;
use crate::transaction::{Retirement, retirement};
use crate::{ConnId, ConsumerId, ProducerId, QueueId, TerminusId};
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::outcome::Modified;
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Serial, condition};

impl Broker {
    pub(crate) fn on_outcome(
        &mut self,
        conn_id: ConnId,
        (link, delivery): (LinkId, Serial),
        token: u64,
        state: Option<DeliveryState>,
        settled: bool,
    ) {
        let Some(conn) = self.conns.get_mut(conn_id) else { return };
        let Some(End::Consumer(id)) = conn.links.get(link).copied() else { return };
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        if let Some(DeliveryState::Transactional(work)) = state {
            return self.on_retirement(id, (delivery, token), work, settled);
        }
        if settled && state == Some(DeliveryState::Accepted) && consumer.is_plain() {
            return self.forget(id, token);
        }
        // What is none of the four outcomes says nothing about a message.
        let chosen = state.filter(|state| state.symbol().is_some());
        match retirement(&mut self.transactions, consumer, token, chosen.as_ref(), settled) {
            Retirement::None => {}
            Retirement::Stands => return,
            Retirement::Contradicted(error) => return self.detach(conn_id, link, error),
        }
        if !settled && chosen.is_none() {
            return;
        }
        if let Some(state) = chosen.as_ref().filter(|state| !consumer.may_choose(state)) {
            return self.refuse_outcome(conn_id, link, state);
        }
        // Without any outcome nothing says that the message was processed: it is not lost.
        let state =
            chosen.or_else(|| consumer.default_outcome.clone()).unwrap_or(DeliveryState::Released);
        if !settled {
            let _ = conn.io.engine_mut().settle_sent(link, delivery, Some(state.clone()));
        }
        let message =
            usize::try_from(token).ok().and_then(|key| consumer.unsettled.try_remove(key));
        let (queue, is_browser) = (consumer.queue, consumer.is_browser);
        if let Some(message) = message.filter(|_| !is_browser) {
            self.apply(queue, id, message, state);
        }
    }

    /// What was out for delivery to a consumer that takes part in no transaction is accepted.
    fn forget(&mut self, id: ConsumerId, token: u64) {
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        let message =
            usize::try_from(token).ok().and_then(|key| consumer.unsettled.try_remove(key));
        if let Some(message) = message
            && let Some(queue) = self.queues.get_mut(consumer.queue)
        {
            queue.forget(&message);
            if queue.awaits_room() {
                let queue = consumer.queue;
                self.list(queue);
            }
        }
    }

    /// An outcome that the link's source rules out ends the link; what it held goes back.
    pub(crate) fn refuse_outcome(&mut self, conn_id: ConnId, link: LinkId, state: &DeliveryState) {
        let outcome = state.symbol().unwrap_or_default();
        let text = format!("{outcome} is not among the outcomes of the link's source");
        if let Some(conn) = self.conns.get_mut(conn_id) {
            let error = AmqpError::new(condition::NOT_ALLOWED, text);
            conn.io.engine_mut().detach(link, true, Some(error));
        }
        self.forget_link(conn_id, link, false);
    }

    /// An outcome holds for a message that was out for delivery.
    pub(crate) fn apply(
        &mut self,
        queue_id: QueueId,
        consumer: ConsumerId,
        mut message: Box<Message>,
        state: DeliveryState,
    ) {
        match state {
            DeliveryState::Rejected(rejected) => {
                tracing::debug!(error = ?rejected.error, "message rejected");
                self.losses.rejected += 1;
                self.give_up(queue_id, message, Death::Rejected(rejected.error));
            }
            DeliveryState::Released => {
                message.returned(false);
                self.rest_forward(consumer);
                self.put_back(queue_id, message);
            }
            DeliveryState::Modified(modified) => {
                let Modified { delivery_failed, undeliverable_here, message_annotations } =
                    *modified;
                message.returned(delivery_failed.unwrap_or(false));
                if undeliverable_here.unwrap_or(false) {
                    if self.is_alone(consumer) {
                        return self.give_up(queue_id, message, Death::Undeliverable);
                    }
                    message.excluded.retain(|other| self.consumers.contains_key(*other));
                    message.excluded.push(consumer);
                    self.make_choosy(consumer);
                }
                if let Some(fields) = message_annotations {
                    message.merge(fields);
                }
                self.put_back(queue_id, message);
            }
            _ => {
                if let Some(queue) = self.queues.get_mut(queue_id) {
                    queue.forget(&message);
                    if queue.awaits_room() {
                        self.list(queue_id);
                    }
                }
            }
        }
    }

    fn is_alone(&self, id: ConsumerId) -> bool {
        let consumer = self.consumers.get(id);
        let queue = consumer.and_then(|consumer| self.queues.get(consumer.queue));
        consumer.zip(queue).is_some_and(|(consumer, queue)| consumer.is_alone_at(queue))
    }

    /// A message that was out for delivery leaves its queue for the dead letters.
    pub(crate) fn give_up(&mut self, id: QueueId, message: Box<Message>, why: Death) {
        let Some(queue) = self.queues.get_mut(id) else { return };
        queue.forget(&message);
        let address = queue.address.clone();
        self.dead_letter(&address, message, why);
        self.list(id);
    }

    /// A message goes back to its place, or to the dead letters if it failed too often.
    pub(crate) fn put_back(&mut self, id: QueueId, mut message: Box<Message>) {
        message.settle_down();
        let max = self.config.nodes.max_delivery_count;
        if max.is_some_and(|max| message.delivery_count >= max) {
            return self.give_up(id, message, Death::Failed);
        }
        let Some(queue) = self.queues.get_mut(id) else { return };
        queue.put_back(message);
        self.list(id);
    }

    /// A link is ended for a reason.
    pub(crate) fn detach(&mut self, conn_id: ConnId, link: LinkId, error: AmqpError) {
        if let Some(conn) = self.conns.get_mut(conn_id) {
            conn.io.engine_mut().detach(link, true, Some(error));
        }
        self.forget_link(conn_id, link, true);
        self.mark_dirty(conn_id);
    }

    /// A link is gone. What it held goes back; the attempt counts as failed unless the peer left
    /// in good order. What outlives links is kept as its expiry says.
    pub(crate) fn forget_link(&mut self, conn_id: ConnId, link: LinkId, orderly: bool) {
        let named = self.free_name(conn_id, link);
        let Some(conn) = self.conns.get_mut(conn_id) else { return };
        let terminus = match conn.links.remove(link) {
            Some(End::Producer(id)) => self.forget_producer(id),
            Some(End::Consumer(id)) => self.forget_consumer(id, orderly),
            Some(End::Coordinator { .. }) => {
                self.abandon_transactions(conn_id, link);
                None
            }
            None => None,
        };
        if let (Some(id), Some(named)) = (terminus, named) {
            self.termini.leave(id, (conn_id, named.session), self.clock.now());
            self.expire_termini();
        }
    }

    /// The peer has detached a link; the error is for our answer.
    pub(crate) fn on_detached(
        &mut self,
        conn: ConnId,
        link: LinkId,
        (is_closed, orderly): (bool, bool),
    ) -> Option<AmqpError> {
        let terminus = self.terminus_of(conn, link).filter(|_| is_closed);
        self.forget_link(conn, link, orderly);
        self.close_terminus(terminus?)
    }

    fn terminus_of(&self, conn: ConnId, link: LinkId) -> Option<TerminusId> {
        match self.conns.get(conn)?.links.get(link)? {
            End::Producer(id) => self.producers.get(*id)?.terminus,
            End::Consumer(id) => self.consumers.get(*id)?.terminus,
            End::Coordinator { .. } => None,
        }
    }

    fn forget_producer(&mut self, id: ProducerId) -> Option<TerminusId> {
        let producer = self.producers.remove(id)?;
        match producer.destination {
            Destination::Queue(queue_id) => {
                if let Some(queue) = self.queues.get_mut(queue_id) {
                    queue.producers.remove(&id);
                }
                self.drop_if_unused(queue_id);
            }
            Destination::Topic(topic) => self.leave_topic(&topic, |topic| {
                topic.producers.remove(&id);
            }),
            Destination::Anonymous => {}
        }
        producer.terminus
    }

    fn forget_consumer(&mut self, id: ConsumerId, orderly: bool) -> Option<TerminusId> {
        let mut consumer = self.consumers.remove(id)?;
        // That a network breaks says nothing of the messages.
        let orderly = orderly || consumer.is_forward;
        self.orphan_claims(&mut consumer, orderly);
        let queue_id = consumer.queue;
        if let Some(queue) = self.queues.get_mut(queue_id) {
            queue.leave(id);
        }
        if !consumer.is_browser {
            let mut messages: Vec<_> = consumer.unsettled.drain().collect();
            // Dead letters keep their order too.
            messages.sort_by_key(|message| message.seq);
            for mut message in messages {
                message.returned(!orderly);
                message.excluded.retain(|other| *other != id);
                self.put_back(queue_id, message);
            }
        }
        self.drop_if_unused(queue_id);
        consumer.terminus
    }
}
