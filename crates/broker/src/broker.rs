//! The broker's state, and one turn of one connection.

use crate::config::{Config, Sampling};
use crate::expiry::Scope;
use crate::forward::{Forward, path};
use crate::inbound::Producer;
use crate::lifetime::Lifetime;
use crate::links::{Container, LinkKey, Named};
use crate::node::Topic;
use crate::outbound::Consumer;
use crate::queue::Queue;
use crate::run::Run;
use crate::termini::Termini;
use crate::transaction::Transaction;
use crate::{ConnId, ConsumerId, ProducerId, QueueId, TransactionId};
use hopline_driver::engine::wire::{AmqpError, condition};
use hopline_driver::engine::{Event, LinkId};
use hopline_driver::timeline::{Instant, Node as TimelineNode, Wait};
use hopline_driver::{Clock, Flush, Io, Read, node};
use slotmap::{SecondaryMap, SlotMap};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long a connection that is over may take to write its last octets.
const LAST: Duration = Duration::from_secs(2);

/// What a link is to the broker.
#[derive(Copy, Clone, Debug)]
pub(crate) enum End {
    Producer(ProducerId),
    Consumer(ConsumerId),
    /// Transactions are declared and discharged on it.
    Coordinator {
        /// Rejected is among the outcomes of its source.
        rejects: bool,
    },
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) io: Io,
    pub(crate) links: SecondaryMap<LinkId, End>,
    pub(crate) names: SecondaryMap<LinkId, Named>,
    /// Who it is; known once `open` has come, and so before there is any link.
    pub(crate) container: Container,
    /// Those that are not discharged.
    pub(crate) transactions: BTreeSet<TransactionId>,
    /// What it was made for, if we have made it.
    pub(crate) forward: Option<Rc<Forward>>,
    /// Wakes its task: another one has found its socket full, or has ended it.
    pub(crate) wake: Rc<Notify>,
    /// Consumers that have credit but wait for its window or socket.
    pub(crate) blocked: Vec<ConsumerId>,
    /// It is over, and has until then to write what is left.
    until: Option<Instant>,
    /// One of them has not looked at all messages of its queue.
    pub(crate) is_behind: bool,
    /// One of them waits for the socket.
    pub(crate) is_throttled: bool,
    pub(crate) is_dirty: bool,
}

impl Conn {
    /// A consumer has credit but can't be sent to.
    pub(crate) fn block(&mut self, consumer: ConsumerId, link: LinkId, wait: Wait) {
        // One that has credit waits for outcomes: as much is unsettled as may be.
        let awaits_outcomes = wait == Wait::NoCredit && self.io.engine().credit(link) > 0;
        if awaits_outcomes || matches!(wait, Wait::SessionWindow | Wait::SocketFull) {
            self.blocked.push(consumer);
            self.is_throttled |= wait == Wait::SocketFull;
        }
    }

    /// Whether another turn is due: a consumer has not looked at all messages, or waited for the
    /// socket, and the socket has taken all.
    pub(crate) fn can_go_on(&self) -> bool {
        self.is_behind || (self.is_throttled && !self.io.wants_write())
    }

    /// When a turn is due whatever happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.io.engine().poll_timeout().or(self.until)
    }

    /// Gives up on a peer that has not read what was left for it in time.
    fn give_up_if_late(&mut self, now: Instant) {
        if self.io.engine().is_over() && *self.until.get_or_insert(now.saturating_add(LAST)) <= now
        {
            self.io.abandon();
        }
    }
}

/// Messages that did not reach a consumer, by reason.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) expired: u64,
    pub(crate) rejected: u64,
    pub(crate) overfull: u64,
    /// Turned away, as they go in a circle between brokers.
    pub(crate) circling: u64,
}

/// All of it. Owned by one thread.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    /// Our name in the paths of forwarded messages.
    pub(crate) own_name: String,
    /// Our node record, for timelines.
    pub(crate) node: Vec<u8>,
    pub(crate) wall_offset_ns: i64,
    pub(crate) conns: SlotMap<ConnId, Conn>,
    pub(crate) producers: SlotMap<ProducerId, Producer>,
    pub(crate) consumers: SlotMap<ConsumerId, Consumer>,
    pub(crate) queues: SlotMap<QueueId, Queue>,
    pub(crate) addresses: HashMap<Rc<str>, QueueId>,
    pub(crate) topics: HashMap<Rc<str>, Topic>,
    /// Who has which link name.
    pub(crate) names: HashMap<LinkKey, (ConnId, LinkId)>,
    pub(crate) termini: Termini,
    pub(crate) transactions: SlotMap<TransactionId, Transaction>,
    pub(crate) dirty: Vec<ConnId>,
    pub(crate) listed: Vec<QueueId>,
    pub(crate) losses: Losses,
    /// Forwards whose peers have given a message back: they begin again at the next sweep.
    pub(crate) resting: Vec<ConsumerId>,
    /// Forwards whose peers have not attached the link yet, and until when they may.
    pub(crate) attaching: Vec<(ConnId, Instant)>,
    sampled: u32,
    /// What is owed for the deliveries that came last.
    pub(crate) run: Option<Run>,
    pub(crate) has_told_of_durable: bool,
    /// Whose turn it is. Its own task looks after it when the turn is over.
    turn_of: Option<ConnId>,
}

