//! Two ends whose clocks differ find out by how much, in a world whose time both clocks distort and
//! whose ways are known.

use crate::support::{Choices, End, Random, Script, begin, config, flow, open, options};
use hopline_engine::timeline::{ClockDomain, ClockKind, ClockOffset, Instant};
use hopline_engine::wire::frame::ProtocolHeader;
use hopline_engine::wire::performative::{Flow, Frame, Open};
use hopline_engine::wire::{Fields, Performative, Role, Symbol, Value};
use hopline_engine::{Anonymous, ClientSasl, Config, Connection, Event};
use std::collections::VecDeque;
use std::sync::Arc;

const MS: i64 = 1_000_000;

fn domain(host: u8) -> ClockDomain {
    ClockDomain { kind: ClockKind::Monotonic, host: [host; 16], ..ClockDomain::default() }
}

/// How a clock shows the time of the world.
#[derive(Copy, Clone)]
struct Distortion {
    ahead_ns: i64,
    drift_ppb: i64,
}

impl Distortion {
    fn shows(self, world_ns: i64) -> Instant {
        let drift = i128::from(world_ns) * i128::from(self.drift_ppb) / 1_000_000_000;
        Instant::from_nanos(world_ns + self.ahead_ns + drift as i64)
    }
}

struct Side {
    end: End,
    clock: Distortion,
    /// What is under way to it: when it arrives, and the octets.
    coming: VecDeque<(i64, Vec<u8>)>,
}

impl Side {
    /// Reads what has arrived, does what is due, writes.
    fn turn(&mut self, world_ns: i64) -> Vec<u8> {
        let now = self.clock.shows(world_ns);
        if self.end.connection.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.end.connection.handle_timeout(now);
        }
        while let Some((_, octets)) = self.coming.pop_front_if(|(at, _)| *at <= world_ns) {
            self.end.read(&octets, now);
        }
        self.end.connection.poll_transmit();
        self.end.connection.outbox().stamp(now);
        self.end.write_all(now)
    }
}

/// A sender and a receiver.
struct World {
    sides: [Side; 2],
    now_ns: i64,
    delays: Random,
}

impl World {
    fn new(clocks: [Option<ClockDomain>; 2], distortion: Distortion) -> Self {
        let none = Distortion { ahead_ns: 0, drift_ppb: 0 };
        let settings = |clock| Config { clock, ..config() };
        let client = Connection::client(settings(clocks[0]), ClientSasl::Anonymous, none.shows(0));
        let server =
            Connection::server(settings(clocks[1]), Arc::new(Anonymous), distortion.shows(0));
        let sides = [(client, none), (server, distortion)].map(|(connection, clock)| {
            let mut end = End::new(connection);
            end.credit = 1_000_000;
            Side { end, clock, coming: VecDeque::new() }
        });
        Self { sides, now_ns: 0, delays: Random(7) }
    }

    /// Lets so much time pass, in steps of 10 us. The way takes 50 us, and now and then much
    /// longer, more often so to the second side.
    fn run(&mut self, ns: i64) {
        let end = self.now_ns + ns;
        while self.now_ns < end {
            self.now_ns += 10_000;
            for at in 0..2 {
                let octets = self.sides[at].turn(self.now_ns);
                if !octets.is_empty() {
                    let is_slow = self.delays.below(if at == 0 { 2 } else { 5 }) == 0;
                    let slow_ns = if is_slow { self.delays.below(900) as i64 * 1_000 } else { 0 };
                    let coming = &mut self.sides[1 - at].coming;
                    let last = coming.back().map_or(0, |(at, _)| *at);
                    coming.push_back(((self.now_ns + 50_000 + slow_ns).max(last), octets));
                }
            }
        }
    }

    /// Sends a message every 10 ms for so long.
    fn talk(&mut self, ns: i64) {
        let session = self.sides[0].end.connection.begin().unwrap();
        let link = self.sides[0].end.connection.attach(session, options("l", Role::Sender));
        let link = link.unwrap();
        self.run(5 * MS);
        for n in 0..ns / (10 * MS) {
            let sent = self.sides[0].end.send_as(link, b"m", &n.to_be_bytes(), true);
            sent.unwrap();
            self.run(10 * MS);
        }
    }

    /// What the receiver knows of the sender's clock now, and by how much it is wrong.
    fn receiver_knows(&self) -> Option<(u64, u64)> {
        let clock = self.sides[1].clock;
        let now = clock.shows(self.now_ns);
        let ClockOffset { ahead_ns, error_bound_ns } =
            self.sides[1].end.connection.peer_clock(now)?;
        let truth = self.sides[0].clock.shows(self.now_ns).since_ns(now);
        Some(((ahead_ns - truth).unsigned_abs(), error_bound_ns))
    }
}

