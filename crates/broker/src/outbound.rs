//! Messages to consumers, as far as credit, window and socket allow.

use crate::broker::{Broker, Conn, End};
use crate::choice::{Choice, SLICE};
use crate::dead_letter::Death;
use crate::message::Message;
use crate::queue::Queue;
use crate::{ConnId, ConsumerId, QueueId, TerminusId, TransactionId};
use hopline_driver::engine::wire::{DeliveryState, DeliveryTag, Serial, Symbol};
use hopline_driver::engine::{CommandError, LinkId, Outgoing};
use hopline_driver::timeline::{Instant, Wait};
use slab::Slab;
use slotmap::SlotMap;
use std::collections::HashMap;

/// Unsettled messages of a consumer that share the buffers they were read into. What is beyond
/// these is copied, so that a consumer that settles little does not keep buffers of which little
/// is of use.
const SHARED_MAX: usize = 4096;

/// The token of all that a browser gets: the queue keeps the messages, and nothing is kept here.
const BROWSED: u64 = u64::MAX;

/// A link on which messages go out.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) conn: ConnId,
    pub(crate) link: LinkId,
    pub(crate) queue: QueueId,
    /// It looks at messages and leaves them (distribution-mode `copy`).
    pub(crate) is_browser: bool,
    /// It leads to another broker.
    pub(crate) is_forward: bool,
    /// The number of the message that a browser looks at next.
    pub(crate) cursor: u64,
    /// It does not take just any message.
    pub(crate) choice: Option<Box<Choice>>,
    /// It has not looked at all messages that there are.
    pub(crate) is_behind: bool,
    /// Deliveries are sent settled.
    pub(crate) settled: bool,
    /// What holds if a delivery is settled without an outcome.
    pub(crate) default_outcome: Option<DeliveryState>,
    /// The outcomes that it may choose; `None`: all.
    pub(crate) outcomes: Option<Box<[Symbol]>>,
    /// Messages out for delivery; the key is the engine's token.
    pub(crate) unsettled: Slab<Box<Message>>,
    /// Which of them transactions have work on, and where in its list of claims.
    pub(crate) claims: HashMap<usize, (TransactionId, usize)>,
    /// The transaction that its credit belongs to.
    pub(crate) acquires: Option<TransactionId>,
    /// That transaction has ended: nothing is sent before the next flow.
    pub(crate) is_barred: bool,
    pub(crate) next_tag: u64,
    /// It is among the queue's ready ones.
    pub(crate) is_ready: bool,
    /// It is among those that asked to have their credit used up.
    pub(crate) is_draining: bool,
    /// What outlives it, if anything does.
    pub(crate) terminus: Option<TerminusId>,
}

impl Consumer {
    /// A link of a queue, which takes any message and may choose any outcome.
    pub(crate) fn new(conn: ConnId, link: LinkId, queue: QueueId) -> Self {
        Self {
            conn,
            link,
            queue,
            is_browser: false,
            is_forward: false,
            cursor: 0,
            choice: None,
            is_behind: false,
            settled: false,
            default_outcome: None,
            outcomes: None,
            unsettled: Slab::new(),
            claims: HashMap::new(),
            acquires: None,
            is_barred: false,
            next_tag: 0,
            is_ready: false,
            is_draining: false,
            terminus: None,
        }
    }

    /// Whether no transaction has work on what is out, and any outcome may be chosen.
    pub(crate) fn is_plain(&self) -> bool {
        self.claims.is_empty() && self.outcomes.is_none()
    }

    /// Why it can't be sent to now; `None`: it can.
    pub(crate) fn block(&self, conn: &Conn) -> Option<Wait> {
        match self.is_barred {
            true => Some(Wait::NoCredit),
            false => conn.io.engine().send_block(self.link),
        }
    }

    /// Whether whatever is first in its queue can go to it as it is.
    fn takes_any(&self) -> bool {
        let is_special = self.is_forward || self.is_barred || self.acquires.is_some();
        !is_special && self.choice.is_none()
    }

