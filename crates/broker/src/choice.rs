//! Consumers that do not take just any message: what is for them, each message looked at once.

use crate::broker::Broker;
use crate::filter::Filter;
use crate::message::Message;
use crate::queue::Queue;
use crate::{ConsumerId, QueueId};
use hopline_driver::engine::wire::{AmqpError, condition};
use hopline_driver::timeline::{Instant, Wait};
use std::collections::BTreeSet;

/// Messages that were found behind the place that a consumer has got to, and wait for its credit.
/// Further ones are looked at once there is room.
const FOUND_MAX: usize = 1000;

/// Work that looking for messages may take before others have their turn, in octets looked at.
pub(crate) const SLICE: usize = 128 << 10;

/// What it takes to look at a message without any octets, in octets.
const LOOK: usize = 64;

/// How far a consumer has got in its queue. Each message is looked at once when it comes, and once
/// when it comes back, however often there is credit.
#[derive(Debug)]
pub(crate) struct Choice {
    filter: Option<Filter>,
    /// Those before this number were looked at.
    next: u64,
    /// Likewise of those that came late, by their place in the queue's list of these.
    next_late: u64,
    /// Late ones that it wants.
    found: BTreeSet<u64>,
}

/// What there is for a consumer.
pub(crate) enum Search {
    Found(u64),
    Nothing,
    /// The work that this turn may take is done.
    Spent,
}

impl Choice {
    /// For a consumer that joins a queue, or is barred from one of its messages.
    pub(crate) fn new(filter: Option<Filter>, queue: &Queue) -> Self {
        Self { filter, next: 0, next_late: queue.late.end(), found: BTreeSet::new() }
    }

    /// Whether a consumer may have a message.
    pub(crate) fn admits(&self, message: &Message, id: ConsumerId, work: &mut usize) -> bool {
        if message.excluded.contains(&id) {
            *work = work.saturating_sub(LOOK);
            return false;
        }
        let (is_wanted, cost) =
            self.filter.as_ref().map_or((true, 0), |filter| filter.wants(message));
        *work = work.saturating_sub(cost.max(LOOK));
        is_wanted
    }

    fn search(&mut self, queue: &Queue, id: ConsumerId, work: &mut usize) -> Search {
        while self.found.len() < FOUND_MAX
            && let Some((place, seq)) = queue.late.since(self.next_late)
        {
            if *work == 0 {
                return Search::Spent;
            }
            self.next_late = place + 1;
            // What is not behind is met below.
            if seq < self.next
                && let Some(message) = queue.get(seq)
                && self.admits(message, id, work)
            {
                self.found.insert(seq);
            }
        }
        while let Some(seq) = self.found.pop_first() {
            if queue.get(seq).is_some_and(|message| !message.excluded.contains(&id)) {
                return Search::Found(seq);
            }
        }
        for message in queue.since(self.next) {
            if *work == 0 {
                return Search::Spent;
            }
            self.next = message.seq + 1;
            if self.admits(message, id, work) {
                return Search::Found(message.seq);
            }
        }
        Search::Nothing
    }
}

impl Broker {
    /// Puts a filter where it is asked: before a subscription's queue, so that what nobody wants
    /// does not fill it, or with the consumer, as others may want what is in a queue.
    pub(crate) fn place_filter(
        &mut self,
        queue: QueueId,
        filter: Option<Filter>,
        is_browser: bool,
    ) -> Result<Option<Box<Choice>>, AmqpError> {
        let Some(found) = self.queues.get_mut(queue) else { return Ok(None) };
        if found.topic.is_some() {
            found.filter = filter.map(Box::new);
            return Ok(None);
        }
        if filter.is_some() && found.groups.is_some() && !is_browser {
            self.drop_if_unused(queue);
            let text = "this queue keeps groups together: only who browses it may use filters";
            return Err(AmqpError::new(condition::NOT_IMPLEMENTED, text));
        }
        Ok(filter.map(|filter| Box::new(Choice::new(Some(filter), found))))
    }

    /// A consumer is barred from a message: from now on it looks at each before it takes it.
    pub(crate) fn make_choosy(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        let Some(queue) = self.queues.get_mut(consumer.queue) else { return };
        if consumer.is_browser || consumer.choice.is_some() {
            return;
        }
        if queue.groups.is_some() {
            let queue = consumer.queue;
            return self.list(queue);
        }
        consumer.choice = Some(Box::new(Choice::new(None, queue)));
        queue.choosy.insert(id);
        if consumer.is_ready {
            queue.choosers.push_back(id);
            let queue = consumer.queue;
            self.list(queue);
        }
    }

    /// Gives messages to those that choose, one to each in turn. They come before those that take
    /// anything, who would leave them nothing.
    pub(crate) fn choose(&mut self, id: QueueId, now: Instant) {
        let mut work = SLICE;
        let mut idle = Vec::new();
        while let Some(consumer_id) = self.next_chooser(id) {
            let Some(queue) = self.queues.get_mut(id) else { return };
            let Some(consumer) = self.consumers.get_mut(consumer_id) else { continue };
            let Some(choice) = &mut consumer.choice else { continue };
            let found = choice.search(queue, consumer_id, &mut work);
            consumer.is_behind = matches!(found, Search::Spent);
            match found {
                Search::Found(seq) if queue.get(seq).is_some_and(|it| it.is_over(now)) => {
                    queue.choosers.push_front(consumer_id);
                    self.expire(id, now);
                }
                Search::Found(seq) => {
                    queue.choosers.push_back(consumer_id);
                    self.send(id, seq, consumer_id, now);
                }
                Search::Nothing => idle.push(consumer_id),
                Search::Spent => self.go_on_later(consumer_id),
            }
        }
        let Some(queue) = self.queues.get_mut(id) else { return };
        if !idle.is_empty() && queue.choosy.len() == queue.consumers.len() {
            queue.wait = Wait::NoConsumer;
        }
        queue.choosers.extend(idle);
    }

    /// The next one that chooses and can be sent to.
    pub(crate) fn next_chooser(&mut self, id: QueueId) -> Option<ConsumerId> {
        let queue = self.queues.get_mut(id)?;
        while let Some(id) = queue.choosers.pop_front() {
            let Some(consumer) = self.consumers.get_mut(id) else { continue };
            let Some(conn) = self.conns.get_mut(consumer.conn) else { continue };
            let Some(wait) = consumer.block(conn) else { return Some(id) };
            queue.wait = wait;
            (consumer.is_ready, consumer.is_behind) = (false, false);
            conn.block(id, consumer.link, wait);
        }
        None
    }

    /// A consumer has not looked at all messages yet: others have their turn first.
    pub(crate) fn go_on_later(&mut self, id: ConsumerId) {
        let Some(consumer) = self.consumers.get_mut(id) else { return };
        consumer.is_ready = false;
        if let Some(conn) = self.conns.get_mut(consumer.conn) {
            conn.blocked.push(id);
            conn.is_behind = true;
            conn.wake.notify_one();
        }
    }
}
