//! The way out: from the store to a link that can send, and what becomes of it.

use crate::options::Sampling;
use crate::outgoing::{
    Base, PutOptions, SMALL, Stamping, Stamps, Stored, Terms, carried, encode_bare, write_message,
};
use crate::state::{InFlight, OUTCOMES_MAX, Outcome, Put, Sender, State};
use crate::tracker::Status;
use crate::{Error, PeerId, SenderId};
use bytes::Bytes;
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::{AmqpError, DeliveryTag, condition};
use hopline_driver::engine::{CommandError, LinkId, Outgoing};
use hopline_driver::timeline::{Instant, TimelineId, Wait};
use std::borrow::Cow;
use std::collections::VecDeque;

impl State {
    /// Puts a message into the store of its sender, and sends what can be sent.
    pub(crate) fn put(
        &mut self,
        sender: SenderId,
        message: &Message,
        how: PutOptions,
    ) -> Result<u64, Error> {
        let put_at = self.clock.now();
        let (messages, octets) = self.stored;
        if messages >= self.options.store_messages || octets >= self.options.store_octets {
            return Err(Error::Full { messages, octets });
        }
        let message = &*self.rewritten(message);
        let put = Put { status: Status::Pending, is_stored: true };
        let (tracker, _) = self.outgoing_window.push(put);
        let stamps = self.timeline_base(|| carried(message)).map(|base| {
            let created = how.created.unwrap_or(put_at);
            Stamps { base, due: how.due, created, published: put_at }
        });
        let terms = Terms { tracker, settled: how.settled, put_at, stamps };
        self.counts.put += 1;
        let mut bare = std::mem::take(&mut self.scratch);
        encode_bare(message, &mut bare);
        let free = match bare.len() <= SMALL && self.is_idle(sender) {
            true => self.free_link(sender).ok(),
            false => None,
        };
        match free {
            Some(link) => self.send_now(sender, link, (message, &bare), &terms),
            None if bare.len() <= SMALL => {
                let copy = Bytes::copy_from_slice(&bare);
                self.store(sender, Stored::new(message, copy, terms));
            }
            None => {
                let bare = std::mem::take(&mut bare);
                self.store(sender, Stored::new(message, bare.into(), terms));
            }
        }
        self.scratch = bare;
        Ok(tracker)
    }

    /// Whether nothing waits for the sender's links.
    fn is_idle(&self, id: SenderId) -> bool {
        self.senders.get(id).is_none_or(|sender| sender.queue.is_empty())
    }

