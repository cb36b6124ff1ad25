//! What the tests share: an engine that is driven by hand, two of them with a pipe between, and a
//! peer that says what the test says.
#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod choices;
mod frames;
pub mod login;
mod script;
mod world;

pub use choices::{Choices, Random};
pub use frames::*;
pub use hopline_engine::wire::performative::{Attach, Flow};
pub use login::{Guarded, closed, init, offered, outcome, said};
pub use script::{Complaint, Heard, Script, frames_of, plain};
pub use world::World;

use bytes::Bytes;
use hopline_engine::timeline::Instant;
use hopline_engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_engine::wire::terminus::{Source, Target, TargetKind};
use hopline_engine::wire::{DeliveryTag, Fields, Role, Serial};
use hopline_engine::{
    Anonymous, Answer, AttachOptions, ClientSasl, CommandError, Config, Connection, Delivery,
    Event, LinkId, Outgoing, SessionId,
};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

/// An engine and what it told. It answers as a plain user would: attaches are accepted, detaches
/// are answered, drains are met.
pub struct End {
    pub connection: Connection,
    pub events: Vec<Event>,
    /// Whether the plain user is there.
    pub answers: bool,
    /// What a receiver that was accepted grants.
    pub credit: u32,
}

impl End {
    pub fn new(connection: Connection) -> Self {
        Self { connection, events: Vec::new(), answers: true, credit: 0 }
    }

    pub fn read(&mut self, octets: &[u8], now: Instant) {
        self.connection.read_buffer().extend_from_slice(octets);
        self.connection.handle_read(now);
        self.poll(now);
    }

    pub fn poll(&mut self, now: Instant) {
        while let Some(event) = self.connection.poll_event(now) {
            if self.answers {
                self.answer(&event);
            }
            self.events.push(event);
        }
    }

    fn answer(&mut self, event: &Event) {
        match event {
            Event::AttachRequest { link, attach } => {
                let accepted = self.connection.accept(*link, agree(attach));
                if accepted.is_ok() && attach.role == Role::Sender && self.credit > 0 {
                    self.connection.set_credit(*link, self.credit).unwrap();
                }
            }
            Event::Detached { link, closed, by_peer: true, .. } => {
                self.connection.detach(*link, *closed, None);
            }
            Event::Credit { link, .. } if self.connection.wants_drain(*link) => {
                self.connection.drained(*link);
            }
            _ => {}
        }
    }

    /// Up to `max` of the octets that are to be written.
    pub fn write(&mut self, max: usize, now: Instant) -> Vec<u8> {
        self.connection.poll_transmit();
        let octets = self.peek(max);
        self.connection.wrote(octets.len(), now);
        octets
    }

    fn peek(&mut self, max: usize) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 256];
        let n = self.connection.outbox().slices(&mut slices);
        let mut octets = Vec::new();
        for slice in &slices[..n] {
            octets.extend_from_slice(&slice[..slice.len().min(max - octets.len())]);
        }
        octets
    }

    /// All that is to be written, however often the outbox has to be filled for it.
    pub fn write_all(&mut self, now: Instant) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let octets = self.write(usize::MAX, now);
            if octets.is_empty() {
                return all;
            }
            all.extend_from_slice(&octets);
        }
    }

    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub fn deliveries(&mut self) -> Vec<Delivery> {
        let delivery = |event| match event {
            Event::Delivery(delivery) => Some(delivery),
            _ => None,
        };
        self.take_events().into_iter().filter_map(delivery).collect()
    }

    /// Sends `body` with a tag of its own.
    pub fn send(&mut self, link: LinkId, body: &[u8]) -> Result<Serial, CommandError> {
        self.send_as(link, body, &body[..body.len().min(32)], false)
    }

    pub fn send_as(
        &mut self,
        link: LinkId,
        body: &[u8],
        tag: &[u8],
        settled: bool,
    ) -> Result<Serial, CommandError> {
        let tag = DeliveryTag::new(tag).unwrap();
        let bare = Bytes::copy_from_slice(body);
        let delivery = Outgoing { tag, settled, format: 0, token: body.len() as u64, bare };
        self.connection.send(link, delivery, |_| None)
    }
}

pub fn agree(attach: &Attach) -> Answer {
    Answer {
        source: attach.source.as_deref().cloned(),
        target: attach.target.as_deref().cloned(),
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        offered_capabilities: Vec::new(),
        properties: Fields::default(),
    }
}

pub fn options(name: &str, role: Role) -> AttachOptions {
    AttachOptions {
        name: name.into(),
        role,
        source: Source::at("from"),
        target: TargetKind::Target(Target::at("to")),
        snd_settle_mode: SenderSettleMode::Mixed,
        rcv_settle_mode: ReceiverSettleMode::First,
        desired_capabilities: Vec::new(),
        properties: Fields::default(),
    }
}

/// A configuration without heartbeats, so that the only octets are those that the test causes, and
/// with frames of 64 KiB at most.
pub fn config() -> Config {
    Config { idle_timeout: None, max_frame_size: 65_536, ..Config::default() }
}

/// A client, a server and the pipe between them.
pub struct Pair {
    pub client: End,
    pub server: End,
    pub now: Instant,
    /// Octets that the pipe hands over at once.
    pub cut: usize,
}

impl Pair {
    pub fn new(client: Config, server: Config) -> Self {
        let now = Instant::from_nanos(0);
        Self {
            client: End::new(Connection::client(client, ClientSasl::Anonymous, now)),
            server: End::new(Connection::server(server, Arc::new(Anonymous), now)),
            now,
            cut: usize::MAX,
        }
    }

    /// Both ends open.
    pub fn open() -> Self {
        Self::open_with(config(), config())
    }

    pub fn open_with(client: Config, server: Config) -> Self {
        let mut pair = Self::new(client, server);
        pair.run();
        assert!(pair.client.connection.is_open() && pair.server.connection.is_open());
        pair.client.events.clear();
        pair.server.events.clear();
        pair
    }

    pub fn begin(&mut self) -> SessionId {
        let session = self.client.connection.begin().unwrap();
        self.run();
        session
    }

    /// Attaches a link from the client's side: its ids at client and server.
    pub fn attach(&mut self, session: SessionId, options: AttachOptions) -> (LinkId, LinkId) {
        let at_client = self.client.connection.attach(session, options).unwrap();
        self.run();
        let request = |event: &Event| match event {
            Event::AttachRequest { link, .. } => Some(*link),
            _ => None,
        };
        (at_client, self.server.events.iter().rev().find_map(request).unwrap())
    }

    /// Carries octets to and fro until none are left.
    pub fn run(&mut self) {
        loop {
            let up = self.client.write(usize::MAX, self.now);
            let down = self.server.write(usize::MAX, self.now);
            if up.is_empty() && down.is_empty() {
                return;
            }
            up.chunks(self.cut).for_each(|part| self.server.read(part, self.now));
            down.chunks(self.cut).for_each(|part| self.client.read(part, self.now));
            // Who stopped reading for the sake of a full outbox goes on now.
            self.client.poll(self.now);
            self.server.poll(self.now);
        }
    }

    /// Moves the clock, and both ends with it, as far as something is due.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        loop {
            self.run();
            let ends = [&self.client, &self.server];
            let due = ends.iter().filter_map(|end| end.connection.poll_timeout()).min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = due.max(self.now);
            self.client.connection.handle_timeout(self.now);
            self.server.connection.handle_timeout(self.now);
            self.client.poll(self.now);
            self.server.poll(self.now);
        }
        self.now = until;
    }
}
