//! One connection: its socket, its engine, and the one way in which octets pass between them.

use crate::engine::Connection;
use crate::held::{self, Held, held_back};
use crate::line::Line;
use crate::reading::make_room;
use crate::sent::{Gate, Sent};
use crate::spare;
use crate::stamps::Stamps;
use crate::{Clock, EffectiveOptions, KernelTimestamps, SideRecords, Transport, tcp_record};
use hopline_timeline::record::{
    ConnectionRecord, FramesRecord, HeldRecord, IoRecord, Schema, WaitedRecord,
};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Once};
use std::time::Duration;
use tokio::net::TcpStream;

/// Slices of one write (`IOV_MAX` is 1,024; more than these gain nothing).
const SLICES: usize = 64;

/// How long, and for how many octets, a peer may still talk after the last frame, so that closing
/// does not reset the connection under our own last frame.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_OCTETS: usize = 4 << 20;

/// How often the side records get the account of a connection on which something happens.
const SAMPLE: Duration = Duration::from_secs(10);

/// It was said that there are no kernel timestamps.
static TOLD: Once = Once::new();

/// What came of a read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// Octets: take the engine's events.
    Octets,
    /// Nothing is there, or the engine wants nothing now.
    Blocked,
    /// The peer has ended its side, or the connection is lost. Take the engine's events, then
    /// call its `handle_eof`.
    End,
}

/// What came of a flush.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Flush {
    /// All was written.
    Done,
    /// The socket takes no more now: wait until it is writable.
    Blocked,
}

/// What passed over a connection.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads that brought octets.
    pub reads: u64,
    /// Octets read.
    pub octets_read: u64,
    /// Writes that took octets.
    pub writes: u64,
    /// Octets written.
    pub octets_written: u64,
    /// Writes that took less than there was.
    pub short_writes: u64,
    /// Flushes after which the kernel held octets back, by reason.
    pub held: HeldRecord,
}

/// An engine and its socket. No method blocks or waits.
#[derive(Debug)]
pub struct Io {
    engine: Connection,
    line: Line,
    clock: Clock,
    ended: bool,
    blocked: bool,
    /// The last read took all that a read may take.
    full: bool,
    counters: Counters,
    held: Option<Held>,
    stamps: Option<Box<Stamps>>,
    sent: Option<Box<Sent>>,
    /// Octets that each flush writes apart, before the rest.
    head: Option<NonZeroUsize>,
}

impl Io {
    /// Puts them together. The handshake of the transport is done.
    pub fn new(engine: Connection, socket: Arc<TcpStream>, transport: Transport) -> Self {
        Self::over(engine, Line::Socket(socket, transport))
    }

    /// Puts an engine and a connection in memory together.
    #[cfg(feature = "simulation")]
    pub fn in_memory(engine: Connection, pipe: crate::simulation::Pipe) -> Self {
        Self::over(engine, Line::Memory(pipe))
    }

    fn over(engine: Connection, line: Line) -> Self {
        let counters = Counters::default();
        let (ended, blocked, full, held) = (false, false, false, None);
        let (stamps, sent, head, clock) = (None, None, None, Clock);
        Self { engine, line, clock, ended, blocked, full, counters, held, stamps, sent, head }
    }

    /// Lets each flush write the first `octets` apart from the rest, as a program does that writes
    /// a header and then a body: with Nagle's algorithm the rest waits until the peer acknowledges
    /// them. For experiments; `None`, the default, writes all at once.
    pub const fn split_writes(&mut self, octets: Option<NonZeroUsize>) {
        self.head = octets;
    }

    /// Asks the kernel for its stamps from here on; to be called before anything is written. Where
    /// they can't be had the log says so, once, and all else works. What the kernel tells of sent
    /// messages goes to `side`: its stamps, if they are wanted, and in any case why it held a
    /// message back.
    pub fn use_kernel_timestamps(&mut self, wanted: KernelTimestamps, side: Option<&SideRecords>) {
        if wanted == KernelTimestamps::Off && side.is_none() {
            return;
        }
        if let Err(why) = self.ask_kernel(wanted, side) {
            TOLD.call_once(|| {
                tracing::warn!("no kernel timestamps on some connections: {why}");
            });
        }
    }

