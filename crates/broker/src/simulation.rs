//! The broker without sockets, tasks or a real clock (feature `simulation`): who holds a [`Sim`]
//! says which connection has its turn, and when.
//!
//! The broker itself is the one that serves; only what wakes it is played here. Calls in the same
//! order have the same effects, but for the names of dynamic nodes, which are random.

use crate::ConnId;
use crate::broker::{Broker, End};
use crate::config::Config;
use crate::server::engine_config;
use hopline_driver::engine::{self, Anonymous, Connection};
use hopline_driver::simulation::{hold_clock, pipe};
use hopline_driver::timeline::Instant;
use hopline_driver::{Clock, Io};
use slotmap::SecondaryMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

pub use hopline_driver::simulation::PipeEnd;
pub use hopline_driver::{engine as peer, timeline};

/// A broker and the clock of this thread, which stands still until [`Sim::advance`].
#[derive(Debug)]
pub struct Sim {
    broker: Broker,
    engine: engine::Config,
    waits: SecondaryMap<ConnId, Wait>,
    now: Instant,
}

/// What a connection's task waits for, besides being woken: as it was when it began to wait.
#[derive(Debug)]
struct Wait {
    to_read: bool,
    to_write: bool,
    deadline: Option<Instant>,
    for_nothing: bool,
}

/// A connection of the broker.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerId(ConnId);

/// What a broker holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections.
    pub connections: usize,
    /// Links on which messages come in.
    pub producers: usize,
    /// Links on which messages go out.
    pub consumers: usize,
    /// Queues, those of dynamic nodes and subscribers included.
    pub queues: usize,
    /// Topics that somebody is attached to.
    pub topics: usize,
    /// Subscriptions and dynamic nodes, with links or kept for them.
    pub termini: usize,
    /// Names of links.
    pub names: usize,
    /// Messages in queues and out for delivery.
    pub messages: usize,
    /// Octets of these messages.
    pub octets: usize,
    /// Deliveries of consumers without an outcome.
    pub unsettled: usize,
}

impl Sim {
    /// A broker at work, and the clock at `now`. Listeners and users of the configuration count
    /// for nothing: everybody is let in.
    pub fn new(config: Config, now: Instant) -> Self {
        hold_clock(Some(now));
        let engine = engine_config(&config);
        Self { engine, broker: Broker::new(config), waits: SecondaryMap::new(), now }
    }

    /// Settings of the engines of connections to come.
    pub fn engine_config(&mut self) -> &mut engine::Config {
        &mut self.engine
    }

    /// A new connection, to which the broker may write `capacity` octets ahead.
    pub fn connect(&mut self, capacity: usize) -> (PeerId, PipeEnd) {
        let engine = Connection::server(self.engine.clone(), Arc::new(Anonymous), Clock.now());
        let (near, far) = pipe(capacity);
        let (id, _) = self.broker.add(Io::in_memory(engine, near));
        self.wait(PeerId(id));
        (PeerId(id), far)
    }

    /// Whether the task of a connection would wake up now. If so, it has woken up: call
    /// [`Sim::turn`] before this is asked again.
    pub fn is_due(&mut self, peer: PeerId, pipe: &PipeEnd) -> bool {
        let Some(conn) = self.broker.conns.get(peer.0) else { return false };
        let Some(wait) = self.waits.get(peer.0) else { return false };
        let woken = pin!(conn.wake.notified()).poll(&mut Context::from_waker(Waker::noop()));
        woken.is_ready()
            || wait.for_nothing
            || wait.to_read && pipe.is_readable()
            || wait.to_write && pipe.is_writable()
            || wait.deadline.is_some_and(|deadline| deadline <= self.now)
    }

    /// One turn of a connection. `false`: it is finished, and gone.
    pub fn turn(&mut self, peer: PeerId) -> bool {
        self.broker.turn(peer.0);
        self.broker.remove_if_finished(peer.0);
        self.wait(peer)
    }

    /// The task of a connection waits anew; until it has been woken it knows of nothing else.
    fn wait(&mut self, peer: PeerId) -> bool {
        let Some(conn) = self.broker.conns.get(peer.0) else { return false };
        let wait = Wait {
            to_read: conn.io.wants_read(),
            to_write: conn.io.wants_write(),
            deadline: conn.deadline(),
            for_nothing: conn.can_go_on(),
        };
        self.waits.insert(peer.0, wait);
        true
    }

    /// The instant at which the clock stands.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Moves the clock on.
    pub fn advance(&mut self, by: Duration) {
        self.now = self.now.saturating_add(by);
        hold_clock(Some(self.now));
    }

    /// Removes what has expired, as the server does four times a second.
    pub fn sweep(&mut self) {
        self.broker.sweep();
    }

    /// Closes all connections, as a server does that stops.
    pub fn close_all(&mut self) {
        self.broker.close_all();
    }

    /// Messages that wait in the queue at an address; `None`: there is none.
    pub fn waiting(&self, address: &str) -> Option<usize> {
        let queue = self.broker.addresses.get(address)?;
        self.broker.queues.get(*queue).map(crate::queue::Queue::waiting)
    }

    /// What the broker holds.
    pub fn counts(&self) -> Counts {
        let broker = &self.broker;
        Counts {
            connections: broker.conns.len(),
            producers: broker.producers.len(),
            consumers: broker.consumers.len(),
            queues: broker.queues.len(),
            topics: broker.topics.len(),
            termini: broker.termini.len(),
            names: broker.names.len(),
            messages: broker.queues.values().map(crate::queue::Queue::len).sum(),
            octets: broker.queues.values().map(crate::queue::Queue::octets).sum(),
            unsettled: broker.consumers.values().map(|consumer| consumer.unsettled.len()).sum(),
        }
    }

    /// What is wrong inside while nothing moves: work that was put on a list and forgotten there,
    /// links and nodes that know of each other on one side only, counts that don't add up.
    pub fn faults(&self) -> Vec<String> {
        let broker = &self.broker;
        let mut faults = Vec::new();
        let mut check = |holds: bool, what: &str| {
            if !holds {
                faults.push(what.to_owned());
            }
        };
        check(broker.listed.is_empty(), "a queue is listed and not looked at");
        check(broker.dirty.is_empty(), "a connection is dirty and not written");
        let links = broker.conns.values().flat_map(|conn| conn.links.values());
        let known = links.filter(|end| match end {
            End::Producer(id) => broker.producers.contains_key(*id),
            End::Consumer(id) => broker.consumers.contains_key(*id),
            End::Coordinator { .. } => false,
        });
        let ends = broker.producers.len() + broker.consumers.len();
        check(known.count() == ends, "links of connections and of the broker differ");
        let open: usize = broker.conns.values().map(|conn| conn.transactions.len()).sum();
        check(open == broker.transactions.len(), "a transaction without its connection");
        let claims = broker.consumers.values().any(|consumer| !consumer.claims.is_empty());
        let promises = broker.queues.values().any(|queue| queue.promised > 0);
        check(open > 0 || !(claims || promises), "work of a transaction that is over");
        for (id, queue) in &broker.queues {
            check(broker.addresses.get(&queue.address) == Some(&id), "a queue lost its address");
            check(queue.len() > 0 || queue.octets() == 0, "an empty queue has octets");
            let own = broker.consumers.iter().filter(|(_, consumer)| consumer.queue == id);
            let all_join = own.clone().all(|(id, _)| queue.consumers.contains(&id));
            check(all_join && own.count() == queue.consumers.len(), "a queue's consumers differ");
        }
        check(broker.addresses.len() == broker.queues.len(), "an address without a queue");
        faults
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        hold_clock(None);
    }
}
