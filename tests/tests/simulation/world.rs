//! The world: a broker, clients, the octets between them, and the clock. Everything that happens is
//! drawn from the seed.

use crate::client::{Client, Link};
use crate::ledger::{DEAD, LOOSE, Ledger, PRIORITY, Uid};
use crate::txn::Txn;
use hopline_broker::simulation::peer::{Config as EngineConfig, LinkId};
use hopline_broker::simulation::timeline::Instant;
use hopline_broker::simulation::{PeerId, PipeEnd, Sim};
use hopline_broker::{Config, NodeConfig, Sampling};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than any of these worlds lasts.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// Deliveries that may be unsettled on a session of a frugal world.
pub const FEW: usize = 10;

pub const QUEUES: [&str; 3] = ["kept", PRIORITY, LOOSE];
pub const TOPICS: [&str; 2] = ["topic/a", "topic/b"];

pub struct World {
    pub sim: Sim,
    pub ledger: Ledger,
    pub random: fastrand::Rng,
    /// A place for each client; it may be away.
    pub clients: Vec<Option<Client>>,
    /// Connections whose client has gone.
    pub leaving: Vec<(PeerId, PipeEnd)>,
    /// Transactions, by their control links.
    pub txns: BTreeMap<Uid, Txn>,
    /// Queues that are in use.
    pub queues: Vec<&'static str>,
    /// Addresses of dynamic nodes whose owner is there.
    pub dynamic: Vec<String>,
    pub uids: Uid,
    /// Users grant credit of their own accord.
    pub is_lively: bool,
    /// Few deliveries may be unsettled.
    pub is_frugal: bool,
    pub is_verbose: bool,
    trace: u64,
}

impl World {
    pub fn new(seed: u64, is_verbose: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let config = draw_config(&mut random);
        let mut world = Self::with(config, random);
        (world.is_lively, world.is_verbose) = (true, is_verbose);
        world.is_frugal = world.random.bool();
        let engine = world.sim.engine_config().clone();
        let max_frame_size = engine.max_frame_size;
        let drawn = draw_engine(&mut world.random, engine, world.is_frugal);
        *world.sim.engine_config() = EngineConfig { max_frame_size, ..drawn };
        world.random.shuffle(&mut world.queues);
        let queues = world.random.usize(1..=world.queues.len());
        world.queues.truncate(queues);
        world
    }

    /// Two clients, nothing drawn: few deliveries may be unsettled, and an outbox takes no transfer
    /// on top of another.
    pub fn calm() -> Self {
        let mut world = Self::with(Config::default(), fastrand::Rng::with_seed(0));
        world.is_frugal = true;
        let engine = world.sim.engine_config();
        (engine.max_unsettled, engine.outbox_high_water) = (FEW, 600);
        for at in 0..2 {
            let config = EngineConfig {
                container_id: format!("client-{at}"),
                max_unsettled: FEW,
                max_frame_size: 512,
                ..EngineConfig::default()
            };
            world.connect_with(at, 100, config);
            world.come_to_rest();
        }
        world
    }