impl Broker {
    pub(crate) fn new(config: Config) -> Self {
        let node: TimelineNode = node(config.name.clone());
        let mut broker = Self {
            own_name: path::own_name(&config.name),
            node: node.record(),
            wall_offset_ns: node.clock.wall_offset_ns,
            clock: Clock,
            conns: SlotMap::with_key(),
            producers: SlotMap::with_key(),
            consumers: SlotMap::with_key(),
            queues: SlotMap::with_key(),
            addresses: HashMap::new(),
            topics: HashMap::new(),
            names: HashMap::new(),
            termini: Termini::default(),
            transactions: SlotMap::with_key(),
            dirty: Vec::new(),
            listed: Vec::new(),
            losses: Losses::default(),
            resting: Vec::new(),
            attaching: Vec::new(),
            sampled: 0,
            run: None,
            has_told_of_durable: false,
            turn_of: None,
            config,
        };
        for address in broker.config.nodes.queues.clone() {
            if let Err(error) = broker.create_queue(&address, Lifetime::Permanent) {
                tracing::warn!(%address, %error, "a configured queue could not be made");
            }
        }
        broker
    }

    /// Takes a connection in.
    pub(crate) fn add(&mut self, io: Io) -> (ConnId, Rc<Notify>) {
        let wake = Rc::new(Notify::new());
        let id = self.conns.insert(Conn {
            io,
            links: SecondaryMap::new(),
            names: SecondaryMap::new(),
            container: Container::new(None, ""),
            transactions: BTreeSet::new(),
            forward: None,
            wake: wake.clone(),
            blocked: Vec::new(),
            until: None,
            is_behind: false,
            is_throttled: false,
            is_dirty: false,
        });
        (id, wake)
    }

    /// Something may be possible on a connection: read, act, forward, write.
    pub(crate) fn turn(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        self.turn_of = Some(id);
        let now = self.clock.now();
        if conn.io.engine().poll_timeout().is_some_and(|deadline| deadline <= now) {
            conn.io.engine_mut().handle_timeout(now);
        }
        // What could not be answered before may be decoded once there is room for its answers.
        if conn.io.wants_write() {
            self.flush(id);
        }
        let Some(conn) = self.conns.get_mut(id) else { return };
        let read = conn.io.read();
        self.take_events(id);
        if read == Read::End
            && let Some(conn) = self.conns.get_mut(id)
        {
            conn.io.engine_mut().handle_eof();
            self.take_events(id);
        }
        self.unblock(id);
        self.mark_dirty(id);
        self.settle();
        if let Some(conn) = self.conns.get_mut(id) {
            conn.give_up_if_late(now);
        }
        self.turn_of = None;
    }

    fn take_events(&mut self, id: ConnId) {
        let now = self.clock.now();
        while let Some(conn) = self.conns.get_mut(id)
            && let Some(event) = conn.io.engine_mut().poll_event(now)
        {
            if let Event::Delivery(delivery) = event {
                self.on_delivery(id, delivery, now);
            } else {
                self.end_run();
                self.on_event(id, event, now);
            }
        }
        self.end_run();
    }

    fn on_event(&mut self, id: ConnId, event: Event, now: Instant) {
        match event {
            Event::Delivery(delivery) => self.on_delivery(id, delivery, now),
            Event::Credit { link, properties } => {
                if self.on_acquisition(id, link, properties.as_deref()) {
                    self.on_credit(id, link);
                }
            }
            Event::Outcome { link, id: delivery, token, state, settled } => {
                self.on_outcome(id, (link, delivery), token, state, settled);
            }
            Event::CreditUsed { link } => self.on_credit_used(id, link),
            Event::AttachRequest { link, attach } => self.on_attach(id, link, *attach),
            Event::Detached { link, closed, by_peer, error } => {
                let answer = self.on_detached(id, link, (by_peer && closed, error.is_none()));
                if by_peer && let Some(conn) = self.conns.get_mut(id) {
                    conn.io.engine_mut().detach(link, closed, answer);
                }
                // Whoever has ended the link: without it the connection is of no use.
                self.end_forward(id, error.as_deref().map_or(&"detached", |it| it));
            }
            Event::Opened(open) => {
                tracing::debug!(container = open.container_id, "connection opened");
                if let Some(conn) = self.conns.get_mut(id) {
                    conn.container = Container::new(conn.io.engine().user(), &open.container_id);
                }
                self.begin_forward(id);
            }
            Event::Attached { link, attach } => self.on_attached(id, link, &attach),
            Event::SessionEnded { session, .. } => {
                self.on_ended(Scope::Session(id, session));
                self.end_forward(id, &"the session was ended");
            }
            Event::Closed { error, by_peer } => {
                self.on_ended(Scope::Connection(id));
                let conn = self.conns.get(id);
                match (error, conn.and_then(|conn| conn.forward.as_ref())) {
                    (Some(error), Some(forward)) => {
                        let forward = &forward.config.name;
                        tracing::warn!(forward, %error, by_peer, "the forward's connection ended");
                    }
                    (Some(error), None) => tracing::info!(%error, by_peer, "connection ended"),
                    (None, _) => {}
                }
            }
            Event::SessionBegun(_) | Event::PeerSettled { .. } | Event::Drained { .. } => {}
        }
    }

