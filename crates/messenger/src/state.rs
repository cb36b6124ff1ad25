//! All of a messenger: peers, links, store, windows. Behind one lock, held for moments only.

use crate::accounts::Accounts;
use crate::failures::{Failures, Fate};
use crate::incoming::{Origin, Place, Received};
use crate::options::Builder;
use crate::outgoing::Stored;
use crate::reconnect::Attempts;
use crate::tracker::{Counts, Number, Status, Tracker};
use crate::window::Window;
use crate::{Error, PeerId, SenderId, SubscriptionId};
use hopline_driver::engine::wire::Serial;
use hopline_driver::engine::{LinkId, SessionId};
use hopline_driver::timeline::{ClockDomain, Instant};
use hopline_driver::{Clock, Io, node};
use slab::Slab;
use slotmap::{SecondaryMap, SlotMap};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Outcomes that are kept until somebody asks; the oldest go first.
pub(crate) const OUTCOMES_MAX: usize = 65_536;

/// The end of one message, and how long it took.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// From the put to the outcome; for settled ones how long they waited to be handed to the
    /// connection, 0 for those that did not.
    pub delay_ns: i64,
    /// Whether it was accepted, or sent settled.
    pub good: bool,
}

/// What a link is to the messenger.
#[derive(Copy, Clone, Debug)]
pub(crate) enum End {
    Sender(SenderId),
    Subscription(SubscriptionId),
}

/// A connection, or one that is being made.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Host and port, for people.
    pub(crate) name: String,
    /// Its container-id, once it has opened.
    pub(crate) container: Arc<str>,
    pub(crate) io: Option<Io>,
    pub(crate) session: Option<SessionId>,
    pub(crate) links: SecondaryMap<LinkId, End>,
    pub(crate) wake: Arc<Notify>,
    /// Its task will look at everything before it sleeps.
    pub(crate) is_awake: bool,
    /// A peer that connected to us.
    pub(crate) is_inbound: bool,
    /// When both ends had opened.
    pub(crate) opened_at: Option<Instant>,
    pub(crate) attempts: Attempts,
}

impl Peer {
    pub(crate) fn new(name: String, is_inbound: bool) -> Self {
        Self {
            name,
            container: Arc::from(""),
            io: None,
            session: None,
            links: SecondaryMap::new(),
            wake: Arc::default(),
            is_awake: false,
            is_inbound,
            opened_at: None,
            attempts: Attempts::default(),
        }
    }

    /// Sees to it that what is ready is written, once for all that is done until then.
    pub(crate) fn wake(&mut self) {
        if !std::mem::replace(&mut self.is_awake, true) {
            self.wake.notify_one();
        }
    }
}

/// Where messages of one address go.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) address: String,
    /// The peer that it leads to; none for an address of our own.
    pub(crate) peer: Option<PeerId>,
    /// The node at the peer.
    pub(crate) node: String,
    /// Attached links: one at a peer, any number for an address of our own.
    pub(crate) links: VecDeque<(PeerId, LinkId)>,
    pub(crate) queue: VecDeque<Stored>,
    pub(crate) fate: Fate,
}

/// A source of messages.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) address: Arc<str>,
    pub(crate) node: String,
    pub(crate) peer: PeerId,
    pub(crate) link: Option<LinkId>,
    /// Attached at both ends.
    pub(crate) is_attached: bool,
    /// It was attached on a connection before this one.
    pub(crate) is_resumed: bool,
    /// The sender was asked to use up its credit; until it has, none is granted.
    pub(crate) is_draining: bool,
    /// Messages of it that wait for `get`.
    pub(crate) waiting: u32,
    /// What is left of the last demand.
    pub(crate) demand: u32,
    /// Deliveries that have no outcome, oldest first, with their numbers.
    pub(crate) unsettled: VecDeque<(Serial, u64)>,
    /// Of the messages that came last.
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) fate: Fate,
}

/// A message that was sent and not settled.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) tracker: u64,
    pub(crate) sender: SenderId,
    pub(crate) link: (PeerId, LinkId),
    pub(crate) octets: usize,
    pub(crate) put_at: Instant,
}

/// A message that was put.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) status: Status,
    pub(crate) is_stored: bool,
}

/// How many messages subscriptions may be sent.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Demand {
    /// As many as the builder's credit, topped up.
    Auto,
    /// So many each, and no more until told otherwise.
    Each(u32),
}