#[test]
fn an_offset_and_a_drift_are_found_and_the_truth_lies_within_the_bound() {
    for drift_ppb in [0, 50_000, -200_000] {
        let distortion = Distortion { ahead_ns: 3 * MS, drift_ppb };
        let mut world = World::new([Some(domain(1)), Some(domain(2))], distortion);
        world.run(5 * MS);
        let mut known = Vec::new();
        world.talk(20 * MS);
        for _ in 0..150 {
            world.run(20 * MS);
            let link = world.sides[0].end.events.iter().find_map(|event| match event {
                Event::Attached { link, .. } => Some(*link),
                _ => None,
            });
            world.sides[0].end.send_as(link.unwrap(), b"m", b"t", true).unwrap();
            known.extend(world.receiver_knows());
        }
        assert_eq!(known.len(), 150);
        let within = known.iter().filter(|(error, bound)| error <= bound).count();
        assert_eq!(within, 150, "drift {drift_ppb}: {known:?}");
        let narrow = known.iter().skip(50).filter(|(_, bound)| *bound < 100_000).count();
        assert!(narrow > 90, "drift {drift_ppb}: {known:?}");
    }
}

#[test]
fn an_idle_connection_asks_no_more() {
    let distortion = Distortion { ahead_ns: -1_000 * MS, drift_ppb: 0 };
    let mut world = World::new([Some(domain(1)), Some(domain(2))], distortion);
    world.run(5 * MS);
    world.talk(50 * MS);
    world.run(500 * MS);
    let flows = |world: &World| world.sides.each_ref().map(|it| it.end.connection.frames_seen());
    let before = flows(&world);
    world.run(1_000 * MS);
    assert_eq!(flows(&world), before);
    assert!(world.receiver_knows().is_some());
}

#[test]
fn one_clock_and_strangers_are_not_asked() {
    let none = Distortion { ahead_ns: 0, drift_ppb: 0 };
    for clocks in [
        [Some(domain(1)), Some(domain(1))],
        [Some(domain(1)), None],
        [None, Some(domain(2))],
        [None, None],
    ] {
        let mut world = World::new(clocks, none);
        world.run(5 * MS);
        world.talk(100 * MS);
        assert_eq!(world.receiver_knows(), None, "{clocks:?}");
        let says = |event: &Event| match event {
            Event::Opened(open) => says_clock(open),
            _ => false,
        };
        assert_eq!(world.sides[1].end.events.iter().any(says), clocks[0].is_some());
    }
}

fn says_clock(open: &Open) -> bool {
    open.properties.as_ref().is_some_and(|fields| fields.get("hopline:clock").is_some())
}

fn said(value: Value) -> Fields {
    Fields(vec![(Symbol::from_static("hopline:clock"), value)])
}

#[test]
fn a_storm_of_questions_gets_one_answer_and_what_is_none_is_passed_over() {
    let mut script = Script::server(Config { clock: Some(domain(1)), ..config() }, Anonymous);
    script.raw(&ProtocolHeader::Amqp.octets());
    let theirs = said(Value::Binary(vec![2; 17].into()));
    script.send(&Open { properties: Some(theirs), ..open() });
    script.send(&begin());
    script.octets();
    let mut storm = Vec::new();
    let mut ask = |parts: Vec<Value>| {
        let flow = Flow { properties: Some(said(Value::List(parts))), ..flow() };
        flow.put(&mut storm, 0);
    };
    (0..10_000).for_each(|n| ask(vec![Value::Uint(n), Value::Long(n.into())]));
    let long = Value::Long;
    ask(vec![]);
    ask(vec![Value::Uint(1)]);
    ask(vec![long(1), Value::Uint(1)]);
    ask(vec![Value::Uint(1), long(1), long(2)]);
    ask(vec![Value::Uint(0), long(i64::MIN), long(i64::MAX), long(0)]);
    script.now = Instant::from_nanos(77);
    script.raw(&storm);
    let answers: Vec<_> = script.heard().into_iter().map(|heard| heard.performative).collect();
    let [Performative::Flow(flow)] = &answers[..] else { panic!("{answers:?}") };
    let last = [Value::Uint(9_999), long(9_999), long(77), long(i64::MIN)];
    // The last instant would be filled in as it leaves; here nobody does.
    assert_eq!(flow.properties, Some(said(Value::List(last.to_vec()))));
    assert_eq!(script.end.connection.peer_clock(script.now), None);
}
