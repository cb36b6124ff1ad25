//! A queue: messages in order, the consumers that can take one, the limit.

use crate::backlog::Backlog;
use crate::filter::Filter;
use crate::groups::Groups;
use crate::late::Late;
use crate::lifetime::Lifetime;
use crate::message::Message;
use crate::{ConnId, ConsumerId, ProducerId, TerminusId};
use hopline_driver::timeline::{Instant, Wait};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Where in a message's number its level of priority is: above all numbers of messages.
const LEVEL_SHIFT: u32 = 56;

/// Messages that a queue gives credit for before it knows how large they are, unless its limits
/// allow no more: in all, as many octets as it holds.
const FIRST_CREDIT: usize = 128;

/// Messages wait here, in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) address: Rc<str>,
    lifetime: Lifetime,
    /// What it was made for, while that is there.
    pub(crate) owner: Option<TerminusId>,
    /// Who alone may consume: it is a temporary queue (JMS mapping 5.3).
    pub(crate) only_for: Option<ConnId>,
    /// The topic whose messages it gets.
    pub(crate) topic: Option<Rc<str>>,
    /// What its messages have in common: others are not put on it.
    pub(crate) filter: Option<Box<Filter>>,
    /// Messages of a group go to one consumer at a time.
    pub(crate) groups: Option<Box<Groups>>,
    /// Messages of a higher priority come first.
    pub(crate) has_priorities: bool,
    messages: Backlog,
    /// Those that came to a place that consumers which choose may have passed.
    pub(crate) late: Late,
    /// When which of them expire.
    expiries: BTreeSet<(Instant, u64)>,
    next_seq: u64,
    /// Octets of the messages here and of those out for delivery.
    octets: usize,
    /// Messages out for delivery.
    out: usize,
    /// Messages that open transactions would put here.
    pub(crate) promised: usize,
    max_messages: usize,
    max_octets: usize,
    /// Octets of a message, as those were that came last: a mean in which each weighs an eighth.
    usual_octets: usize,
    /// Consumers that may be able to take a message, the next one first. Here and in the two lists
    /// below may be some that have left.
    pub(crate) ready: VecDeque<ConsumerId>,
    /// Likewise consumers that do not take just any.
    pub(crate) choosers: VecDeque<ConsumerId>,
    /// Those that only look and may have something to look at.
    pub(crate) browsers: Vec<ConsumerId>,
    /// Those that asked to have their credit used up.
    pub(crate) draining: Vec<ConsumerId>,
    /// All links.
    pub(crate) consumers: BTreeSet<ConsumerId>,
    pub(crate) producers: BTreeSet<ProducerId>,
    /// Consumers that do not take just any message, ready or not.
    pub(crate) choosy: BTreeSet<ConsumerId>,
    /// Consumers that have left since the lists were last rid of them.
    left: usize,
    /// Producers have less credit than they could use, for want of room.
    pub(crate) is_tight: bool,
    /// Why the first message can't go.
    pub(crate) wait: Wait,
    /// It is in the broker's list of queues to look at.
    pub(crate) is_listed: bool,
    /// Messages at the end that came in this turn.
    fresh: usize,
    /// Those that came in this turn and overtook others.
    fresh_ahead: Vec<u64>,
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
            owner: None,
            only_for: None,
            topic: None,
            filter: None,
            groups: None,
            has_priorities: false,
            messages: Backlog::default(),
            late: Late::default(),
            expiries: BTreeSet::new(),
            next_seq: 0,
            octets: 0,
            out: 0,
            promised: 0,
            max_messages,
            max_octets,
            usual_octets: max_octets / FIRST_CREDIT,
            ready: VecDeque::new(),
            choosers: VecDeque::new(),
            browsers: Vec::new(),
            draining: Vec::new(),
            consumers: BTreeSet::new(),
            producers: BTreeSet::new(),
            choosy: BTreeSet::new(),
            left: 0,
            is_tight: false,
            wait: Wait::NoConsumer,
            is_listed: false,
            fresh: 0,
            fresh_ahead: Vec::new(),
        }
    }

    /// It stays, whoever leaves.
    pub(crate) const fn make_permanent(&mut self) {
        self.lifetime = Lifetime::Permanent;
    }

    /// Messages here and out for delivery.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() + self.out
    }

    /// Octets of these messages.
    #[cfg(feature = "simulation")]
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// How many more messages there is room for.
    pub(crate) fn room(&self) -> usize {
        if self.octets >= self.max_octets {
            return 0;
        }
        self.max_messages.saturating_sub(self.len())
    }

    /// Whether an eighth of it is free, so that it is worth to tell all its producers.
    pub(crate) fn has_eased(&self) -> bool {
        self.room() >= self.max_messages.div_ceil(8)
            && self.octets <= self.max_octets - self.max_octets / 8
    }

    /// Whether even what credit had promised before it filled up can't be taken any more.
    pub(crate) fn is_overfull(&self) -> bool {
        self.len() >= self.max_messages.saturating_mul(2)
            || self.octets >= self.max_octets.saturating_mul(2)
    }

    /// Whether a message is one for those that are attached here, of all that a topic gets.
    pub(crate) fn wants(&self, message: &Message) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.wants(message).0)
    }

    /// Whether messages of so many octets find room once others are gone; both are counts of
    /// messages and octets.
    pub(crate) fn fits(&self, more: (usize, usize), gone: (usize, usize)) -> bool {
        (self.len() + more.0).saturating_sub(gone.0) <= self.max_messages
            && (self.octets + more.1).saturating_sub(gone.1) <= self.max_octets
    }

    /// Messages here.
    pub(crate) fn waiting(&self) -> usize {
        self.messages.len()
    }

    /// Messages here, from a number on.
    pub(crate) fn since(&self, seq: u64) -> impl Iterator<Item = &Message> {
        self.messages.since(seq)
    }

    /// The first message here.
    pub(crate) fn first(&self) -> Option<&Message> {
        self.messages.first()
    }

    /// A message here.
    pub(crate) fn get(&self, seq: u64) -> Option<&Message> {
        self.messages.get(seq)
    }

    /// Appends a message, behind those of its priority.
    pub(crate) fn push(&mut self, mut message: Box<Message>) {
        message.seq = self.next_seq;
        self.next_seq += 1;
        self.count_in(message.octets());
        if let Some(groups) = &self.groups {
            message.lane = groups.lane_of(&message);
        }
        if self.has_priorities {
            message.seq |= message.level() << LEVEL_SHIFT;
            self.note_late(message.seq);
        }
        let seq = message.seq;
        match self.insert(message) {
            true => self.fresh += 1,
            false => self.fresh_ahead.push(seq),
        }
    }

    fn note_late(&mut self, seq: u64) {
        if !self.choosy.is_empty() {
            self.late.push(seq);
        }
    }

    /// `true`: it is behind all others.
    fn insert(&mut self, message: Box<Message>) -> bool {
        if let Some(at) = message.expires {
            self.expiries.insert((at, message.seq));
        }
        if let Some(groups) = &mut self.groups {
            groups.add(message.seq, message.lane);
        }
        self.messages.insert(message)
    }

    fn remove(&mut self, seq: u64) -> Option<Box<Message>> {
        let message = self.messages.remove(seq)?;
        self.is_here_no_more(&message);
        Some(message)
    }

    fn is_here_no_more(&mut self, message: &Message) {
        self.late.remove(message.seq);
        if let Some(groups) = &mut self.groups {
            groups.remove(message.seq, message.lane);
        }
        if let Some(at) = message.expires {
            self.expiries.remove(&(at, message.seq));
        }
    }

    /// The only consumer that is ready, where nobody and nothing else is to be looked at before a
    /// message that comes goes to it.
    pub(crate) fn only_one_ready(&self) -> Option<ConsumerId> {
        let is_simple = self.messages.len() == 0
            && !self.is_overfull()
            && self.ready.len() == 1
            && self.choosers.is_empty()
            && self.browsers.is_empty()
            && self.draining.is_empty()
            && self.filter.is_none()
            && self.groups.is_none();
        self.ready.front().copied().filter(|_| is_simple)
    }

    /// A message goes out for delivery without a stay here.
    pub(crate) fn pass(&mut self, message: &mut Message) {
        message.seq = self.next_seq;
        self.next_seq += 1;
        if self.has_priorities {
            message.seq |= message.level() << LEVEL_SHIFT;
        }
        self.count_in(message.octets());
        self.out += 1;
    }

    const fn count_in(&mut self, octets: usize) {
        self.octets += octets;
        self.usual_octets = self.usual_octets - self.usual_octets / 8 + octets / 8;
    }

    /// Takes the first message out for delivery, in a queue without groups.
    pub(crate) fn take_first(&mut self) -> Option<Box<Message>> {
        let message = self.messages.pop_first()?;
        self.is_here_no_more(&message);
        self.out += 1;
        Some(message)
    }

    /// Takes a message out for delivery to a consumer.
    pub(crate) fn take(&mut self, seq: u64, to: ConsumerId) -> Option<Box<Message>> {
        let message = self.remove(seq)?;
        if let Some(groups) = &mut self.groups {
            groups.hold(message.lane, to);
        }
        self.out += 1;
        Some(message)
    }

    fn is_out_no_more(&mut self, message: &Message) {
        self.out = self.out.saturating_sub(1);
        if let Some(groups) = &mut self.groups {
            groups.let_go(message.lane);
        }
    }

    /// A message that was out comes back to its old place.
    pub(crate) fn put_back(&mut self, message: Box<Message>) {
        self.is_out_no_more(&message);
        self.note_late(message.seq);
        self.insert(message);
    }

    /// A message that was out is gone for good.
    pub(crate) fn forget(&mut self, message: &Message) {
        self.is_out_no_more(message);
        self.octets = self.octets.saturating_sub(message.octets());
    }

    /// Whether some message here may expire.
    pub(crate) fn may_expire(&self) -> bool {
        !self.expiries.is_empty()
    }

    /// Removes what has expired.
    #[expect(clippy::vec_box, reason = "they go on in their boxes")]
    pub(crate) fn expired(&mut self, now: Instant) -> Vec<Box<Message>> {
        let mut gone = Vec::new();
        while let Some((at, seq)) = self.expiries.first().copied()
            && at <= now
        {
            self.expiries.pop_first();
            gone.extend(self.remove(seq));
        }
        self.octets -= gone.iter().map(|message| message.octets()).sum::<usize>();
        gone
    }

    /// Messages that came in this turn and did not leave let go of the read buffer; the first one
    /// that waits says why.
    pub(crate) fn settle_down(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        let wait = self.wait;
        let settle = |message: &mut Message| {
            message.settle_down();
            if message.wait == Wait::None {
                message.wait = wait;
            }
        };
        self.messages.newest_mut(fresh).for_each(settle);
        for seq in self.fresh_ahead.drain(..) {
            self.messages.get_mut(seq).map(settle);
        }
    }

    /// The credit that one producer may have now: its share of the room, if messages go on to be
    /// as large as they were.
    pub(crate) fn credit(&self, wanted: u32) -> u32 {
        let octets = self.max_octets.saturating_sub(self.octets) / self.usual_octets.max(1);
        let share = self.room().min(octets) / self.producers.len().max(1);
        let room = if self.room() > 0 { share.max(1) } else { 0 };
        wanted.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// A consumer joins.
    pub(crate) fn join(&mut self, consumer: ConsumerId) {
        self.consumers.insert(consumer);
        if self.wait == Wait::NoConsumer {
            self.wait = Wait::NoCredit;
        }
    }

    /// A consumer leaves. The lists are rid of those that left once they may be half of them, so
    /// that many leave in no more time than it took them to come.
    pub(crate) fn leave(&mut self, consumer: ConsumerId) {
        self.consumers.remove(&consumer);
        if self.choosy.remove(&consumer) && self.choosy.is_empty() {
            self.late.clear();
        }
        self.left += 1;
        if self.left > self.consumers.len() {
            self.left = 0;
            self.ready.retain(|id| self.consumers.contains(id));
            self.choosers.retain(|id| self.consumers.contains(id));
            self.browsers.retain(|id| self.consumers.contains(id));
            self.draining.retain(|id| self.consumers.contains(id));
        }
        if self.consumers.is_empty() {
            self.wait = Wait::NoConsumer;
        }
    }

    /// Whether nobody would miss it.
    pub(crate) fn is_unused(&self) -> bool {
        let has_links = !self.consumers.is_empty() || !self.producers.is_empty();
        let has_messages = self.len() > 0 || self.promised > 0;
        self.lifetime.is_over(self.owner.is_some(), has_links, has_messages)
    }

    /// Whether it is to be looked at when a message is gone for good: somebody waits for the room
    /// or for the next of a group, or it goes with its last message.
    pub(crate) fn awaits_room(&self) -> bool {
        self.is_tight || self.groups.is_some() || self.lifetime == Lifetime::NoMessages
    }
}