/// Of the connections made to others: TLS, user, host and port.
pub(crate) type Host = (bool, Option<String>, String);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Builder,
    pub(crate) clock: Clock,
    /// Which clock that is, for peers that read another one.
    pub(crate) clock_domain: ClockDomain,
    pub(crate) node: Arc<[u8]>,
    pub(crate) id_base: [u8; 8],
    pub(crate) timelines: u64,
    pub(crate) puts: u32,
    pub(crate) peers: SlotMap<PeerId, Peer>,
    pub(crate) hosts: HashMap<Host, PeerId>,
    /// Who takes the place of a connection that is gone, and how long to wait before it is made.
    pub(crate) successors: HashMap<PeerId, (PeerId, Duration)>,
    pub(crate) senders: SlotMap<SenderId, Sender>,
    pub(crate) by_address: HashMap<String, SenderId, foldhash::fast::RandomState>,
    pub(crate) subscriptions: SlotMap<SubscriptionId, Subscription>,
    pub(crate) incoming: VecDeque<Received>,
    pub(crate) incoming_window: Window<(Place, Status)>,
    /// Where bare messages are encoded, used again for each.
    pub(crate) scratch: Vec<u8>,
    pub(crate) in_flight: Slab<InFlight>,
    pub(crate) outgoing_window: Window<Put>,
    /// Messages and octets that were put and have no outcome.
    pub(crate) stored: (usize, usize),
    pub(crate) counts: Counts,
    pub(crate) outcomes: VecDeque<Outcome>,
    pub(crate) accounts: Accounts,
    pub(crate) send_failures: Failures,
    pub(crate) receive_failures: Failures,
    pub(crate) demand: Demand,
    pub(crate) listeners: Vec<JoinHandle<()>>,
    /// No new messages, addresses or connections.
    pub(crate) is_stopping: bool,
    /// All connections are being closed, and none is made any more.
    pub(crate) is_closed: bool,
    /// Somebody who waits may be able to go on.
    pub(crate) is_changed: bool,
}

impl State {
    pub(crate) fn new(options: Builder) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *uuid::Uuid::new_v4().as_bytes();
        let node = node(options.name.clone());
        Self {
            clock: Clock,
            node: node.record().into(),
            clock_domain: node.clock,
            id_base: [a, b, c, d, e, f, g, h],
            timelines: 0,
            puts: 0,
            peers: SlotMap::with_key(),
            hosts: HashMap::new(),
            successors: HashMap::new(),
            senders: SlotMap::with_key(),
            by_address: HashMap::default(),
            subscriptions: SlotMap::with_key(),
            incoming: VecDeque::new(),
            incoming_window: Window::new(options.incoming_window),
            scratch: Vec::new(),
            in_flight: Slab::new(),
            outgoing_window: Window::new(options.outgoing_window),
            stored: (0, 0),
            counts: Counts::default(),
            outcomes: VecDeque::new(),
            accounts: Accounts::default(),
            send_failures: Failures::default(),
            receive_failures: Failures::default(),
            demand: Demand::Auto,
            listeners: Vec::new(),
            is_stopping: false,
            is_closed: false,
            is_changed: false,
            options,
        }
    }

    pub(crate) fn io(&mut self, peer: PeerId) -> Option<&mut Io> {
        self.peers.get_mut(peer)?.io.as_mut()
    }

    pub(crate) fn status(&self, tracker: Tracker) -> Status {
        let status = match tracker.number() {
            Number::Outgoing(number) => self.outgoing_window.get(number).map(|put| &put.status),
            Number::Incoming(number) => self.incoming_window.get(number).map(|(_, status)| status),
        };
        status.cloned().unwrap_or(Status::Unknown)
    }

    pub(crate) fn is_stored(&self, tracker: Tracker) -> bool {
        match tracker.number() {
            Number::Outgoing(number) => {
                self.outgoing_window.get(number).is_some_and(|put| put.is_stored)
            }
            Number::Incoming(_) => false,
        }
    }

    /// Messages in the store that no connection has taken.
    pub(crate) fn unsent(&self) -> usize {
        self.stored.0.saturating_sub(self.in_flight.len())
    }

    /// From here on nothing new is begun, and no more messages are asked for.
    pub(crate) fn begin_stop(&mut self) {
        self.is_stopping = true;
        self.set_demand(Demand::Each(0));
    }

    /// Nothing that has no outcome by now will get one.
    pub(crate) fn abort_all(&mut self) {
        let senders: Vec<_> = self.senders.keys().collect();
        senders.into_iter().for_each(|id| self.abort_sender(id, Error::Stopped));
        self.abort_rest();
    }

    /// Closes all connections; their tasks write what is ready and end.
    pub(crate) fn close_all(&mut self) {
        (self.is_stopping, self.is_closed) = (true, true);
        let now = self.clock.now();
        for peer in self.peers.values_mut() {
            if let Some(io) = peer.io.as_mut() {
                io.engine_mut().close(None, now);
            }
            peer.wake();
        }
        for listener in self.listeners.drain(..) {
            listener.abort();
        }
    }
}
