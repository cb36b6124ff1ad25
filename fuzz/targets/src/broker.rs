//! Some peers and one broker: the octets say what they send, in which pieces and when. Nothing
//! panics, the broker's lists agree with each other, and when all peers have gone nothing is left.

use crate::engine_support::{Choices, begin, open};
use crate::input::Input;
use crate::memory;
use hopline_broker::simulation::{PeerId, PipeEnd, Sim};
use hopline_broker::{Config, Limits, NodeConfig};
use hopline_engine::timeline::Instant;
use hopline_engine::wire::frame::{self, FrameType, ProtocolHeader};
use hopline_engine::wire::performative::Frame;
use std::time::Duration;

const PEERS: usize = 3;

/// More turns than the octets of a run can cause: a broker that goes on by itself is at fault.
const TURNS: usize = 100_000;

/// A place for each peer.
struct World {
    sim: Sim,
    peers: [Option<(PeerId, PipeEnd)>; PEERS],
}

/// The octets are steps: which peer does what.
pub fn run(octets: &[u8]) {
    memory::in_proportion(octets.len(), 16 << 10, 4 << 20, || {
        let mut input = Input::new(octets);
        let mut world = World::new();
        while !input.is_empty() {
            world.step(&mut input);
        }
        world.finish();
    });
}

fn config() -> Config {
    let limits = Limits {
        max_frame_size: 1_000,
        channel_max: 3,
        handle_max: 7,
        max_message_size: 5_000,
        producer_credit: 5,
        ..Limits::default()
    };
    let nodes = NodeConfig {
        priority_queues: vec!["urgent".into()],
        max_messages: 20,
        max_octets: 50_000,
        max_nodes: 6,
        dead_letter: Some("dead".into()),
        max_delivery_count: Some(2),
        ..NodeConfig::default()
    };
    Config { limits, nodes, ..Config::default() }
}

impl World {
    fn new() -> Self {
        let mut sim = Sim::new(config(), Instant::from_nanos(1_000_000_000));
        let engine = sim.engine_config();
        engine.incoming_window = 10;
        engine.max_unsettled = 10;
        engine.max_partial_octets = 10_000;
        engine.outbox_high_water = 2_000;
        engine.outbox_max = 10_000;
        Self { sim, peers: [const { None }; PEERS] }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let at = input.below(PEERS);
        let op = input.below(16);
        let Some((_, pipe)) = &self.peers[at] else { return self.connect(at) };
        match op {
            // Size and channel are an octet each: few changes make nonsense of a frame.
            0..=9 => {
                let (size, channel) = (input.octet(), input.octet());
                let mut octets = Vec::new();
                frame::start(&mut octets, FrameType::Amqp, channel.into());
                octets.extend_from_slice(input.take(size.into()));
                frame::finish(&mut octets, 0, 0);
                pipe.push(&octets);
            }
            10 => {
                let size = input.octet();
                pipe.push(input.take(size.into()));
            }
            11 => drop(pipe.take([1, 100, usize::MAX][input.below(3)])),
            12 => {
                let ms = [1, 1_000, 29_000, 61_000][input.below(4)];
                self.sim.advance(Duration::from_millis(ms));
            }
            13 => self.sim.sweep(),
            14 => pipe.end(),
            _ => pipe.cut(),
        }
        self.settle();
    }

    /// A peer whose connection is open, with a session on channel 0.
    fn connect(&mut self, at: usize) {
        let (id, pipe) = self.sim.connect(20_000);
        let mut hello = ProtocolHeader::Amqp.octets().to_vec();
        open().put(&mut hello, 0);
        begin().put(&mut hello, 0);
        pipe.push(&hello);
        self.peers[at] = Some((id, pipe));
        self.settle();
    }

    /// Gives the broker its turns until it has nothing to do.
    fn settle(&mut self) {
        for _ in 0..TURNS {
            let mut has_turned = false;
            for peer in &mut self.peers {
                let Some((id, pipe)) = peer else { continue };
                if !self.sim.is_due(*id, pipe) {
                    continue;
                }
                has_turned = true;
                if !self.sim.turn(*id) {
                    *peer = None;
                }
            }
            if !has_turned {
                return self.check();
            }
        }
        panic!("the broker does not come to rest");
    }

    fn check(&self) {
        let faults = self.sim.faults();
        assert!(faults.is_empty(), "{faults:?}");
        let counts = self.sim.counts();
        assert!(counts.queues <= 7 && counts.messages <= 1_000, "{counts:?}");
    }

    /// All peers go; what they held is given back.
    fn finish(&mut self) {
        for (_, pipe) in self.peers.iter().flatten() {
            pipe.cut();
        }
        self.settle();
        let counts = self.sim.counts();
        let held = [counts.connections, counts.producers, counts.consumers, counts.unsettled];
        assert_eq!(held, [0; 4], "{counts:?}");
    }
}