    fn on_ended(&mut self, scope: Scope) {
        self.termini.end(scope, self.clock.now());
        self.expire_termini();
    }

    /// Forwards what can go, then writes what is ready: one write for each connection.
    pub(crate) fn settle(&mut self) {
        // A write that fails ends its connection, and what that held goes to others.
        loop {
            if let Some(queue) = self.listed.pop() {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.is_listed = false;
                }
                self.dispatch(queue);
            } else if let Some(id) = self.next_dirty() {
                self.flush(id);
            } else {
                return;
            }
        }
    }

    /// The connection whose turn it is comes last: an outcome can wait for the time of a write, the
    /// message that it is for can't.
    fn next_dirty(&mut self) -> Option<ConnId> {
        let id = self.dirty.pop()?;
        if self.turn_of == Some(id)
            && let Some(other) = self.dirty.pop()
        {
            self.dirty.push(id);
            return Some(other);
        }
        Some(id)
    }

    fn flush(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.is_dirty = false;
        match conn.io.flush() {
            // A task that is woken by itself would never let the others run.
            Ok(_) if self.turn_of == Some(id) => {}
            Ok(Flush::Done) if !conn.is_throttled => {}
            Ok(_) => conn.wake.notify_one(),
            Err(error) => {
                tracing::debug!(%error, "write failed");
                conn.io.abandon();
                conn.io.engine_mut().handle_eof();
                conn.wake.notify_one();
                self.take_events(id);
            }
        }
    }

    /// The connection has something to write.
    pub(crate) fn mark_dirty(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(id)
            && !std::mem::replace(&mut conn.is_dirty, true)
        {
            self.dirty.push(id);
        }
    }

    /// The queue is to be looked at once the events are taken.
    pub(crate) fn list(&mut self, id: QueueId) {
        if let Some(queue) = self.queues.get_mut(id)
            && !std::mem::replace(&mut queue.is_listed, true)
        {
            self.listed.push(id);
        }
    }

    /// The connection got on: consumers that waited for it may send again.
    fn unblock(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.is_throttled = false;
        conn.is_behind = false;
        for consumer in std::mem::take(&mut conn.blocked) {
            self.make_ready(consumer);
        }
    }

    /// Takes a connection out once it is finished.
    pub(crate) fn remove_if_finished(&mut self, id: ConnId) -> Option<Box<Io>> {
        self.conns.get(id).filter(|conn| conn.io.is_finished())?;
        self.conns.remove(id).map(|conn| Box::new(conn.io))
    }

    /// Closes all connections because the broker stops.
    pub(crate) fn close_all(&mut self) {
        let now = self.clock.now();
        let ids: Vec<_> = self.conns.keys().collect();
        for id in ids {
            if let Some(conn) = self.conns.get_mut(id) {
                let error = AmqpError::new(condition::CONNECTION_FORCED, "the broker is stopping");
                conn.io.engine_mut().close(Some(error), now);
                conn.wake.notify_one();
            }
            self.mark_dirty(id);
        }
        self.settle();
    }

    /// Removes what has expired: termini, transactions, and messages in all queues.
    pub(crate) fn sweep(&mut self) {
        self.expire_termini();
        let now = self.clock.now();
        self.time_out_transactions(now);
        self.wake_forwards();
        self.end_late_forwards(now);
        let ids: Vec<_> =
            self.queues.iter().filter(|(_, q)| q.may_expire()).map(|(id, _)| id).collect();
        for id in ids {
            self.expire(id, now);
        }
        self.settle();
    }

    /// Whether a message without a timeline is given one.
    pub(crate) fn samples(&mut self) -> bool {
        match self.config.timelines {
            Sampling::All => true,
            Sampling::OneIn(n) => {
                self.sampled = (self.sampled + 1) % n.max(1);
                self.sampled == 0
            }
            Sampling::Carried | Sampling::Off => false,
        }
    }
}
