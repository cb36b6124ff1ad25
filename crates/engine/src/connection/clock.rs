//! How far the peer's clock is from ours: an exchange of instants between two of Hopline's own
//! ends whose clocks differ. Each end says in the properties of its `open` which clock it reads;
//! whoever doesn't say so is never asked.
//!
//! ```text
//!  asks    flow, properties {hopline:clock: [n, t1]}            t1 is filled in as it leaves
//!  answers flow, properties {hopline:clock: [n, t1, t2, t3]}    t3 is filled in as it leaves
//! ```
//! Both are flows of a session (part 2, 2.7.4) and say what such a flow says beside. What comes of
//! them is [`PeerClock`]'s business.

use super::Connection;
use crate::SessionId;
use crate::link::Half;
use hopline_timeline::{ClockDomain, ClockKind, ClockOffset, Instant, PeerClock};
use hopline_wire::performative::{Flow, Frame, Open};
use hopline_wire::{Fields, Symbol, Value};
use std::time::Duration;

/// The name of the property, in `open` and in flows.
const PROPERTY: &str = "hopline:clock";

/// So many exchanges follow the beginning, to find a quick one among them, even if nothing comes.
const FIRST: u32 = 8;

/// How soon a question may follow another while little is known.
const FRESH_EVERY: Duration = Duration::from_millis(10);

/// How soon from then on. Either way, unless transfers have come since, nothing is asked.
const EVERY: Duration = Duration::from_millis(100);

/// The exchange with a peer.
#[derive(Debug)]
pub(super) struct Exchange {
    peer: PeerClock,
    asked: u32,
    /// A question is due.
    is_due: bool,
    /// A question is out and not answered.
    is_out: bool,
    /// When the next question may follow.
    next: Instant,
    /// Transfers that had come when the last question left.
    transfers: u64,
    /// The last question of the peer's, if it is not answered, and the session that it came by.
    owed: Option<(SessionId, u32, Instant, Instant)>,
}

/// The clock that we read, as `open` says it.
pub(super) fn property(clock: &ClockDomain) -> (Symbol, Value) {
    let mut octets = vec![clock.kind.code()];
    octets.extend_from_slice(&clock.host);
    (Symbol::from_static(PROPERTY), Value::Binary(octets.into()))
}

/// The clock that the peer says it reads.
fn clock_of(open: &Open) -> Option<ClockDomain> {
    let Some(Value::Binary(octets)) = open.properties.as_ref()?.get(PROPERTY) else { return None };
    let (kind, host) = octets.split_first()?;
    let host = host.try_into().ok()?;
    Some(ClockDomain { kind: ClockKind::from_code(*kind), host, ..ClockDomain::default() })
}

/// What a flow says: the number, and the instants.
fn said(flow: &Flow) -> Option<(u32, Vec<Instant>)> {
    let Some(Value::List(parts)) = flow.properties.as_ref()?.get(PROPERTY) else { return None };
    let (Value::Uint(n), instants) = parts.split_first()? else { return None };
    let instants = instants.iter().map(|part| match part {
        Value::Long(ns) => Some(Instant::from_nanos(*ns)),
        _ => None,
    });
    Some((*n, instants.collect::<Option<_>>()?))
}

impl Connection {
    /// How far the peer's clock was ahead of ours at that instant of ours. `None`: both are one
    /// clock, the peer is none of ours, or nothing is known yet.
    pub fn peer_clock(&self, at: Instant) -> Option<ClockOffset> {
        self.exchange.as_ref()?.peer.ahead(at)
    }

    /// The peer has opened: from here on its clock is asked for, if it is another one.
    pub(super) fn begin_exchange(&mut self, open: &Open) {
        let clocks = self.config.clock.as_ref().zip(clock_of(open));
        if clocks.is_some_and(|(ours, theirs)| !ours.is_same_as(&theirs)) {
            self.exchange = Some(Box::new(Exchange {
                peer: PeerClock::default(),
                asked: 0,
                is_due: false,
                is_out: false,
                next: self.received,
                transfers: 0,
                owed: None,
            }));
        }
    }

    fn any_session(&self) -> Option<SessionId> {
        let mut sessions = self.sessions.iter();
        let usable = sessions.find(|(_, it)| it.local == Half::Active && it.remote == Half::Active);
        usable.map(|(id, _)| id)
    }

    /// When the next question is due.
    pub(super) fn exchange_deadline(&self) -> Option<Instant> {
        let exchange = self.exchange.as_ref().filter(|it| !it.is_due && !it.is_out)?;
        let is_of_use =
            exchange.asked < FIRST || exchange.transfers != self.frames_seen.transfers_in;
        (is_of_use && self.is_open() && self.any_session().is_some()).then_some(exchange.next)
    }

    /// It is due now.
    pub(super) fn ask_clock(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.is_due = true;
        }
    }

    /// A flow of a session has come, which may ask or answer.
    pub(super) fn clock_flow(&mut self, session: SessionId, flow: &Flow) {
        let (Some(exchange), Some((n, instants))) = (&mut self.exchange, said(flow)) else {
            return;
        };
        match *instants {
            [asked] => exchange.owed = Some((session, n, asked, self.received)),
            [asked, came, answered] if exchange.is_out && n == exchange.asked => {
                exchange.is_out = false;
                exchange.peer.add((asked, self.received), (came, answered));
            }
            _ => {}
        }
    }

    /// Puts what is to be said of clocks into the outbox.
    pub(super) fn put_clocks(&mut self) {
        let Some(exchange) = &mut self.exchange else { return };
        let is_due = exchange.is_due;
        if let Some((session, n, asked, came)) = exchange.owed.take() {
            self.put_clock(session, n, &[asked, came]);
        }
        if let Some(session) = is_due.then(|| self.any_session()).flatten() {
            let n = self.next_question();
            self.put_clock(session, n, &[]);
        }
    }

    /// The question that was due is out from here on; its number.
    fn next_question(&mut self) -> u32 {
        let (now, transfers) = (self.latest(), self.frames_seen.transfers_in);
        let Some(exchange) = &mut self.exchange else { return 0 };
        let every = if exchange.peer.is_fresh() { FRESH_EVERY } else { EVERY };
        exchange.asked = exchange.asked.wrapping_add(1).max(1);
        (exchange.is_due, exchange.is_out) = (false, true);
        exchange.next = now.saturating_add(every);
        exchange.transfers = transfers;
        exchange.asked
    }

    /// One flow; the last instant is filled in as it leaves.
    fn put_clock(&mut self, session: SessionId, n: u32, instants: &[Instant]) {
        let Some(session) = self.sessions.get_mut(session).filter(|s| s.local == Half::Active)
        else {
            return;
        };
        let instants = instants.iter().chain([&Instant::UNFILLED]);
        let instants = instants.map(|at| Value::Long(at.as_nanos()));
        let said = Value::List([Value::Uint(n)].into_iter().chain(instants).collect());
        let properties = Fields(vec![(Symbol::from_static(PROPERTY), said)]);
        session.windows.incoming_window = session.window_max;
        let flow = Flow { properties: Some(properties), ..session.flow() };
        flow.put(self.outbox.tail(), session.local_channel);
        self.frames_seen.flows_out += 1;
        // It is the last value of the last field.
        let at = self.outbox.tail().len() - size_of::<Instant>();
        self.outbox.mark_slot(at, |_| None);
    }
}
