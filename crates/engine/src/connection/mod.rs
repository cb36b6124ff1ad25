//! One end of a connection (part 2, 2.4).
//!
//! ```text
//!  Header --> Sasl --> AmqpHeader --> Frames --> Discard --> Over
//!     |                    ^            |           (after our close, until the peer's)
//!     +--------------------+            +------------------>
//! ```
//! Within `Frames`, [`Half`] says for each end whether its `open` and `close` are out.

mod attach;
mod clock;
mod commands;
mod disposition;
mod echo;
mod ending;
mod fit;
mod flow;
mod handshake;
mod read;
mod sasl;
mod timers;
mod transfer;

pub use attach::{Answer, AttachOptions};

use crate::config::{Config, Side};
use crate::counts::{FrameCounts, Waited};
use crate::event::{Arrival, Delivery, Event};
use crate::link::{Half, Link};
use crate::outbox::Outbox;
use crate::sasl::{Authenticator, ClientSasl};
use crate::session::Session;
use crate::{LinkId, SessionId};
use bytes::{Bytes, BytesMut};
use clock::Exchange;
use disposition::Told;
use echo::EchoLimit;
use hopline_timeline::Instant;
use hopline_wire::performative::Frame;
use hopline_wire::{Role, limits};
use slotmap::SlotMap;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use timers::Timers;

/// What the next octets have to be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Reading {
    /// The peer's first protocol header.
    Header,
    /// SASL frames.
    Sasl,
    /// The AMQP header behind SASL.
    AmqpHeader,
    /// AMQP frames.
    Frames,
    /// AMQP frames of which only `close` counts.
    Discard,
    /// Nothing more.
    Over,
}

/// What the peer's `open` allows us.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Octets of the largest frame that we send: the peer's limit, and not above our own.
    pub(crate) frame_size: usize,
    channel_max: u16,
}

/// One end of an AMQP connection. See the crate's documentation for the order of calls.
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Config,
    side: Side,
    reading: Reading,
    sasl: sasl::Sasl,
    local: Half,
    remote: Half,
    input: BytesMut,
    /// Whole frames, taken from the input in one piece; empty once the last is decoded.
    frames: Bytes,
    /// Octets of `frames` that are decoded.
    decoded: usize,
    /// The read that brought the frame that is handled brought more behind it.
    has_more: bool,
    received: Instant,
    arrived: Option<Instant>,
    pub(crate) outbox: Outbox,
    pub(crate) frames_seen: FrameCounts,
    /// On links and sessions that have ended.
    waited: Waited,
    events: VecDeque<Event>,
    /// A delivery that the frame that is decoded has made whole; no other event comes with it.
    whole: Option<Delivery>,
    /// Deliveries of a disposition that are still to be told.
    told: Option<Told>,
    /// Boxed, as links are: most connections have one, and a map makes room for four.
    pub(crate) sessions: SlotMap<SessionId, Box<Session>>,
    pub(crate) links: SlotMap<LinkId, Box<Link>>,
    by_local_channel: Vec<Option<SessionId>>,
    by_remote_channel: Vec<Option<SessionId>>,
    names: HashMap<(String, Role), LinkId>,
    pub(crate) peer: Peer,
    dirty: Vec<SessionId>,
    timers: Timers,
    echoes: EchoLimit,
    /// With a peer whose clock is another one.
    exchange: Option<Box<Exchange>>,
    partial_octets: usize,
    /// Octets of the last delivery that came in several transfers: the next may have as many.
    expected_octets: usize,
    user: Option<String>,
    told_closed: bool,
}

impl Connection {
    /// The end that connected. Its first octets are ready at once.
    pub fn client(config: Config, sasl: ClientSasl, now: Instant) -> Self {
        let mut connection = Self::new(config, Side::Client(sasl), now);
        connection.start_client();
        connection
    }

    /// The end that was connected to.
    pub fn server(config: Config, authenticator: Arc<dyn Authenticator>, now: Instant) -> Self {
        Self::new(config, Side::Server(authenticator), now)
    }

    fn new(config: Config, side: Side, now: Instant) -> Self {
        let timers = Timers::new(now, &config);
        let echoes = EchoLimit::new(config.echo_replies_per_second, now);
        Self {
            config,
            side,
            reading: Reading::Header,
            sasl: sasl::Sasl::Idle,
            local: Half::Idle,
            remote: Half::Idle,
            input: BytesMut::new(),
            frames: Bytes::new(),
            decoded: 0,
            has_more: false,
            received: now,
            arrived: None,
            outbox: Outbox::default(),
            frames_seen: FrameCounts::default(),
            waited: Waited::default(),
            events: VecDeque::new(),
            whole: None,
            told: None,
            sessions: SlotMap::with_key(),
            links: SlotMap::with_key(),
            by_local_channel: Vec::new(),
            by_remote_channel: Vec::new(),
            names: HashMap::new(),
            peer: Peer { frame_size: limits::MIN_MAX_FRAME_SIZE as usize, channel_max: 0 },
            dirty: Vec::new(),
            timers,
            echoes,
            exchange: None,
            partial_octets: 0,
            expected_octets: 0,
            user: None,
            told_closed: false,
        }
    }

