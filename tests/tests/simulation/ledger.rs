//! What is known of each message, and what may not happen to it.

use hopline_broker::simulation::peer::wire::Value;
use hopline_broker::simulation::peer::wire::codec::Encode;
use hopline_broker::simulation::peer::wire::message::{Header, Layout, Message, Properties};
use hopline_broker::simulation::timeline::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where rejected, expired and failed messages go, if they go anywhere.
pub const DEAD: &str = "dead";

/// Where consumers may take settled messages, which are lost with their connection.
pub const LOOSE: &str = "loose";

/// Where messages of a higher priority come first.
pub const PRIORITY: &str = "made";

/// Kinds of messages that selectors tell apart.
pub const PARTS: i32 = 3;

/// Number of a link, of all links that ever were.
pub type Uid = u32;

/// What the publisher was told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Nothing,
    Accepted,
    Refused,
}

/// How far a message that is sent in a transaction has got.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Post {
    /// It is sent in none.
    None,
    Held,
    /// The transaction is discharged, and not as failed: it may come.
    Due,
    Over,
    /// It was rolled back: it never comes.
    Undone,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub node: String,
    pub publisher: Uid,
    /// 9 comes first, where priorities count.
    pub priority: u8,
    /// What selectors ask for.
    pub part: i32,
    pub expires: Option<Instant>,
    pub told: Told,
    /// The link that has it and owes an outcome.
    pub holder: Option<Uid>,
    /// A consumer accepted it; the broker may not have heard so.
    pub accepted: bool,
    /// A consumer rejected it; the broker may not have heard so.
    pub rejected: bool,
    /// The broker has heard one of both.
    pub done: bool,
    pub post: Post,
    /// A consumer accepted it in a transaction that is not discharged.
    pub is_retired: bool,
    /// Some link is not to get it again.
    pub barred: bool,
    /// It was received as a dead letter.
    pub dead: bool,
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Messages may have gone with a link: one that took them settled, or owned the node.
    pub is_lossy: bool,
    /// Deliveries may have failed.
    pub has_failures: bool,
}

#[derive(Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    nodes: BTreeMap<String, Node>,
    pub has_dead_letters: bool,
    pub max_deliveries: Option<u32>,
    pub deliveries: u64,
}

/// What is sent: the number of the message stands at its end.
#[derive(Clone, Debug)]
pub struct Draft {
    pub node: String,
    pub publisher: Uid,
    /// The publisher's link names no node, so the message does.
    pub relayed: bool,
    pub priority: u8,
    pub ttl: Option<Duration>,
    /// Octets of filler.
    pub size: usize,
}

/// The number and the header of a message that was received.
pub fn read(payload: &[u8]) -> (usize, Header) {
    let (_, number) = payload.split_last_chunk::<8>().expect("a message of ours");
    let header = Layout::scan(payload).expect("a whole message").header;
    (u64::from_be_bytes(*number) as usize, header.expect("it was sent with a header"))
}

impl Ledger {
    pub fn new(has_dead_letters: bool, max_deliveries: Option<u32>) -> Self {
        Self { has_dead_letters, max_deliveries, ..Self::default() }
    }

    /// Enters a message; returns its number and octets.
    pub fn write(&mut self, draft: Draft, now: Instant) -> (usize, Vec<u8>) {
        let number = self.entries.len();
        let Draft { node, publisher, relayed, priority, ttl, size } = draft;
        let part = number as i32 % PARTS;
        let mut body = vec![7; size];
        body.extend_from_slice(&(number as u64).to_be_bytes());
        let ttl_ms = ttl.map(|ttl| ttl.as_millis() as u32);
        let message = Message {
            // A header of its own makes the broker tell who acquires it first.
            header: Header { durable: true, priority, ttl: ttl_ms, ..Header::default() },
            properties: Properties { to: relayed.then(|| node.clone()), ..Properties::default() },
            application_properties: vec![("part".into(), Value::Int(part))],
            ..Message::data(body)
        };
        let mut octets = Vec::new();
        message.encode(&mut octets);
        self.entries.push(Entry {
            node,
            publisher,
            priority,
            part,
            expires: ttl.map(|ttl| now.saturating_add(ttl)),
            told: Told::Nothing,
            holder: None,
            accepted: false,
            rejected: false,
            done: false,
            post: Post::None,
            is_retired: false,
            barred: false,
            dead: false,
        });
        (number, octets)
    }

