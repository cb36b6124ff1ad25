//! A queue: messages in order, the consumers that can take one, the limit.

use crate::message::Message;
use crate::{ConsumerId, ProducerId};
use hopline_driver::timeline::{Instant, Wait};
use std::collections::VecDeque;
use std::rc::Rc;

/// Why a queue is there, so when it goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It is configured: it stays.
    Permanent,
    /// It was made on demand: it goes when nothing is in it and nobody is attached.
    OnDemand,
    /// It was made for one link, and goes with it.
    Link,
}

/// Messages wait here, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) address: Rc<str>,
    pub(crate) lifetime: Lifetime,
    pub(crate) messages: VecDeque<Message>,
    next_seq: u64,
    /// Octets of the messages here and of those out for delivery.
    octets: usize,
    /// Messages out for delivery.
    out: usize,
    max_messages: usize,
    max_octets: usize,
    /// Consumers that may be able to take a message, the next one first.
    pub(crate) ready: VecDeque<ConsumerId>,
    /// Those that only look and may have something to look at.
    pub(crate) browsers: Vec<ConsumerId>,
    /// Those that asked to have their credit used up.
    pub(crate) draining: Vec<ConsumerId>,
    /// All links.
    pub(crate) consumers: Vec<ConsumerId>,
    pub(crate) producers: Vec<ProducerId>,
    /// Producers have less credit than they could use, for want of room.
    pub(crate) is_tight: bool,
    /// Why the first message can't go.
    pub(crate) wait: Wait,
    /// It is in the broker's list of queues to look at.
    pub(crate) is_listed: bool,
    /// Messages at the end that came in this turn.
    pub(crate) fresh: usize,
    /// Some message may expire.
    pub(crate) may_expire: bool,
}

impl Queue {
    pub(crate) fn new(
        address: Rc<str>,
        lifetime: Lifetime,
        (max_messages, max_octets): (usize, usize),
    ) -> Self {
        Self {
            address,
            lifetime,
            messages: VecDeque::new(),
            next_seq: 0,
            octets: 0,
            out: 0,
            max_messages,
            max_octets,
            ready: VecDeque::new(),
            browsers: Vec::new(),
            draining: Vec::new(),
            consumers: Vec::new(),
            producers: Vec::new(),
            is_tight: false,
            wait: Wait::NoConsumer,
            is_listed: false,
            fresh: 0,
            may_expire: false,
        }
    }

    /// Messages here and out for delivery.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() + self.out
    }

    /// How many more messages there is room for.
    pub(crate) fn room(&self) -> usize {
        if self.octets >= self.max_octets {
            return 0;
        }
        self.max_messages.saturating_sub(self.len())
    }

    /// Whether even what credit had promised before it filled up can't be taken any more.
    pub(crate) fn is_overfull(&self) -> bool {
        self.len() >= self.max_messages.saturating_mul(2)
            || self.octets >= self.max_octets.saturating_mul(2)
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, mut message: Message) {
        message.seq = self.next_seq;
        message.wait = if self.messages.is_empty() { Wait::None } else { self.wait };
        self.next_seq += 1;
        self.octets += message.octets();
        self.may_expire |= message.expires.is_some();
        self.fresh += 1;
        self.messages.push_back(message);
    }

    /// Takes a message out for delivery.
    pub(crate) fn take(&mut self, at: usize) -> Option<Message> {
        let message = self.messages.remove(at)?;
        self.out += 1;
        Some(message)
    }

    /// A message that was out comes back to its old place.
    pub(crate) fn put_back(&mut self, message: Message) {
        self.out = self.out.saturating_sub(1);
        let at = self.messages.partition_point(|other| other.seq < message.seq);
        self.messages.insert(at, message);
        self.fresh = 0;
    }

    /// A message that was out is gone for good.
    pub(crate) fn forget(&mut self, message: &Message) {
        self.out = self.out.saturating_sub(1);
        self.octets = self.octets.saturating_sub(message.octets());
    }

    /// Removes what has expired.
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Message> {
        if !self.may_expire {
            return Vec::new();
        }
        let mut gone = Vec::new();
        let (mut kept, mut may_expire) = (VecDeque::with_capacity(self.messages.len()), false);
        for message in self.messages.drain(..) {
            if message.expires.is_some_and(|at| at <= now) {
                gone.push(message);
            } else {
                may_expire |= message.expires.is_some();
                kept.push_back(message);
            }
        }
        (self.messages, self.may_expire, self.fresh) = (kept, may_expire, 0);
        self.octets -= gone.iter().map(Message::octets).sum::<usize>();
        gone
    }

    /// Messages that came in this turn and did not leave let go of the read buffer; the first one
    /// that waits says why.
    pub(crate) fn settle_down(&mut self) {
        let fresh = std::mem::take(&mut self.fresh).min(self.messages.len());
        let wait = self.wait;
        for message in self.messages.iter_mut().rev().take(fresh) {
            message.settle_down();
            if message.wait == Wait::None {
                message.wait = wait;
            }
        }
    }

    /// The credit that one producer may have now.
    pub(crate) fn credit(&self, wanted: u32) -> u32 {
        let share = self.room() / self.producers.len().max(1);
        let room = if self.room() > 0 { share.max(1) } else { 0 };
        wanted.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// Whether nobody would miss it.
    pub(crate) fn is_unused(&self) -> bool {
        self.lifetime == Lifetime::OnDemand
            && self.len() == 0
            && self.consumers.is_empty()
            && self.producers.is_empty()
    }
}