    /// Where octets that were read are to be appended; then call [`Connection::handle_read`].
    pub const fn read_buffer(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Octets of the frame whose first part has been read, so that one read can bring the rest;
    /// 0 if there is none. Never more than the largest frame that we read.
    pub fn frame_ahead(&self) -> usize {
        let size = self.input.first_chunk().map_or(0, |size| u32::from_be_bytes(*size));
        if size <= self.frame_limit() { size as usize } else { 0 }
    }

    /// Whether reading is wanted: not after the end, and not while the peer leaves so much unread
    /// that more answers would not fit in the outbox.
    pub fn wants_read(&self) -> bool {
        self.reading != Reading::Over && self.outbox.len() <= self.config.outbox_max
    }

    /// A read has returned, with octets, at `now`.
    pub const fn handle_read(&mut self, now: Instant) {
        self.received = now;
        self.timers.last_read = now;
    }

    /// When the newest octets of the last read arrived at the host, if its kernel told.
    pub const fn handle_arrival(&mut self, arrived: Option<Instant>) {
        self.arrived = arrived;
    }

    /// When the octets that were decoded last arrived.
    fn arrival(&self) -> Option<Arrival> {
        self.arrived.map(|at| Arrival { at, is_upper_bound: self.has_more })
    }

    /// Decodes on until something is to be told.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.told.is_some() {
                match self.tell_next() {
                    Some(event) => return Some(event),
                    None => self.told = None,
                }
            }
            if !self.wants_read() || !self.step(now) {
                return None;
            }
            if let Some(delivery) = self.whole.take() {
                return Some(Event::Delivery(delivery));
            }
        }
    }

    /// Readies what is due; `true`: the outbox holds octets to write.
    pub fn poll_transmit(&mut self) -> bool {
        if self.exchange.is_some() {
            self.put_clocks();
        }
        for id in std::mem::take(&mut self.dirty) {
            if let Some(session) = self.sessions.get_mut(id) {
                session.is_dirty = false;
            }
            self.flush_session(id);
            let waits = self.sessions.get(id).is_some_and(|session| {
                session.pending.is_some() && session.windows.remote_incoming_window > 0
            });
            if waits {
                self.touch(id);
            }
        }
        !self.outbox.is_empty()
    }

    /// What is to be written. Call [`Outbox::stamp`] just before the write.
    pub const fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// `n` octets of the outbox were written at `now`.
    pub fn wrote(&mut self, n: usize, now: Instant) {
        if n > 0 {
            self.outbox.advance(n, now);
            self.timers.last_write = now;
        }
    }

    /// The frames that passed so far.
    pub const fn frames_seen(&self) -> FrameCounts {
        self.frames_seen
    }

    /// For how long the peer kept us from sending until `now`.
    pub fn waited(&self, now: Instant) -> Waited {
        let Waited { mut no_credit_ns, mut no_window_ns } = self.waited;
        no_credit_ns += self.links.values().map(|link| link.gate.shut_ns(now)).sum::<u64>();
        no_window_ns += self.sessions.values().map(|it| it.gate.shut_ns(now)).sum::<u64>();
        Waited { no_credit_ns, no_window_ns }
    }

    /// The latest instant that we were told, which is the present one within a turn.
    pub(crate) fn latest(&self) -> Instant {
        self.received.max(self.timers.last_write)
    }

    /// Whether both `open`s are out and no `close` is.
    pub fn is_open(&self) -> bool {
        self.local == Half::Active && self.remote == Half::Active
    }

    /// Whether nothing more is to be read or written: the socket can be shut.
    /// How long a peer may take to read what is left is not limited here: who writes gives up.
    pub fn is_finished(&self) -> bool {
        self.reading == Reading::Over && self.outbox.is_empty()
    }

    /// Whether nothing more is to be read.
    pub fn is_over(&self) -> bool {
        self.reading == Reading::Over
    }

    /// Whether the connection is over for its links: [`crate::Event::Closed`] was told, or is among
    /// the events that wait.
    pub const fn is_closed(&self) -> bool {
        self.told_closed
    }

    /// The user that SASL let in.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Marks a session as having something to send.
    pub(crate) fn touch(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(id)
            && !std::mem::replace(&mut session.is_dirty, true)
        {
            self.dirty.push(id);
        }
    }

    /// Appends a frame to the outbox.
    fn put(&mut self, frame: &impl Frame, channel: u16) {
        frame.put(self.outbox.tail(), channel);
    }
}

/// Milliseconds as `open.idle-time-out` has them: half of when we give up (2.4.5).
fn advertised_ms(idle_timeout: Option<Duration>) -> Option<u32> {
    let half = idle_timeout?.as_millis() / 2;
    Some(u32::try_from(half).unwrap_or(u32::MAX).max(1))
}