    fn with(config: Config, mut random: fastrand::Rng) -> Self {
        let has_dead_letters = config.nodes.dead_letter.is_some();
        let ledger = Ledger::new(has_dead_letters, config.nodes.max_delivery_count);
        Self {
            sim: Sim::new(config, Instant::from_nanos(1_000_000_000)),
            ledger,
            clients: (0..random.usize(2..=3)).map(|_| None).collect(),
            random,
            leaving: Vec::new(),
            txns: BTreeMap::new(),
            queues: QUEUES.to_vec(),
            dynamic: Vec::new(),
            uids: 0,
            is_lively: false,
            is_frugal: false,
            is_verbose: false,
            trace: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// Something happened: it counts for the trace.
    pub fn note(&mut self, what: &str, who: u64, which: u64) {
        if self.is_verbose {
            eprintln!("{:>12} {what} {who} {which}", self.sim.now().as_nanos());
        }
        let numbers = [who, which, self.sim.now().as_nanos() as u64];
        let octets = what.bytes().chain(numbers.into_iter().flat_map(u64::to_le_bytes));
        for octet in octets {
            self.trace = (self.trace ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Differs where anything that happened differs.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.random.usize(..n) == 0
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.random.usize(..from.len())].clone())
    }

    /// The client at a place and one of its links.
    pub fn link(&mut self, at: usize, id: LinkId) -> Option<&mut Link> {
        self.clients[at].as_mut()?.links.get_mut(&id)
    }

    pub fn connect(&mut self, at: usize) {
        let capacity = [100, 600, 1 << 16][self.random.usize(..3)];
        let container_id = format!("client-{at}");
        let config = EngineConfig { container_id, ..EngineConfig::default() };
        let config = draw_engine(&mut self.random, config, self.is_frugal);
        self.connect_with(at, capacity, config);
        // Mostly the handshake is no concern.
        for _ in 0..if self.one_in(4) { 0 } else { 8 } {
            self.go_on(at);
        }
    }

    fn connect_with(&mut self, at: usize, capacity: usize, config: EngineConfig) {
        let client = Client::new(config, self.sim.connect(capacity), self.sim.now());
        self.clients[at] = Some(client);
        self.note("connect", at as u64, capacity as u64);
    }

    /// Moves some octets on the way between a client and the broker, there and back.
    pub fn carry(&mut self, at: usize) {
        for step in 0..4 {
            if !self.one_in(4) {
                self.carry_on(at, step);
            }
        }
    }

    fn carry_on(&mut self, at: usize, step: usize) {
        let now = self.sim.now();
        let size = [20, 300, 5000, 1 << 20][self.random.usize(..4)];
        let max = self.random.usize(1..=size);
        let Some(client) = &mut self.clients[at] else { return };
        let moved = match step {
            0 => client.transmit(max, now),
            1 => client.push(max),
            3 => client.pull(max, now),
            _ => {
                self.turn(at);
                return;
            }
        };
        if moved > 0 {
            self.note(["transmit", "push", "turn", "pull"][step], at as u64, moved as u64);
        }
        self.listen(at);
    }

    /// Gives the broker its turn of a client's connection, if its task would wake up.
    fn turn(&mut self, at: usize) -> bool {
        let Some(client) = &mut self.clients[at] else { return false };
        if !self.sim.is_due(client.peer, &client.pipe) {
            return false;
        }
        self.sim.turn(client.peer);
        let left = client.pipe.untaken();
        for number in client.take_done() {
            self.ledger.entry(number).done = true;
        }
        self.note("turn", at as u64, left as u64);
        true
    }

    /// Turns of the connections whose clients have gone.
    pub fn turn_leaving(&mut self) -> bool {
        let mut moved = false;
        let sim = &mut self.sim;
        self.leaving.retain(|(peer, pipe)| {
            moved |= !pipe.take(usize::MAX).is_empty();
            if sim.is_due(*peer, pipe) {
                sim.turn(*peer);
                moved = true;
            }
            !pipe.is_left()
        });
        moved
    }

    /// Lets everything move that can, until nothing does.
    pub fn come_to_rest(&mut self) {
        for _ in 0..10_000 {
            let mut moved = self.turn_leaving();
            for at in 0..self.clients.len() {
                moved |= self.go_on(at);
            }
            if !moved {
                self.note("rest", 0, 0);
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn go_on(&mut self, at: usize) -> bool {
        self.pay(at);
        self.pass(at)
    }

    /// Passes all octets there are, to the broker and back.
    pub fn pass(&mut self, at: usize) -> bool {
        let now = self.sim.now();
        let Some(client) = &mut self.clients[at] else { return false };
        let mut moved = client.transmit(usize::MAX, now) + client.push(usize::MAX);
        moved += usize::from(self.turn(at));
        if let Some(client) = &mut self.clients[at] {
            moved += client.pull(usize::MAX, now);
        }
        self.listen(at);
        moved > 0
    }

    /// Cuts a connection: at once, or after some of what is under way has come.
    pub fn cut(&mut self, at: usize) {
        let Some(mut client) = self.clients[at].take() else { return };
        if self.random.bool() {
            client.pipe.cut();
        } else {
            let n = self.random.usize(..=client.flight.len());
            client.push(n);
            client.pipe.end();
        }
        self.note("cut", at as u64, 0);
        for link in std::mem::take(&mut client.links).into_values() {
            self.bury(&link);
        }
        self.leaving.push((client.peer, client.pipe));
    }

    pub fn advance(&mut self) {
        let ms = self.random.u64(1..100);
        self.sim.advance(Duration::from_millis(ms));
        if self.random.bool() {
            self.sim.sweep();
        }
        for client in self.clients.iter_mut().flatten() {
            client.engine.handle_timeout(self.sim.now());
        }
    }
}

fn draw_config(random: &mut fastrand::Rng) -> Config {
    let mut config = Config::default();
    let dead_letters = random.bool();
    config.limits.max_frame_size = [512, 65_536][random.usize(..2)];
    config.limits.producer_credit = [1, 5, 100][random.usize(..3)];
    config.limits.idle_timeout = None;
    config.limits.handshake_timeout = FOR_EVER;
    config.timelines = [Sampling::Carried, Sampling::All, Sampling::OneIn(3)][random.usize(..3)];
    config.nodes = NodeConfig {
        queues: vec!["kept".into()],
        priority_queues: vec![PRIORITY.into()],
        dead_letter: dead_letters.then(|| DEAD.into()),
        max_delivery_count: (dead_letters && random.bool()).then_some(2),
        ..NodeConfig::default()
    };
    // Dead letters that find no room are lost, so there is room wherever there are dead letters.
    if !dead_letters {
        config.nodes.max_messages = [3, 20, 1_000_000][random.usize(..3)];
        config.nodes.max_octets = [5000, 1 << 30][random.usize(..2)];
    }
    config
}

fn draw_engine(random: &mut fastrand::Rng, config: EngineConfig, is_frugal: bool) -> EngineConfig {
    EngineConfig {
        max_frame_size: [512, 700, 65_536][random.usize(..3)],
        incoming_window: [1, 2, 3, 10, 8192][random.usize(..5)],
        outbox_high_water: [600, 5000, 128 << 10][random.usize(..3)],
        max_unsettled: if is_frugal { FEW } else { 65_536 },
        idle_timeout: None,
        handshake_timeout: FOR_EVER,
        close_timeout: FOR_EVER,
        ..config
    }
}
