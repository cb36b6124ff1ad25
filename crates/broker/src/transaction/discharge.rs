//! Commit and rollback (4.3): all of a transaction's work, within one turn.

use super::{Claim, Held, Post, Work};
use crate::broker::Broker;
use crate::inbound::Route;
use crate::message::Message;
use crate::{ConnId, QueueId};
use hopline_driver::engine::wire::{AmqpError, DeliveryState, condition};
use std::collections::HashMap;

/// Messages and octets.
type Counts = (usize, usize);

impl Broker {
    /// Does all of it, or, if a queue can't take its part, nothing.
    pub(super) fn commit(&mut self, conn: ConnId, mut work: Work) -> Result<(), AmqpError> {
        let routes = match self.routes(&work) {
            Ok(routes) => routes,
            Err(cause) => {
                self.roll_back(conn, work);
                let text = format!("the transaction was rolled back: {cause}");
                return Err(AmqpError::new(condition::ROLLBACK, text));
            }
        };
        for (Post { route, message }, queues) in work.posts.drain(..).zip(routes) {
            self.promise(&route, false);
            self.deliver(message, queues);
        }
        work.claims.into_iter().for_each(|claim| self.retire_for_good(claim));
        self.mark_dirty(conn);
        Ok(())
    }

    fn deliver(&mut self, message: Box<Message>, mut queues: Vec<QueueId>) {
        let last = queues.pop();
        queues.into_iter().for_each(|queue| self.append(queue, message.clone()));
        if let Some(last) = last {
            self.append(last, message);
        }
    }

    /// The queues of each post, if all are there and have room.
    fn routes(&self, work: &Work) -> Result<Vec<Vec<QueueId>>, AmqpError> {
        let mut more: HashMap<QueueId, Counts> = HashMap::new();
        let routes: Vec<_> = work.posts.iter().map(|post| self.route(post)).collect();
        for (post, queues) in work.posts.iter().zip(&routes) {
            for queue in queues {
                let counts = more.entry(*queue).or_default();
                *counts = (counts.0 + 1, counts.1 + post.message.octets());
            }
        }
        let gone = match more.is_empty() {
            true => HashMap::new(),
            false => self.leaving(&work.claims),
        };
        for (id, more) in more {
            let Some(queue) = self.queues.get(id) else {
                return Err(AmqpError::new(condition::RESOURCE_DELETED, "a node was deleted"));
            };
            if !queue.fits(more, gone.get(&id).copied().unwrap_or_default()) {
                let text = format!("the queue {:?} has no room for it", queue.address);
                return Err(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
            }
        }
        Ok(routes)
    }

    fn route(&self, post: &Post) -> Vec<QueueId> {
        match &post.route {
            Route::Queue(queue) => vec![*queue],
            Route::Topic(topic) => {
                let mut queues = self.subscriptions(topic);
                queues.retain(|id| self.queues.get(*id).is_some_and(|q| q.wants(&post.message)));
                queues
            }
        }
    }

    /// What the queues are rid of by the same commit.
    fn leaving(&self, claims: &[Claim]) -> HashMap<QueueId, Counts> {
        let mut gone: HashMap<QueueId, Counts> = HashMap::new();
        for claim in claims {
            let leaves =
                matches!(claim.outcome, Some(DeliveryState::Accepted | DeliveryState::Rejected(_)));
            if leaves && let Some((queue, octets)) = self.holder(claim) {
                let counts = gone.entry(queue).or_default();
                *counts = (counts.0 + 1, counts.1 + octets);
            }
        }
        gone
    }

    /// The queue of a claim's message, and its octets.
    fn holder(&self, claim: &Claim) -> Option<(QueueId, usize)> {
        match &claim.held {
            Held::Consumer(key) => {
                let consumer = self.consumers.get(claim.consumer)?;
                Some((consumer.queue, consumer.unsettled.get(*key)?.octets()))
            }
            Held::Orphan { queue, message, .. } => Some((*queue, message.octets())),
            Held::Free => None,
        }
    }

    /// Commit: the outcome holds. What was acquired only is the consumer's like any other.
    fn retire_for_good(&mut self, claim: Claim) {
        match claim.held {
            Held::Consumer(key) => {
                let Some(consumer) = self.consumers.get_mut(claim.consumer) else { return };
                consumer.claims.remove(&key);
                let Some(outcome) = claim.outcome else { return };
                let queue = consumer.queue;
                let message = consumer.unsettled.try_remove(key);
                if !claim.settled
                    && let Some(conn) = self.conns.get_mut(consumer.conn)
                {
                    let state = Some(outcome.clone());
                    let _ = conn.io.engine_mut().settle_sent(claim.link, claim.delivery, state);
                }
                if let Some(message) = message {
                    self.apply(queue, claim.consumer, message, outcome);
                }
            }
            Held::Orphan { queue, message, .. } => {
                let outcome = claim.outcome.unwrap_or(DeliveryState::Released);
                self.apply(queue, claim.consumer, message, outcome);
                self.drop_if_unused(queue);
            }
            Held::Free => {}
        }
    }

    /// Leaves no trace of it.
    pub(super) fn roll_back(&mut self, conn: ConnId, work: Work) {
        for Post { route, .. } in work.posts {
            self.promise(&route, false);
            if let Route::Queue(queue) = route {
                self.drop_if_unused(queue);
            }
        }
        for claim in work.claims {
            match claim.held {
                Held::Consumer(key) => self.undo(&claim, key),
                Held::Orphan { queue, mut message, failed } => {
                    message.returned(failed);
                    self.put_back(queue, message);
                    self.drop_if_unused(queue);
                }
                Held::Free => {}
            }
        }
        self.mark_dirty(conn);
    }

    /// The delivery is again as it was: with its consumer, unless that has settled it, or has got
    /// it by the transaction.
    fn undo(&mut self, claim: &Claim, key: usize) {
        if let Some(consumer) = self.consumers.get_mut(claim.consumer) {
            consumer.claims.remove(&key);
        }
        if claim.acquired {
            self.give_back(claim, key);
        } else if claim.settled {
            self.take_back(claim.consumer, key);
        }
    }

    /// A delivery of a transaction that is rolled back is none any more: it is released.
    pub(super) fn give_back(&mut self, claim: &Claim, key: usize) {
        let conn = self.consumers.get(claim.consumer).map(|consumer| consumer.conn);
        if !claim.settled
            && let Some(conn) = conn.and_then(|conn| self.conns.get_mut(conn))
        {
            let state = Some(DeliveryState::Released);
            let _ = conn.io.engine_mut().settle_sent(claim.link, claim.delivery, state);
        }
        self.take_back(claim.consumer, key);
    }
}