    /// A message is out for delivery.
    fn hold(&mut self, mut message: Box<Message>) {
        if self.unsettled.len() >= SHARED_MAX {
            message.settle_down();
        }
        self.unsettled.insert(message);
    }

    /// Whether nobody else would take a message that it can't have: the subscription of a topic
    /// that is forwarded is for that forward only.
    pub(crate) const fn is_alone_at(&self, queue: &Queue) -> bool {
        self.is_forward && queue.topic.is_some()
    }

    /// Whether the source allows an outcome (3.4).
    pub(crate) fn may_choose(&self, state: &DeliveryState) -> bool {
        match (&self.outcomes, state.symbol()) {
            (Some(outcomes), Some(name)) => outcomes.iter().any(|outcome| *outcome == *name),
            _ => true,
        }
    }
}

impl Broker {
    /// A flow came for a consumer's link.
    pub(crate) fn on_credit(&mut self, conn: ConnId, link: LinkId) {
        let Some(conn) = self.conns.get_mut(conn) else { return };
        let Some(End::Consumer(id)) = conn.links.get(link).copied() else { return };
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        let Some(queue) = self.queues.get_mut(consumer.queue) else { return };
        let engine = conn.io.engine_mut();
        engine.set_available(link, u32::try_from(queue.waiting()).unwrap_or(u32::MAX));
        if engine.wants_drain(link) && !std::mem::replace(&mut consumer.is_draining, true) {
            queue.draining.push(id);
        }
        self.make_ready(id);
    }

    /// The consumer may be able to take a message.
    pub(crate) fn make_ready(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        let Some(queue) = self.queues.get_mut(consumer.queue) else { return };
        if !std::mem::replace(&mut consumer.is_ready, true) {
            if consumer.is_browser {
                queue.browsers.push(id);
            } else if consumer.choice.is_some() || queue.groups.is_some() {
                queue.choosers.push_back(id);
            } else {
                queue.ready.push_back(id);
            }
        }
        let queue = consumer.queue;
        self.list(queue);
    }

    /// Sends what can be sent from a queue.
    pub(crate) fn dispatch(&mut self, id: QueueId) {
        self.browse(id);
        let now = self.clock.now();
        let Some(queue) = self.queues.get(id) else { return };
        if queue.groups.is_some() {
            self.dispatch_groups(id, now);
        } else if !queue.choosers.is_empty() {
            self.choose(id, now);
        }
        loop {
            let Some(queue) = self.queues.get_mut(id) else { return };
            let Some(message) = queue.first() else { break };
            if message.is_over(now) {
                self.expire(id, now);
                continue;
            }
            let seq = message.seq;
            match next_consumer(queue, &mut self.consumers, &mut self.conns) {
                Some(consumer) if queue.ready.len() == 1 && self.send_on(id, consumer, now) => {}
                Some(consumer) => self.send(id, seq, consumer, now),
                None => break,
            }
        }
        if let Some(queue) = self.queues.get_mut(id) {
            queue.settle_down();
        }
        self.answer_drains(id);
        self.loosen(id);
        self.drop_if_unused(id);
    }

    /// Sends a message that has just come to the only consumer that is ready, if nothing is in the
    /// way; else it comes back. It goes the way of all others, but for the queue.
    pub(crate) fn pass(
        &mut self,
        id: QueueId,
        mut message: Box<Message>,
        now: Instant,
    ) -> Option<Box<Message>> {
        let Some((queue, to)) = self.queues.get_mut(id).and_then(|queue| {
            let to = queue.only_one_ready()?;
            Some((queue, to))
        }) else {
            return Some(message);
        };
        let Some(consumer) = self.consumers.get_mut(to).filter(|it| it.takes_any()) else {
            return Some(message);
        };
        let Some(conn) = self.conns.get_mut(consumer.conn) else { return Some(message) };
        if message.is_over(now) {
            return Some(message);
        }
        if message.is_timed() {
            message.enqueued = self.clock.now();
        }
        if put(&message, consumer, conn, (&self.node, self.clock), now).is_err() {
            return Some(message);
        }
        if !consumer.settled {
            queue.pass(&mut message);
            consumer.hold(message);
        }
        let conn = consumer.conn;
        self.mark_dirty(conn);
        None
    }

