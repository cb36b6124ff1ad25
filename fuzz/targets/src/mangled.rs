//! Two engines whose users do what the octets say, over a pipe that changes octets on their way:
//! no promise about deliveries holds, but nothing panics and memory stays within the limits.

use crate::engine_support::{Choices, End, Pair, config, options};
use crate::input::Input;
use crate::memory;
use hopline_engine::timeline::Instant;
use hopline_engine::wire::{DeliveryState, Role, Serial};
use hopline_engine::{Config, Event, LinkId, SessionId};
use std::time::Duration;

/// One end, what its user knows, and the octets on their way from it.
struct Side {
    end: End,
    sessions: Vec<SessionId>,
    links: Vec<LinkId>,
    unsettled: Vec<(LinkId, Serial)>,
    pipe: Vec<u8>,
}

impl Side {
    const fn new(end: End) -> Self {
        Self {
            end,
            sessions: Vec::new(),
            links: Vec::new(),
            unsettled: Vec::new(),
            pipe: Vec::new(),
        }
    }

    fn listen(&mut self, now: Instant) {
        self.end.poll(now);
        for event in self.end.take_events() {
            match event {
                Event::SessionBegun(id) => self.sessions.push(id),
                Event::AttachRequest { link, .. } => self.links.push(link),
                Event::Delivery(delivery) if !delivery.settled => {
                    self.unsettled.push((delivery.link, delivery.id));
                }
                Event::Outcome { link, id, settled: false, .. } => {
                    let _ = self.end.connection.settle_sent(link, id, None);
                }
                _ => {}
            }
        }
    }
}

struct World<'a> {
    sides: [Side; 2],
    input: Input<'a>,
    now: Instant,
}

/// The octets are choices: one step after the other.
pub fn run(octets: &[u8]) {
    memory::in_proportion(octets.len(), 4096, 1 << 20, || {
        let Pair { mut client, mut server, now, .. } = Pair::open_with(limits(), limits());
        (client.credit, server.credit) = (10, 10);
        let sides = [Side::new(client), Side::new(server)];
        let mut world = World { sides, input: Input::new(octets), now };
        while !world.input.is_empty() {
            world.step();
        }
    });
}

fn limits() -> Config {
    Config {
        max_frame_size: 600,
        incoming_window: 10,
        max_message_size: 5_000,
        max_partial_octets: 8_000,
        max_unsettled: 20,
        outbox_high_water: 2_000,
        outbox_max: 8_000,
        idle_timeout: Some(Duration::from_secs(60)),
        ..config()
    }
}

impl World<'_> {
    fn step(&mut self) {
        let at = self.input.below(2);
        match self.input.below(24) {
            0 => self.begin(at),
            1..=3 => self.attach(at),
            4..=8 => self.send(at),
            9 | 10 => self.settle(at),
            11 | 12 => self.grant(at),
            13 => self.detach(at),
            14 => self.end(at),
            15 => self.pass(),
            _ => self.carry(at),
        }
        self.sides[at].listen(self.now);
        for side in &mut self.sides {
            let waiting = side.end.connection.outbox().len();
            assert!(waiting <= 20_000, "{waiting} octets wait to be written");
        }
    }

    fn begin(&mut self, at: usize) {
        // It is told as begun when the peer answers.
        let _ = self.sides[at].end.connection.begin();
    }

    fn attach(&mut self, at: usize) {
        let Some(session) = self.input.pick(&self.sides[at].sessions) else { return };
        let role = [Role::Sender, Role::Receiver][self.input.below(2)];
        // Few names, so that links are stolen and come back.
        let name = format!("link-{}", self.input.below(8));
        if let Ok(link) = self.sides[at].end.connection.attach(session, options(&name, role)) {
            self.sides[at].links.push(link);
        }
    }

    fn send(&mut self, at: usize) {
        let Some(link) = self.input.pick(&self.sides[at].links) else { return };
        let body = vec![7; [0, 10, 500, 3_000][self.input.below(4)]];
        let tag = [self.input.octet()];
        let settled = self.input.one_in(3);
        let _ = self.sides[at].end.send_as(link, &body, &tag, settled);
    }

    fn settle(&mut self, at: usize) {
        let Some((link, id)) = self.input.pick(&self.sides[at].unsettled) else { return };
        self.sides[at].unsettled.retain(|(_, other)| *other != id);
        let states = [DeliveryState::Accepted, DeliveryState::Released];
        let state = states[self.input.below(2)].clone();
        let _ = self.sides[at].end.connection.settle(link, id, state);
    }

    fn grant(&mut self, at: usize) {
        let Some(link) = self.input.pick(&self.sides[at].links) else { return };
        let connection = &mut self.sides[at].end.connection;
        let _ = match self.input.octet() {
            255 => connection.drain(link),
            254 => connection.set_credit(link, u32::MAX),
            credit => connection.set_credit(link, credit.into()),
        };
    }

    fn detach(&mut self, at: usize) {
        let Some(link) = self.input.pick(&self.sides[at].links) else { return };
        let closed = self.input.one_in(2);
        self.sides[at].end.connection.detach(link, closed, None);
    }

    fn end(&mut self, at: usize) {
        match self.input.pick(&self.sides[at].sessions) {
            Some(session) => self.sides[at].end.connection.end(session, None),
            None => self.sides[at].end.connection.close(None, self.now),
        }
    }

    fn pass(&mut self) {
        let ms = [1, 1_000, 29_999, 60_001][self.input.below(4)];
        self.now = self.now.saturating_add(Duration::from_millis(ms));
        for side in &mut self.sides {
            side.end.connection.handle_timeout(self.now);
        }
    }

    /// Takes all octets from one end and hands some of them to the other, changed or not.
    fn carry(&mut self, from: usize) {
        let written = self.sides[from].end.write_all(self.now);
        self.sides[from].pipe.extend(written);
        let max = [usize::MAX, 1, 20, 300][self.input.below(4)];
        let n = max.min(self.sides[from].pipe.len());
        let mut octets: Vec<u8> = self.sides[from].pipe.drain(..n).collect();
        self.mangle(&mut octets);
        let peer = &mut self.sides[1 - from];
        if !octets.is_empty() && peer.end.connection.wants_read() {
            peer.end.connection.read_buffer().extend_from_slice(&octets);
            peer.end.connection.handle_read(self.now);
        }
        peer.listen(self.now);
    }

    fn mangle(&mut self, octets: &mut Vec<u8>) {
        if octets.is_empty() {
            return;
        }
        let kind = self.input.below(8);
        if kind > 3 {
            return;
        }
        let at = self.input.below(octets.len());
        match kind {
            0 => octets[at] ^= self.input.octet(),
            1 => octets[at] = self.input.octet(),
            2 => octets.extend_from_within(at..),
            _ => drop(octets.drain(at..)),
        }
    }
}