    /// The message with another `to`, if it is to have one.
    fn rewritten<'a>(&self, message: &'a Message) -> Cow<'a, Message> {
        let to = message.properties.to.as_deref();
        let Some(rewritten) = to.and_then(|to| self.options.rewrites.rewrite(to)) else {
            return Cow::Borrowed(message);
        };
        let mut message = message.clone();
        message.properties.to = Some(rewritten);
        Cow::Owned(message)
    }

    fn store(&mut self, id: SenderId, mut stored: Stored) {
        self.stored = (self.stored.0 + 1, self.stored.1 + stored.octets());
        if let Some(sender) = self.senders.get_mut(id) {
            if !sender.queue.is_empty() {
                stored.wait = Wait::Order;
            }
            sender.queue.push_back(stored);
        }
        self.pump(id);
    }

    /// Writes a message straight into the outbox of a link that can send.
    fn send_now(
        &mut self,
        id: SenderId,
        (peer_id, link): (PeerId, LinkId),
        message: (&Message, &[u8]),
        terms: &Terms,
    ) {
        let token = self.in_flight.vacant_key() as u64;
        let clock = self.clock;
        let stamping = Stamping { node: &self.node, wait: Wait::None, now: &|| clock.now() };
        let Some(peer) = self.peers.get_mut(peer_id) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        let mut octets = 0;
        let sent = io.engine_mut().send(link, outgoing(terms, token, Bytes::new()), |out| {
            let slot;
            (slot, octets) = write_message(out, message, terms.stamps.as_ref(), &stamping);
            slot
        });
        peer.wake();
        self.stored = (self.stored.0 + 1, self.stored.1 + octets);
        self.went(id, (peer_id, link), terms, octets, (sent.err(), terms.put_at));
    }

    fn timeline_base(&mut self, carried: impl FnOnce() -> Option<Bytes>) -> Option<Base> {
        if self.options.sampling == Sampling::Off {
            return None;
        }
        match (self.options.sampling, carried()) {
            (Sampling::Off, _) | (Sampling::OnlyCarried, None) => None,
            (_, Some(octets)) => Some(Base::Carried(octets)),
            (Sampling::All, None) => Some(Base::New(self.next_timeline())),
            (Sampling::OneIn(n), None) => {
                self.puts = (self.puts + 1) % n.max(1);
                (self.puts == 0).then(|| Base::New(self.next_timeline()))
            }
        }
    }

    fn next_timeline(&mut self) -> TimelineId {
        self.timelines += 1;
        let mut id = [0; 16];
        let (base, number) = id.split_at_mut(8);
        base.copy_from_slice(&self.id_base);
        number.copy_from_slice(&self.timelines.to_be_bytes());
        TimelineId(id)
    }

    /// Sends what a sender's links can send.
    pub(crate) fn pump(&mut self, id: SenderId) {
        if self.is_idle(id) {
            return;
        }
        let now = self.clock.now();
        while !self.is_idle(id) {
            let sent = self.free_link(id).map(|free| self.send_first(id, free, now));
            if let Err(wait) = sent {
                let first = self.senders.get_mut(id).and_then(|sender| sender.queue.front_mut());
                if let Some(first) = first.filter(|first| first.wait == Wait::None) {
                    first.wait = wait;
                }
            }
            if !matches!(sent, Ok(Some(()))) {
                return;
            }
        }
    }

    /// The next link, in turn, that can take a message of the sender; or why there is none.
    fn free_link(&mut self, id: SenderId) -> Result<(PeerId, LinkId), Wait> {
        let mut wait = Wait::NoConsumer;
        let Some(sender) = self.senders.get_mut(id) else { return Err(wait) };
        for (at, (peer, link)) in sender.links.iter().enumerate() {
            let io = self.peers.get(*peer).and_then(|peer| peer.io.as_ref());
            match io.map_or(Some(Wait::NoConsumer), |io| io.engine().send_block(*link)) {
                Some(block) => wait = block,
                None => {
                    let free = (*peer, *link);
                    let links = sender.links.len();
                    if links > 1 {
                        sender.links.rotate_left((at + 1) % links);
                    }
                    return Ok(free);
                }
            }
        }
        Err(wait)
    }

    fn send_first(
        &mut self,
        id: SenderId,
        (peer_id, link): (PeerId, LinkId),
        now: Instant,
    ) -> Option<()> {
        let mut stored = self.senders.get_mut(id)?.queue.pop_front()?;
        let octets = stored.octets();
        let token = self.in_flight.vacant_key() as u64;
        let outgoing = outgoing(&stored.terms, token, std::mem::take(&mut stored.bare));
        let clock = self.clock;
        let stamping = Stamping { node: &self.node, wait: stored.wait, now: &|| clock.now() };
        let peer = self.peers.get_mut(peer_id)?;
        let engine = peer.io.as_mut()?.engine_mut();
        let sent = engine.send(link, outgoing, |out| stored.write_head(out, &stamping));
        peer.wake();
        self.went(id, (peer_id, link), &stored.terms, octets, (sent.err(), now));
        Some(())
    }

    /// A message was given to its link by now, which may have refused it.
    fn went(
        &mut self,
        id: SenderId,
        link: (PeerId, LinkId),
        terms: &Terms,
        octets: usize,
        (refused, now): (Option<CommandError>, Instant),
    ) {
        let (tracker, put_at) = (terms.tracker, terms.put_at);
        let delay_ns = now.since_ns(put_at);
        if let Some(error) = refused {
            let error = AmqpError::new(condition::MESSAGE_SIZE_EXCEEDED, error.to_string());
            self.finish(tracker, octets, Status::Rejected(Some(error)));
            return self.note(delay_ns, false);
        }
        self.counts.sent += 1;
        if terms.settled {
            self.finish(tracker, octets, Status::Settled);
            return self.note(delay_ns, true);
        }
        if let Some(put) = self.outgoing_window.get_mut(tracker) {
            put.is_stored = false;
        }
        self.in_flight.insert(InFlight { tracker, sender: id, link, octets, put_at });
    }

    /// An outcome came.
    pub(crate) fn ended(&mut self, token: u64, status: Status, now: Instant) {
        let key = usize::try_from(token).ok();
        let Some(sent) = key.and_then(|key| self.in_flight.try_remove(key)) else { return };
        let delay_ns = now.since_ns(sent.put_at);
        self.note(delay_ns, matches!(status, Status::Accepted | Status::Settled));
        self.finish(sent.tracker, sent.octets, status);
    }

    fn note(&mut self, delay_ns: i64, good: bool) {
        if self.outcomes.len() == OUTCOMES_MAX {
            self.outcomes.pop_front();
        }
        self.outcomes.push_back(Outcome { delay_ns, good });
    }

    fn finish(&mut self, tracker: u64, octets: usize, status: Status) {
        self.counts.count(&status);
        if let Some(put) = self.outgoing_window.get_mut(tracker) {
            *put = Put { status, is_stored: false };
        }
        let (messages, stored) = self.stored;
        self.stored = (messages.saturating_sub(1), stored.saturating_sub(octets));
        self.is_changed = true;
    }

    /// A sender's way is gone: what was on it will have no outcome.
    pub(crate) fn abort_sender(&mut self, id: SenderId, error: Error) {
        let Some(sender) = self.senders.remove(id) else { return };
        self.by_address.remove(&sender.address);
        let stored =
            sender.queue.iter().map(|stored| (stored.terms.tracker, stored.octets())).collect();
        let aborted = self.abort(stored, |sent| sent.sender == id);
        // Whoever waits for the sender itself learns it from there.
        let _ = sender.fate.set(error.clone());
        if aborted > 0 {
            self.send_failures.push(error);
        }
        self.is_changed = true;
    }

    /// A link of an address of our own is gone: what it carried will have no outcome.
    pub(crate) fn abort_link(&mut self, id: SenderId, link: (PeerId, LinkId)) {
        self.abort(Vec::new(), |sent| sent.link == link);
        self.forget_if_idle(id);
    }

    /// What was sent by senders that are gone themselves.
    pub(crate) fn abort_rest(&mut self) {
        self.abort(Vec::new(), |_| true);
    }

    /// Ends what is `gone` (trackers and octets), and what was sent and `is_gone`; how many.
    pub(crate) fn abort(
        &mut self,
        mut gone: Vec<(u64, usize)>,
        is_gone: impl Fn(&InFlight) -> bool,
    ) -> usize {
        self.in_flight.retain(|_, sent| {
            let is_gone = is_gone(sent);
            if is_gone {
                gone.push((sent.tracker, sent.octets));
            }
            !is_gone
        });
        let aborted = gone.len();
        for (tracker, octets) in gone {
            self.finish(tracker, octets, Status::Aborted);
        }
        aborted
    }

    /// The sender of an address of our own.
    pub(crate) fn local_sender(&mut self, node: &str) -> SenderId {
        match self.by_address.get(node) {
            Some(id) => *id,
            None => self.new_sender(node, node, None),
        }
    }

    pub(crate) fn new_sender(
        &mut self,
        address: &str,
        node: &str,
        peer: Option<PeerId>,
    ) -> SenderId {
        let id = self.senders.insert(Sender {
            address: address.to_owned(),
            peer,
            node: node.to_owned(),
            links: VecDeque::new(),
            queue: VecDeque::new(),
            fate: Default::default(),
        });
        self.by_address.insert(address.to_owned(), id);
        id
    }

    /// Peers may name any number of our addresses; those without link and message are forgotten.
    fn forget_if_idle(&mut self, id: SenderId) {
        let idle = |sender: &Sender| sender.links.is_empty() && sender.queue.is_empty();
        if self.senders.get(id).is_some_and(idle)
            && let Some(sender) = self.senders.remove(id)
        {
            self.by_address.remove(&sender.address);
        }
    }

    /// What sending waits for, for people.
    pub(crate) fn outgoing_summary(&self) -> String {
        let waiting = self.senders.values().find(|sender| !sender.queue.is_empty());
        let first = waiting.map_or_else(String::new, |sender| {
            let why = match sender.queue.front().map(|stored| stored.wait) {
                Some(Wait::NoConsumer) => "that no receiver is attached to",
                Some(Wait::NoCredit | Wait::Order) => "whose receiver grants no credit",
                _ => "whose receiver does not read",
            };
            format!(", such as to {:?}, {why}", sender.node)
        });
        let (messages, unsent) = (self.stored.0, self.unsent());
        format!("{messages} messages have no outcome, {unsent} of them could not be sent{first}")
    }
}

fn outgoing(terms: &Terms, token: u64, bare: Bytes) -> Outgoing {
    let tag = DeliveryTag::from(terms.tracker);
    Outgoing { tag, settled: terms.settled, format: 0, token, bare }
}