    /// Sends to the only consumer that is ready for as long as nothing is in the way; `false`: not
    /// even the first message.
    fn send_on(&mut self, id: QueueId, to: ConsumerId, now: Instant) -> bool {
        let (Some(queue), Some(consumer)) = (self.queues.get_mut(id), self.consumers.get_mut(to))
        else {
            return false;
        };
        let Some(conn) = self.conns.get_mut(consumer.conn) else { return false };
        if !consumer.takes_any() || queue.groups.is_some() {
            return false;
        }
        let mut has_sent = false;
        while let Some(message) = queue.first().filter(|message| !message.is_over(now))
            && put(message, consumer, conn, (&self.node, self.clock), now).is_ok()
            && let Some(message) = queue.take_first()
        {
            has_sent = true;
            match consumer.settled {
                true => queue.forget(&message),
                false => consumer.hold(message),
            }
        }
        let conn = consumer.conn;
        self.mark_dirty(conn);
        has_sent
    }

    pub(crate) fn send(&mut self, id: QueueId, seq: u64, to: ConsumerId, now: Instant) {
        let (Some(queue), Some(consumer)) = (self.queues.get_mut(id), self.consumers.get_mut(to))
        else {
            return;
        };
        let conn_id = consumer.conn;
        let Some(conn) = self.conns.get_mut(conn_id) else { return };
        let Some(mut message) = queue.take(seq, to) else { return };
        if consumer.is_forward {
            message.passes(&self.own_name);
        }
        let is_alone = consumer.is_alone_at(queue);
        match put(&message, consumer, conn, (&self.node, self.clock), now) {
            Ok(delivery) => {
                if let Some(txn) = consumer.acquires {
                    let key = consumer.unsettled.insert(message);
                    self.acquired(txn, to, (key, delivery));
                } else if consumer.settled {
                    queue.forget(&message);
                } else {
                    consumer.hold(message);
                }
            }
            Err(CommandError::MessageSize) if is_alone => {
                self.give_up(id, message, Death::Undeliverable);
            }
            Err(CommandError::MessageSize) => {
                message.excluded.push(to);
                queue.put_back(message);
                self.make_choosy(to);
            }
            Err(_) => {
                // Not to be tried for ever: its next flow makes it ready again.
                consumer.is_ready = false;
                queue.ready.retain(|id| *id != to);
                queue.choosers.retain(|id| *id != to);
                queue.put_back(message);
            }
        }
        self.mark_dirty(conn_id);
    }

    /// Shows messages to those who only look.
    fn browse(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(id) else { return };
        let mut behind = Vec::new();
        for browser in std::mem::take(&mut queue.browsers) {
            let Some(consumer) = self.consumers.get_mut(browser) else { continue };
            let Some(conn) = self.conns.get_mut(consumer.conn) else { continue };
            let (mut wait, mut work) = (None, SLICE);
            consumer.is_behind = false;
            for message in queue.since(consumer.cursor) {
                wait = conn.io.engine().send_block(consumer.link);
                consumer.is_behind = wait.is_none() && work == 0;
                if wait.is_some() || consumer.is_behind {
                    break;
                }
                let now = self.clock.now();
                consumer.cursor = message.seq + 1;
                let choice = consumer.choice.as_ref();
                if message.is_over(now)
                    || choice.is_some_and(|choice| !choice.admits(message, browser, &mut work))
                {
                    continue;
                }
                // One that it can't have is passed over.
                let _ = put(message, consumer, conn, (&self.node, self.clock), now);
            }
            match wait {
                None if consumer.is_behind => behind.push(browser),
                None => queue.browsers.push(browser),
                Some(wait) => {
                    consumer.is_ready = false;
                    conn.block(browser, consumer.link, wait);
                }
            }
            let conn = consumer.conn;
            if let Some(conn_state) = self.conns.get_mut(conn)
                && !std::mem::replace(&mut conn_state.is_dirty, true)
            {
                self.dirty.push(conn);
            }
        }
        behind.into_iter().for_each(|browser| self.go_on_later(browser));
    }