    fn ask_kernel(
        &mut self,
        wanted: KernelTimestamps,
        side: Option<&SideRecords>,
    ) -> io::Result<()> {
        let why = "within TLS no octet of a message is one of the socket";
        let socket = self.line.plain_socket();
        let socket = socket.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, why))?;
        if wanted != KernelTimestamps::Off {
            self.stamps = Some(Box::new(Stamps::enable(socket)?));
        }
        let Some(side) = side.cloned() else { return Ok(()) };
        let (sent, one_in) = match wanted {
            KernelTimestamps::OneIn(n) => (Sent::stamped(side, socket)?, n),
            _ => (Sent::held_only(side, socket), NonZeroU32::MIN),
        };
        self.sent = Some(Box::new(sent));
        self.engine.outbox().follow(one_in);
        Ok(())
    }

    /// Where to wait for room in the socket, if not at the socket itself.
    pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
        self.sent.as_ref()?.gate()
    }

    /// The engine.
    pub const fn engine(&self) -> &Connection {
        &self.engine
    }

    /// The engine, for commands and events.
    pub const fn engine_mut(&mut self) -> &mut Connection {
        &mut self.engine
    }

    /// The socket, for [`crate::Waiter::ready`].
    ///
    /// # Panics
    /// In a simulation, where there is none.
    pub const fn socket(&self) -> &Arc<TcpStream> {
        match &self.line {
            Line::Socket(socket, _) => socket,
            #[cfg(feature = "simulation")]
            #[allow(clippy::panic)]
            Line::Memory(_) => panic!("a connection in memory has no socket"),
        }
    }

    /// What passed so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// What the kernel held back right after the last flush that wrote.
    pub const fn held(&self) -> Option<Held> {
        self.held
    }

    /// The account of the connection so far, as the end of `node`; `None` for one in memory. The
    /// peer of a connection that was reset is `unknown`.
    pub fn record(&self, node: &str) -> Option<ConnectionRecord> {
        let socket = self.line.socket()?;
        let (calls, frames) = (self.counters, self.engine.frames_seen());
        let waited = self.engine.waited(self.clock.now());
        let name = |address: io::Result<SocketAddr>| {
            address.map_or_else(|_| "unknown".to_owned(), |address| address.to_string())
        };
        Some(ConnectionRecord {
            schema: Schema,
            node: node.to_owned(),
            local: name(socket.local_addr()),
            peer: name(socket.peer_addr()),
            nodelay: socket.nodelay().ok(),
            io: IoRecord {
                reads: calls.reads,
                octets_read: calls.octets_read,
                writes: calls.writes,
                octets_written: calls.octets_written,
                short_writes: calls.short_writes,
            },
            frames: FramesRecord {
                transfers_in: frames.transfers_in,
                transfers_out: frames.transfers_out,
                flows_in: frames.flows_in,
                flows_out: frames.flows_out,
                dispositions_in: frames.dispositions_in,
                dispositions_out: frames.dispositions_out,
            },
            waited: WaitedRecord {
                no_credit_ns: waited.no_credit_ns,
                no_window_ns: waited.no_window_ns,
            },
            held: calls.held,
            tcp: tcp_record(socket).ok(),
        })
    }

    /// The socket options in force.
    ///
    /// # Errors
    /// The system can't say.
    pub fn effective(&self) -> io::Result<EffectiveOptions> {
        EffectiveOptions::read(&**self.socket())
    }

    /// Whether reading is of use: the engine wants octets and the peer has not ended.
    pub fn wants_read(&self) -> bool {
        !self.ended && self.engine.wants_read()
    }

    /// Whether the last read took all that a read may take, so that more is likely there: let
    /// others have their turn before the next one.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the socket was full at the last flush: wait until it is writable, then flush.
    pub fn wants_write(&self) -> bool {
        self.blocked
    }

    /// Reads once. A lost connection is an end like any other: what the peer owed by frames it
    /// owes no more.
    pub fn read(&mut self) -> Read {
        if !self.wants_read() {
            return Read::Blocked;
        }
        self.full = false;
        let ahead = self.engine.frame_ahead();
        let buffer = self.engine.read_buffer();
        spare::lend(buffer);
        let max = make_room(buffer, ahead);
        let read = match (&mut self.stamps, self.line.plain_socket()) {
            (Some(stamps), Some(socket)) => stamps.try_read(socket, buffer, max),
            _ => self.line.try_read(buffer, max),
        };
        match read {
            Ok(0) => {
                self.ended = true;
                Read::End
            }
            Ok(n) => {
                let is_filled = buffer.len() == buffer.capacity();
                self.engine.handle_read(self.clock.now());
                if let Some(stamps) = &self.stamps {
                    self.engine.handle_arrival(stamps.arrived());
                }
                self.full = n >= max || is_filled;
                self.counters.reads += 1;
                self.counters.octets_read += n as u64;
                Read::Octets
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                spare::take_back(buffer);
                Read::Blocked
            }
            Err(error) => {
                tracing::debug!(%error, "read failed");
                self.ended = true;
                Read::End
            }
        }
    }

    /// Writes all that is ready: one write for all of it, if the socket takes it.
    ///
    /// # Errors
    /// The connection is lost; nothing more can be written.
    pub fn flush(&mut self) -> io::Result<Flush> {
        let written = self.counters.writes;
        let flushed = self.flush_all();
        spare::take_back(self.engine.read_buffer());
        // Most turns write nothing, and most writes leave at once: then this costs one call.
        let has_written = self.counters.writes > written;
        if has_written {
            self.look();
        }
        if let (Some(sent), Some(socket)) = (&mut self.sent, self.line.plain_socket()) {
            sent.flushed(socket, self.engine.outbox(), self.held.filter(|_| has_written));
            self.sample();
        }
        flushed
    }

    /// Now and then the account so far goes to the side records, too.
    fn sample(&mut self) {
        let now = self.clock.now();
        let is_due = |sent: &Sent| now.saturating_duration_since(sent.sampled()) >= SAMPLE;
        let Some(mut sent) = self.sent.take_if(|sent| is_due(sent)) else { return };
        sent.sample(now, |node| self.record(node));
        self.sent = Some(sent);
    }

    /// Takes down whether the kernel holds back what it was given.
    fn look(&mut self) {
        let Some(socket) = self.line.socket() else { return };
        self.held = held_back(socket);
        if let Some(held) = self.held {
            held::count(&mut self.counters.held, held.reason);
        }
    }

    fn flush_all(&mut self) -> io::Result<Flush> {
        self.blocked = false;
        let mut most = self.head.map_or(usize::MAX, NonZeroUsize::get);
        while self.engine.poll_transmit() {
            if !self.write(std::mem::replace(&mut most, usize::MAX))? {
                self.blocked = true;
                return Ok(Flush::Blocked);
            }
        }
        match self.line.try_flush() {
            Ok(()) => Ok(Flush::Done),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                Ok(Flush::Blocked)
            }
            Err(error) => Err(error),
        }
    }

    /// One write of at most `most` octets. `false`: the socket took nothing.
    fn write(&mut self, most: usize) -> io::Result<bool> {
        let outbox = self.engine.outbox();
        let ready = outbox.len().min(most);
        let is_followed = outbox.ends_within(ready);
        let now = self.clock.now();
        outbox.stamp(now);
        let mut slices = [IoSlice::new(&[]); SLICES];
        let used = outbox.slices(&mut slices);
        let slices = slices.get(..used).unwrap_or_default();
        let head = slices.first().filter(|first| first.len() > most);
        let head = head.map(|first| [IoSlice::new(first.get(..most).unwrap_or_default())]);
        let slices = head.as_ref().map_or(slices, |head| head);
        let asked = match (&self.sent, self.line.plain_socket()) {
            (Some(sent), Some(socket)) => sent.try_write(socket, slices, is_followed),
            _ => None,
        };
        match asked.unwrap_or_else(|| self.line.try_write_vectored(slices)) {
            Ok(n) => {
                self.engine.wrote(n, now);
                self.counters.writes += 1;
                self.counters.octets_written += n as u64;
                self.counters.short_writes += u64::from(n < ready);
                Ok(n > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives up on a peer that can't be written to any more.
    pub const fn abandon(&mut self) {
        self.ended = true;
        self.blocked = false;
    }

    /// Whether nothing is left to do but [`Io::close`]: the engine is over and all is written, or
    /// can't be.
    pub fn is_finished(&self) -> bool {
        self.engine.is_over() && (self.ended && !self.blocked || self.engine.is_finished())
    }

    /// Ends our side and hears the peer out for a moment, then drops the socket.
    pub async fn close(mut self) {
        let socket = match &mut self.line {
            Line::Socket(socket, transport) => {
                transport.end();
                let _ = transport.try_flush(socket);
                socket.clone()
            }
            #[cfg(feature = "simulation")]
            Line::Memory(_) => return,
        };
        let _ = socket2::SockRef::from(&*socket).shutdown(Shutdown::Write);
        if !self.ended {
            let _ = tokio::time::timeout(LINGER, hear_out(&socket)).await;
        }
        if let Some(sent) = self.sent.take() {
            sent.finish(&socket, |node| self.record(node));
        }
    }
}

async fn hear_out(socket: &TcpStream) {
    let mut heard = 0;
    let mut scratch = vec![0; 4096];
    while heard < LINGER_OCTETS && socket.readable().await.is_ok() {
        match socket.try_read(&mut scratch) {
            Ok(0) => return,
            Ok(n) => heard += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
