//! A client: an engine, its way to the broker, and what its user remembers of each link.

use crate::ledger::{Entry, PRIORITY, Post, Uid};
use hopline_broker::simulation::PeerId;
use hopline_broker::simulation::peer::wire::{Role, Serial};
use hopline_broker::simulation::peer::{ClientSasl, Config, Connection, LinkId, SessionId};
use hopline_broker::simulation::timeline::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;

use hopline_broker::simulation::PipeEnd;

/// What a link is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Publisher,
    /// A publisher whose messages name their nodes.
    Relay,
    Consumer,
    /// It looks and does not take.
    Browser,
    /// A consumer of a topic.
    Subscriber,
    /// It declares and discharges transactions.
    Control,
}

/// A message of a subscriber, who has a copy of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    Held,
    GivenBack,
    Done,
}

#[derive(Debug)]
pub struct Link {
    pub uid: Uid,
    pub name: String,
    pub kind: Kind,
    /// Empty for a dynamic node that has no name yet.
    pub node: String,
    /// The node is there for this link.
    pub owns_node: bool,
    /// Deliveries come, or go, settled.
    pub settled: Option<bool>,
    /// The one part of messages that its selector lets through.
    pub part: Option<i32>,
    /// It takes what is at rest: in order, whatever came back meanwhile.
    pub is_last: bool,
    /// It settles once the broker has.
    pub settles_second: bool,
    pub is_attached: bool,
    /// The broker gives it up, or may have: another link has taken its name.
    pub is_given_up: bool,
    /// Messages that were there when it was known to be attached.
    pub since: usize,
    pub received: u64,
    /// How many deliveries may come, by what was granted.
    pub limit: u64,
    pub is_draining: bool,
    /// The last message of each publisher and priority.
    pub last: BTreeMap<(Uid, u8), usize>,
    /// The lowest priority so far.
    pub lowest: u8,
    /// Deliveries that wait for an outcome.
    pub unsettled: Vec<(Serial, usize)>,
    /// What was sent to a coordinator and has no outcome yet.
    pub unsettled_sent: Vec<u64>,
    pub copies: BTreeMap<usize, Copy>,
    /// Copies that are not to come again.
    pub barred: BTreeSet<usize>,
}

impl Link {
    pub fn new(uid: Uid, name: String, kind: Kind, node: String) -> Self {
        Self {
            uid,
            name,
            kind,
            owns_node: false,
            node,
            settled: None,
            part: None,
            is_last: false,
            settles_second: false,
            is_attached: false,
            is_given_up: false,
            since: 0,
            received: 0,
            limit: 0,
            is_draining: false,
            last: BTreeMap::new(),
            lowest: u8::MAX,
            unsettled: Vec::new(),
            unsettled_sent: Vec::new(),
            copies: BTreeMap::new(),
            barred: BTreeSet::new(),
        }
    }

    /// Whether its selector lets a message through.
    pub fn wants(&self, entry: &Entry) -> bool {
        self.part.is_none_or(|part| part == entry.part)
    }

    /// A message has come: in its order, if that is known.
    pub fn check_order(&mut self, number: usize, entry: &Entry, is_first: bool) {
        let uid = self.uid;
        // A message of a transaction comes to its queue by the commit.
        if entry.post != Post::None || !(is_first || self.kind == Kind::Browser || self.is_last) {
            return;
        }
        let level = if self.node == PRIORITY { entry.priority } else { 0 };
        let last = self.last.insert((entry.publisher, level), number);
        assert!(last.is_none_or(|last| last < number), "link {uid} got {number} after {last:?}");
        if self.is_last {
            assert!(level <= self.lowest, "link {uid} got {number} of priority {level} too late");
            self.lowest = level;
        }
    }

    pub fn role(&self) -> Role {
        match self.kind {
            Kind::Publisher | Kind::Relay | Kind::Control => Role::Sender,
            Kind::Consumer | Kind::Browser | Kind::Subscriber => Role::Receiver,
        }
    }
}

/// What the user owes its engine, to be done when it gets to it.
#[derive(Debug)]
pub enum Owed {
    Detach(LinkId, bool),
    Settle(LinkId, Serial),
}

/// A message that a consumer is done with: the broker knows once it has read so far.
#[derive(Debug)]
pub struct Done {
    pub uid: Uid,
    pub number: usize,
    pub offset: Option<u64>,
}

#[derive(Debug)]
pub struct Client {
    pub engine: Connection,
    pub peer: PeerId,
    pub pipe: PipeEnd,
    /// Octets between the client and the broker's socket.
    pub flight: Vec<u8>,
    pub sessions: Vec<SessionId>,
    pub links: BTreeMap<LinkId, Link>,
    pub owed: Vec<Owed>,
    pub done: Vec<Done>,
    pub was_open: bool,
    pub is_closing: bool,
}

impl Client {
    pub fn new(config: Config, (peer, pipe): (PeerId, PipeEnd), now: Instant) -> Self {
        Self {
            engine: Connection::client(config, ClientSasl::Anonymous, now),
            peer,
            pipe,
            flight: Vec::new(),
            sessions: Vec::new(),
            links: BTreeMap::new(),
            owed: Vec::new(),
            done: Vec::new(),
            was_open: false,
            is_closing: false,
        }
    }

    /// The ids of the links for which `picks` holds.
    pub fn links(&self, picks: impl Fn(&Link) -> bool) -> Vec<LinkId> {
        self.links.iter().filter(|(_, link)| picks(link)).map(|(id, _)| *id).collect()
    }

    /// Lets go of what is ready, at most `max` octets; returns how many.
    pub fn transmit(&mut self, max: usize, now: Instant) -> usize {
        self.engine.poll_transmit();
        let outbox = self.engine.outbox();
        let end = outbox.written() + outbox.len() as u64;
        self.done.iter_mut().for_each(|done| {
            done.offset.get_or_insert(end);
        });
        let mut slices = [IoSlice::new(&[]); 64];
        let n = outbox.slices(&mut slices);
        let mut taken = 0;
        for slice in &slices[..n] {
            let part = slice.get(..max - taken).unwrap_or(slice);
            self.flight.extend_from_slice(part);
            taken += part.len();
        }
        self.engine.wrote(taken, now);
        taken
    }

    /// Brings octets to the broker's socket, at most `max`; returns how many.
    pub fn push(&mut self, max: usize) -> usize {
        let n = self.flight.len().min(max);
        self.pipe.push(&self.flight[..n]);
        self.flight.drain(..n);
        n
    }

    /// Takes octets that the broker wrote, at most `max`; returns how many.
    pub fn pull(&mut self, max: usize, now: Instant) -> usize {
        if !self.engine.wants_read() {
            return 0;
        }
        let octets = self.pipe.take(max);
        if !octets.is_empty() {
            self.engine.read_buffer().extend_from_slice(&octets);
            self.engine.handle_read(now);
        }
        octets.len()
    }

    /// What the broker has been told of the messages that are done with, after a turn of its.
    pub fn take_done(&mut self) -> Vec<usize> {
        let pushed = self.engine.outbox().written() - self.flight.len() as u64;
        let read = pushed - self.pipe.unread() as u64;
        let is_read = |done: &mut Done| done.offset.is_some_and(|offset| offset <= read);
        self.done.extract_if(.., is_read).map(|done| done.number).collect()
    }
}