    /// Whoever asked to have its credit used up is told so, unless something is left for it.
    fn answer_drains(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(id) else { return };
        let mut waiting = Vec::new();
        for consumer_id in std::mem::take(&mut queue.draining) {
            let Some(consumer) = self.consumers.get_mut(consumer_id) else { continue };
            consumer.is_draining = false;
            let Some(conn) = self.conns.get_mut(consumer.conn) else { continue };
            let engine = conn.io.engine_mut();
            if !engine.wants_drain(consumer.link) {
                continue;
            }
            let blocked = matches!(
                engine.send_block(consumer.link),
                Some(Wait::SessionWindow | Wait::SocketFull)
            );
            // One that is ready still was offered all that waits, and nothing of it is for it.
            let has_more = blocked && !consumer.is_ready || consumer.is_behind;
            if has_more && queue.waiting() > 0 {
                consumer.is_draining = true;
                waiting.push(consumer_id);
                continue;
            }
            engine.drained(consumer.link);
            if !std::mem::replace(&mut conn.is_dirty, true) {
                self.dirty.push(consumer.conn);
            }
        }
        queue.draining = waiting;
    }

    /// Removes what has expired from a queue.
    pub(crate) fn expire(&mut self, id: QueueId, now: Instant) {
        let Some(queue) = self.queues.get_mut(id) else { return };
        let gone = queue.expired(now);
        let address = queue.address.clone();
        let held_up_others = queue.groups.is_some() && !gone.is_empty();
        self.losses.expired += gone.len() as u64;
        for message in gone {
            self.dead_letter(&address, message, Death::Expired);
        }
        if held_up_others {
            self.list(id);
        }
        self.loosen(id);
        self.drop_if_unused(id);
    }
}

/// The next consumer that can take a message. Those that can't leave the ready ones and come back
/// with credit, or when their connection got on.
fn next_consumer(
    queue: &mut Queue,
    consumers: &mut SlotMap<ConsumerId, Consumer>,
    conns: &mut SlotMap<ConnId, Conn>,
) -> Option<ConsumerId> {
    for _ in 0..queue.ready.len() {
        let id = queue.ready.pop_front()?;
        let Some(consumer) = consumers.get_mut(id).filter(|it| it.choice.is_none()) else {
            continue;
        };
        let Some(conn) = conns.get_mut(consumer.conn) else { continue };
        match consumer.block(conn) {
            None => {
                queue.ready.push_back(id);
                return Some(id);
            }
            Some(wait) => {
                queue.wait = wait;
                consumer.is_ready = false;
                conn.block(id, consumer.link, wait);
            }
        }
    }
    None
}

/// Hands a message to the engine of a consumer's connection.
fn put(
    message: &Message,
    consumer: &mut Consumer,
    conn: &mut Conn,
    (node, clock): (&[u8], hopline_driver::Clock),
    now: Instant,
) -> Result<Serial, CommandError> {
    let dequeued = if message.is_timed() { clock.now() } else { now };
    let large = message.large_bare();
    let outgoing = Outgoing {
        tag: DeliveryTag::from(consumer.next_tag),
        settled: consumer.settled,
        format: message.format,
        token: match consumer.is_browser {
            true => BROWSED,
            false => consumer.unsettled.vacant_key() as u64,
        },
        bare: large.clone().unwrap_or_default(),
    };
    let republished = if message.is_timed() { clock.now() } else { now };
    let delivery = conn.io.engine_mut().send(consumer.link, outgoing, |out| {
        let slot = message.write_head(out, node, (dequeued, republished), || clock.now());
        if large.is_none() {
            out.extend_from_slice(message.bare());
        }
        slot
    })?;
    consumer.next_tag += 1;
    Ok(delivery)
}
