use super::{End, begin, config, open};
use hopline_engine::timeline::Instant;
use hopline_engine::wire::frame::{self, FrameHeader, FrameType, ProtocolHeader};
use hopline_engine::wire::performative::{Attach, Flow, Frame, SaslPerformative, Transfer};
use hopline_engine::wire::{Performative, Role, Symbol};
use hopline_engine::{Anonymous, Authenticator, ClientSasl, Config, Connection, Event, LinkId};
use std::sync::Arc;
use std::time::Duration;

/// A frame that the engine sent.
#[derive(Debug, PartialEq)]
pub struct Heard {
    pub channel: u16,
    pub performative: Performative,
    pub payload: Vec<u8>,
    pub size: usize,
}

/// At which level the engine complained, and with which condition.
#[derive(Debug, PartialEq, Eq)]
pub enum Complaint {
    Link(Symbol),
    Session(Symbol),
    Connection(Symbol),
}

/// An engine whose peer is the test.
pub struct Script {
    pub end: End,
    pub now: Instant,
    /// Of the session on channel 0; counts what `transfer` sends.
    pub next_outgoing_id: u32,
}

impl Script {
    fn new(connection: impl FnOnce(Instant) -> Connection) -> Self {
        let now = Instant::from_nanos(1);
        Self { end: End::new(connection(now)), now, next_outgoing_id: 0 }
    }

    /// A server to which nothing has been said.
    pub fn server(config: Config, authenticator: impl Authenticator + 'static) -> Self {
        Self::new(|now| Connection::server(config, Arc::new(authenticator), now))
    }

    /// A client that was told nothing.
    pub fn client(config: Config, sasl: ClientSasl) -> Self {
        Self::new(|now| Connection::client(config, sasl, now))
    }

    /// A server with which the connection is open.
    pub fn opened(config: Config) -> Self {
        let mut script = Self::server(config, Anonymous);
        script.raw(&ProtocolHeader::Amqp.octets());
        script.send(&open());
        assert!(script.end.connection.is_open());
        assert_eq!(script.octets()[..8], ProtocolHeader::Amqp.octets());
        script.end.events.clear();
        script
    }

    /// A server with a session on channel 0.
    pub fn begun(config: Config) -> Self {
        let mut script = Self::opened(config);
        script.send(&begin());
        script.heard();
        script.end.events.clear();
        script
    }

    /// A server with a session, and a link of this role at the peer under handle 0.
    pub fn attached(config: Config, role: Role, credit: u32) -> (Self, LinkId) {
        let mut script = Self::begun(config);
        script.end.credit = credit;
        let link = script.attach(&super::attach("l0", 0, role));
        (script, link)
    }

    /// Attaches, and takes what the engine answers.
    pub fn attach(&mut self, attach: &Attach) -> LinkId {
        self.send(attach);
        self.heard();
        let request = |event: &Event| match event {
            Event::AttachRequest { link, .. } => Some(*link),
            _ => None,
        };
        let link = self.end.events.iter().rev().find_map(request).unwrap();
        self.end.events.clear();
        link
    }

    pub fn raw(&mut self, octets: &[u8]) {
        self.end.read(octets, self.now);
    }

    pub fn send(&mut self, frame: &impl Frame) {
        self.send_on(0, frame);
    }

    pub fn send_on(&mut self, channel: u16, frame: &impl Frame) {
        let mut octets = Vec::new();
        frame.put(&mut octets, channel);
        self.raw(&octets);
    }

    pub fn transfer(&mut self, transfer: &Transfer, payload: &[u8]) {
        let octets = Self::transfer_octets(transfer, payload);
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
        self.raw(&octets);
    }

    pub fn transfer_octets(transfer: &Transfer, payload: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        transfer.put(&mut octets, 0);
        octets.extend_from_slice(payload);
        frame::finish(&mut octets, 0, 0);
        octets
    }

    /// What the engine wrote since.
    pub fn octets(&mut self) -> Vec<u8> {
        self.end.write_all(self.now)
    }

    /// The AMQP frames that the engine wrote since, without the empty ones.
    pub fn heard(&mut self) -> Vec<Heard> {
        let octets = self.octets();
        let mut heard = Vec::new();
        let mut rest = octets.as_slice();
        while let Some(header) = FrameHeader::parse(rest, u32::MAX).unwrap() {
            assert_eq!(header.kind, FrameType::Amqp);
            let (frame, after) = rest.split_at(header.size);
            rest = after;
            if frame.len() == header.body {
                continue;
            }
            let (performative, used) = Performative::decode(&frame[header.body..]).unwrap();
            let payload = frame[header.body + used..].to_vec();
            let (channel, size) = (header.channel, header.size);
            heard.push(Heard { channel, performative, payload, size });
        }
        assert!(rest.is_empty(), "half a frame was written");
        heard
    }

    /// The SASL frames at the start of what the engine wrote, and the octets behind them.
    pub fn sasl(octets: &[u8]) -> (Vec<SaslPerformative>, &[u8]) {
        let (mut frames, mut rest) = (Vec::new(), octets);
        while let Ok(Some(header)) = FrameHeader::parse(rest, u32::MAX) {
            assert_eq!(header.kind, FrameType::Sasl);
            frames.push(SaslPerformative::decode(&rest[header.body..header.size]).unwrap().0);
            rest = &rest[header.size..];
        }
        (frames, rest)
    }

    /// The first complaint among the frames that the engine wrote since.
    pub fn complaint(&mut self) -> Option<Complaint> {
        let complaint = |heard: Heard| match heard.performative {
            Performative::Detach(d) => d.error.map(|e| Complaint::Link(e.condition)),
            Performative::End(e) => e.error.map(|e| Complaint::Session(e.condition)),
            Performative::Close(c) => c.error.map(|e| Complaint::Connection(e.condition)),
            _ => None,
        };
        self.heard().into_iter().find_map(complaint)
    }

    /// Moves the clock and does what is due.
    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
        self.end.connection.handle_timeout(self.now);
        self.end.poll(self.now);
    }

    /// Whether connection and session still work.
    pub fn is_well(&mut self) -> bool {
        self.heard();
        self.send(&Flow { next_outgoing_id: self.next_outgoing_id, echo: true, ..super::flow() });
        matches!(self.heard().as_slice(), [Heard { performative: Performative::Flow(_), .. }])
    }
}

/// A server as it is by default.
pub fn plain() -> Script {
    Script::begun(config())
}

/// The frames in `octets`: channel, body and the code of its performative.
pub fn frames_of(octets: &[u8]) -> Vec<(u16, Vec<u8>, u8)> {
    let (mut frames, mut rest) = (Vec::new(), octets);
    while let Some(header) = FrameHeader::parse(rest, u32::MAX).unwrap() {
        let body = rest[header.body..header.size].to_vec();
        let code = body.get(2).copied().unwrap_or_default();
        frames.push((header.channel, body, code));
        rest = &rest[header.size..];
    }
    frames
}
