//! Message groups: the messages of a group go to one consumer at a time, in their order.
//!
//! Groups are kept in lanes, by a hash of their id, so that what is known of them is bounded:
//! groups that share a lane go to the same consumer.

use crate::broker::Broker;
use crate::message::Message;
use crate::queue::Queue;
use crate::{ConsumerId, QueueId};
use hopline_driver::timeline::Instant;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

/// How many lanes a queue has.
const LANES: u64 = 1024;

/// The lane of messages without a group, which anybody may have at any time.
pub(crate) const LOOSE: u16 = LANES as u16;

/// The messages of a queue by lane.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    hasher: RandomState,
    lanes: HashMap<u16, Lane>,
    /// The first message of each lane, by the consumer that holds the lane; of those that nobody
    /// holds under none.
    heads: HashMap<Option<ConsumerId>, BTreeSet<(u64, u16)>>,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: BTreeSet<u64>,
    /// Messages out for delivery. While there are some, their consumer holds the lane.
    out: usize,
    /// Who has got the last one.
    last: Option<ConsumerId>,
    /// Where the lane stands among the heads.
    head: Option<(Option<ConsumerId>, u64)>,
}

impl Groups {
    /// The lane of a message.
    pub(crate) fn lane_of(&self, message: &Message) -> u16 {
        let group = message.group_id();
        group.map_or(LOOSE, |group| (self.hasher.hash_one(group) % LANES) as u16)
    }

    /// A message waits.
    pub(crate) fn add(&mut self, seq: u64, lane: u16) {
        self.change(lane, |lane| {
            lane.waiting.insert(seq);
        });
    }

    /// A message waits no more.
    pub(crate) fn remove(&mut self, seq: u64, lane: u16) {
        self.change(lane, |lane| {
            lane.waiting.remove(&seq);
        });
    }

    /// A message is out for delivery.
    pub(crate) fn hold(&mut self, lane: u16, by: ConsumerId) {
        if lane != LOOSE {
            self.change(lane, |lane| (lane.out, lane.last) = (lane.out + 1, Some(by)));
        }
    }

    /// A message is out no more.
    pub(crate) fn let_go(&mut self, lane: u16) {
        self.change(lane, |lane| lane.out = lane.out.saturating_sub(1));
    }

    fn change(&mut self, number: u16, change: impl FnOnce(&mut Lane)) {
        let lane = self.lanes.entry(number).or_default();
        change(lane);
        let first = lane.waiting.first().map(|seq| (lane.last.filter(|_| lane.out > 0), *seq));
        let before = std::mem::replace(&mut lane.head, first);
        if before == first {
            return;
        }
        if let Some((holder, seq)) = before
            && let Some(heads) = self.heads.get_mut(&holder)
        {
            heads.remove(&(seq, number));
            if heads.is_empty() {
                self.heads.remove(&holder);
            }
        }
        if let Some((holder, seq)) = first {
            self.heads.entry(holder).or_default().insert((seq, number));
        }
    }

    /// The first message that a consumer may have, and who had the one before it in its lane.
    fn next(&self, queue: &Queue, id: ConsumerId) -> Option<(u64, Option<ConsumerId>)> {
        let heads = |holder| self.heads.get(&holder).into_iter().flatten();
        let may_have = |seq: &u64| queue.get(*seq).is_some_and(|it| !it.excluded.contains(&id));
        let first = |holder| {
            heads(holder).find_map(|(seq, number)| {
                let lane = self.lanes.get(number)?;
                let loose = (*number == LOOSE).then(|| lane.waiting.iter().copied().find(may_have));
                let seq = loose.unwrap_or_else(|| Some(*seq).filter(may_have))?;
                Some((seq, lane.last))
            })
        };
        first(None).into_iter().chain(first(Some(id))).min_by_key(|(seq, _)| *seq)
    }
}

impl Broker {
    /// Gives the messages of a queue with groups to its consumers, one to each in turn. A group
    /// stays with its consumer as long as that can be sent to.
    pub(crate) fn dispatch_groups(&mut self, id: QueueId, now: Instant) {
        let mut idle = Vec::new();
        while let Some(consumer) = self.next_chooser(id) {
            let Some(queue) = self.queues.get_mut(id) else { return };
            let next = queue.groups.as_ref().and_then(|groups| groups.next(queue, consumer));
            match next {
                None => idle.push(consumer),
                Some((seq, _)) if queue.get(seq).is_some_and(|it| it.is_over(now)) => {
                    queue.choosers.push_front(consumer);
                    self.expire(id, now);
                }
                Some((seq, last)) => {
                    let last =
                        last.filter(|last| *last != consumer && self.can_get(*last, id, seq));
                    if let Some(queue) = self.queues.get_mut(id) {
                        match last {
                            Some(_) => queue.choosers.push_front(consumer),
                            None => queue.choosers.push_back(consumer),
                        }
                    }
                    self.send(id, seq, last.unwrap_or(consumer), now);
                }
            }
        }
        if let Some(queue) = self.queues.get_mut(id) {
            queue.choosers.extend(idle);
        }
    }

    /// Whether a consumer can be sent a message now.
    fn can_get(&self, id: ConsumerId, queue: QueueId, seq: u64) -> bool {
        let message = self.queues.get(queue).and_then(|queue| queue.get(seq));
        message.is_some_and(|message| !message.excluded.contains(&id))
            && self.consumers.get(id).filter(|it| it.is_ready).is_some_and(|consumer| {
                let conn = self.conns.get(consumer.conn);
                conn.is_some_and(|conn| consumer.block(conn).is_none())
            })
    }
}