    pub fn entry(&mut self, number: usize) -> &mut Entry {
        &mut self.entries[number]
    }

    pub fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries.iter().enumerate()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn node(&mut self, address: &str) -> &mut Node {
        self.nodes.entry(address.to_owned()).or_default()
    }

    pub fn is_lossy(&self, address: &str) -> bool {
        self.nodes.get(address).is_some_and(|node| node.is_lossy)
    }

    /// The publisher is told.
    pub fn tell(&mut self, number: usize, told: Told) {
        let entry = &mut self.entries[number];
        assert_eq!(entry.told, Told::Nothing, "message {number} was told twice: {told:?}");
        entry.told = told;
    }

    /// A consumer of a queue gets a message.
    pub fn deliver(&mut self, number: usize, at: &str, to: Uid, settled: bool) {
        let entry = &self.entries[number];
        assert_ne!(entry.told, Told::Refused, "message {number} was refused, and delivered");
        if at == DEAD && entry.node != DEAD {
            return self.bury(number);
        }
        assert_eq!(entry.node, at, "message {number} went astray");
        assert!(!entry.done, "message {number} was done with, and delivered again: {entry:?}");
        assert!(!entry.dead, "message {number} was a dead letter, and delivered again: {entry:?}");
        assert_eq!(entry.holder, None, "message {number} is out twice, the second time to {to}");
        let entry = &mut self.entries[number];
        entry.is_retired = false;
        if settled {
            (entry.accepted, entry.done) = (true, true);
        } else {
            entry.holder = Some(to);
        }
    }

    /// A subscriber's copy is among the dead letters.
    pub fn deliver_copy(&mut self, number: usize) {
        self.bury(number);
    }

    fn bury(&mut self, number: usize) {
        let entry = &self.entries[number];
        let failed = self.max_deliveries.is_some()
            && self.nodes.get(&entry.node).is_some_and(|node| node.has_failures);
        let why = entry.rejected || entry.expires.is_some() || failed;
        assert!(self.has_dead_letters && why, "message {number} is no dead letter: {entry:?}");
        let is_copy = entry.node.starts_with("topic/");
        assert!(is_copy || !entry.dead, "message {number} is a dead letter twice");
        self.entries[number].dead = true;
    }

    /// Messages that wait in the queue at `address` for anybody who has credit and wants them.
    pub fn waiting(&self, address: &str, wants: impl Fn(&Entry) -> bool) -> BTreeSet<usize> {
        let waits = |(_, entry): &(usize, &Entry)| {
            entry.node == address
                && wants(entry)
                && entry.told == Told::Accepted
                && entry.expires.is_none()
                && entry.holder.is_none()
                && !(entry.is_retired
                    || entry.accepted
                    || entry.rejected
                    || entry.barred
                    || entry.dead)
        };
        let is_exact = !self.is_lossy(address) && self.max_deliveries.is_none();
        let entries = self.entries().filter(|_| is_exact);
        entries.filter(waits).map(|(number, _)| number).collect()
    }

    /// At the end, when all queues are empty: each message that was accepted has a known fate.
    pub fn audit(&self, now: Instant) {
        for (number, entry) in self.entries() {
            let is_queued = !entry.node.starts_with("topic/") && !self.is_lossy(&entry.node);
            if entry.told != Told::Accepted || !is_queued {
                continue;
            }
            let expired = entry.expires.is_some_and(|at| at <= now);
            let discarded = (expired || entry.rejected) && !self.has_dead_letters;
            let known = entry.accepted || entry.dead || discarded;
            assert!(known, "message {number} is lost: {entry:?}");
            assert_eq!(entry.holder, None, "message {number} was never given back");
        }
    }
}
