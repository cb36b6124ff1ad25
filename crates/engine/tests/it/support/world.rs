//! Two engines whose users do what they like over a pipe that splits and delays, and what must hold
//! whatever they do: nothing is lost or doubled, each link keeps its order, no credit or window is
//! exceeded, all that is granted is used, and every delivery is settled once.

use super::{Choices, End, Pair, agree, config, options, tag};
use hopline_engine::timeline::Instant;
use hopline_engine::wire::definitions::ReceiverSettleMode;
use hopline_engine::wire::performative::Attach;
use hopline_engine::wire::{AmqpError, DeliveryState, Role, Serial, condition};
use hopline_engine::{AttachOptions, Config, Event, LinkId, Outgoing, SessionId};
use std::collections::{BTreeMap, VecDeque};

/// Octets that go to and fro so often go for ever: what waits at most is far less.
const ROUNDS: usize = 10_000;

/// What happened on a link, by its name.
#[derive(Debug, Default)]
struct Record {
    sent: u32,
    received: u32,
    /// Deliveries that may have come at most, by what was granted.
    limit: u32,
    /// Outcomes told of each delivery that went unsettled.
    outcomes: BTreeMap<u32, u32>,
    draining: bool,
    /// One end gave it up: what is on its way may be lost, but not doubled or reordered.
    dead: bool,
}

/// One end and what its user knows.
struct Side {
    end: End,
    sessions: Vec<SessionId>,
    links: Vec<(LinkId, Role, String)>,
    requests: Vec<(LinkId, Attach)>,
    owed: Vec<(LinkId, bool)>,
    unsettled: Vec<(LinkId, Serial)>,
    pipe: VecDeque<u8>,
}

impl Side {
    fn new(end: End) -> Self {
        let (sessions, links, requests) = (Vec::new(), Vec::new(), Vec::new());
        let (owed, unsettled, pipe) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { end, sessions, links, requests, owed, unsettled, pipe }
    }

    fn name(&self, link: LinkId) -> Option<&String> {
        self.links.iter().find(|(id, ..)| *id == link).map(|(.., name)| name)
    }

    fn of(&self, role: Role) -> Vec<(LinkId, String)> {
        let links = self.links.iter().filter(|(_, r, _)| *r == role);
        links.map(|(id, _, name)| (*id, name.clone())).collect()
    }
}

/// The two ends, the pipe between them and what must come of it.
pub struct World<C> {
    sides: [Side; 2],
    records: BTreeMap<String, Record>,
    choices: C,
    now: Instant,
}

impl<C: Choices> World<C> {
    pub fn new(mut choices: C) -> Self {
        // Whoever grants credit for more than it keeps unsettled has itself to blame.
        let max_unsettled = [10, 65_536][choices.below(2)];
        let mut settings = || Config {
            max_frame_size: [512, 700, 65_536][choices.below(3)],
            incoming_window: [2, 3, 10, 8192][choices.below(4)],
            outbox_high_water: [600, 5000, 128 << 10][choices.below(3)],
            outbox_max: [3000, 4 << 20][choices.below(2)],
            max_unsettled,
            first_id: [0, 0xffff_fff0, 0x7fff_fff0, u32::MAX][choices.below(4)],
            ..config()
        };
        let mut pair = Pair::open_with(settings(), settings());
        pair.client.answers = false;
        pair.server.answers = false;
        let sides = [Side::new(pair.client), Side::new(pair.server)];
        Self { sides, records: BTreeMap::new(), choices, now: pair.now }
    }

    /// Takes octets from the end and hands octets to its peer, few or many.
    /// How many octets it carried.
    fn carry(&mut self, from: usize, all: bool) -> usize {
        let size = [1, 9, 100, 3000][self.choices.below(4)];
        let max = if all { usize::MAX } else { self.choices.below(size) + 1 };
        let octets = self.sides[from].end.write(max, self.now);
        self.sides[from].pipe.extend(octets);
        let n = if all { usize::MAX } else { self.choices.below(2 * size) };
        let n = n.min(self.sides[from].pipe.len());
        let octets: Vec<u8> = self.sides[from].pipe.drain(..n).collect();
        if !octets.is_empty() {
            let buffer = self.sides[1 - from].end.connection.read_buffer();
            buffer.extend_from_slice(&octets);
            self.sides[1 - from].end.connection.handle_read(self.now);
        }
        self.listen(1 - from);
        self.listen(from);
        n
    }

    fn listen(&mut self, at: usize) {
        while let Some(event) = self.sides[at].end.connection.poll_event(self.now) {
            self.told(at, event);
        }
    }

    fn told(&mut self, at: usize, event: Event) {
        let side = &mut self.sides[at];
        match event {
            Event::SessionBegun(id) if !side.sessions.contains(&id) => side.sessions.push(id),
            Event::SessionEnded { session, error } => {
                assert!(error.is_none(), "{error:?}");
                side.sessions.retain(|id| *id != session);
            }
            Event::AttachRequest { link, attach } => side.requests.push((link, *attach)),
            Event::Detached { link, closed, by_peer, error } => {
                let refused = error.as_ref().is_none_or(|e| e.condition == condition::NOT_FOUND);
                assert!(refused, "{error:?}");
                side.requests.retain(|(id, _)| by_peer || *id != link);
                side.unsettled.retain(|(id, _)| *id != link);
                if by_peer {
                    side.owed.push((link, closed));
                }
                self.bury(at, link);
            }
            Event::Delivery(delivery) => {
                let name = side.name(delivery.link).unwrap();
                let record = self.records.get_mut(name).unwrap();
                let number = u32::from_be_bytes(delivery.payload[..4].try_into().unwrap());
                assert_eq!(number, record.received, "lost, doubled or out of order on {name}");
                record.received += 1;
                assert!(record.received <= record.limit, "credit was exceeded on {name}");
                if !delivery.settled {
                    side.unsettled.push((delivery.link, delivery.id));
                }
            }
            Event::Outcome { link, id, token, settled, .. } => {
                let name = side.name(link).unwrap();
                let record = self.records.get_mut(name).unwrap();
                *record.outcomes.get_mut(&(token as u32)).unwrap() += 1;
                if !settled {
                    side.end.connection.settle_sent(link, id, None).unwrap();
                }
            }
            Event::Drained { link } => {
                let record = self.records.get_mut(side.name(link).unwrap()).unwrap();
                assert!(std::mem::take(&mut record.draining), "drained, but nobody asked");
            }
            Event::Closed { error, .. } => assert!(error.is_none(), "{error:?}"),
            _ => {}
        }
    }

    /// A link is gone at one end.
    fn bury(&mut self, at: usize, link: LinkId) {
        if let Some(name) = self.sides[at].name(link).cloned() {
            self.records.get_mut(&name).unwrap().dead = true;
        }
        self.sides[at].links.retain(|(id, ..)| *id != link);
    }

    /// One of them does something, or the pipe carries something.
    pub fn step(&mut self) {
        let at = self.choices.below(2);
        match self.choices.below(40) {
            0 if self.sides[at].sessions.len() < 3 => {
                let session = self.sides[at].end.connection.begin().unwrap();
                self.sides[at].sessions.push(session);
            }
            1..=3 => self.attach(at),
            4..=6 => self.answer(at),
            7..=14 => self.send(at),
            15..=18 => self.settle(at),
            19..=21 => self.grant(at),
            22 => self.drain(at),
            23 => self.meet_drains(at),
            24 => self.detach(at),
            25 if self.choices.one_in(10) => self.end(at),
            _ => {
                self.carry(at, false);
            }
        }
        self.listen(at);
    }

    fn attach(&mut self, at: usize) {
        let Some(session) = self.choices.pick(&self.sides[at].sessions) else { return };
        if self.sides[at].links.len() > 6 {
            return;
        }
        let role = [Role::Sender, Role::Receiver][self.choices.below(2)];
        let second = [ReceiverSettleMode::First, ReceiverSettleMode::Second][self.choices.below(2)];
        let name = format!("link-{}", self.records.len());
        let wanted = AttachOptions { rcv_settle_mode: second, ..options(&name, role) };
        if let Ok(link) = self.sides[at].end.connection.attach(session, wanted) {
            self.sides[at].links.push((link, role, name.clone()));
            self.records.insert(name, Record::default());
        }
    }

    fn answer(&mut self, at: usize) {
        if let Some((link, closed)) = self.sides[at].owed.pop() {
            self.sides[at].requests.retain(|(id, _)| *id != link);
            return self.sides[at].end.connection.detach(link, closed, None);
        }
        let Some((link, attach)) = self.sides[at].requests.pop() else { return };
        let refuses = self.choices.one_in(10);
        let connection = &mut self.sides[at].end.connection;
        if refuses {
            connection.refuse(link, AmqpError::new(condition::NOT_FOUND, "not today"));
            self.records.get_mut(&attach.name).unwrap().dead = true;
        } else if connection.accept(link, agree(&attach)).is_ok() {
            self.sides[at].links.push((link, attach.role.peer(), attach.name));
        }
    }

    fn send(&mut self, at: usize) {
        let Some((link, name)) = self.choices.pick(&self.sides[at].of(Role::Sender)) else {
            return;
        };
        let burst = self.choices.below(5);
        for _ in 0..=burst {
            if self.sides[at].end.connection.send_block(link).is_some() {
                return;
            }
            let record = self.records.get_mut(&name).unwrap();
            let (number, settled) = (record.sent, self.choices.one_in(3));
            let size = [0, 10, 500, 3000][self.choices.below(4)];
            let mut body = number.to_be_bytes().to_vec();
            body.resize(4 + size, 7);
            let delivery = Outgoing {
                tag: tag(&number.to_be_bytes()).unwrap(),
                settled,
                format: 0,
                token: number.into(),
                bare: body.into(),
            };
            self.sides[at].end.connection.send(link, delivery, |_| None).unwrap();
            record.sent += 1;
            if !settled {
                record.outcomes.insert(number, 0);
            }
        }
    }

    fn settle(&mut self, at: usize) {
        let n = self.sides[at].unsettled.len();
        if n == 0 {
            return;
        }
        let at_random = self.choices.below(n);
        let (link, id) = self.sides[at].unsettled.swap_remove(at_random);
        let state =
            [DeliveryState::Accepted, DeliveryState::Released][self.choices.below(2)].clone();
        let _ = self.sides[at].end.connection.settle(link, id, state);
    }

    fn grant(&mut self, at: usize) {
        let credit = self.choices.below(20) as u32;
        if let Some((link, _)) = self.choices.pick(&self.sides[at].of(Role::Receiver)) {
            self.grant_to(at, link, credit);
        }
    }

    fn grant_to(&mut self, at: usize, link: LinkId, credit: u32) {
        if self.sides[at].end.connection.set_credit(link, credit).is_ok() {
            let record = self.records.get_mut(self.sides[at].name(link).unwrap()).unwrap();
            // One may be on its way in already: it took its credit with its first transfer.
            record.limit = record.limit.max(record.received + 1 + credit);
            record.draining = false;
        }
    }

    fn drain(&mut self, at: usize) {
        let Some((link, name)) = self.choices.pick(&self.sides[at].of(Role::Receiver)) else {
            return;
        };
        if self.sides[at].end.connection.drain(link).is_ok() {
            self.records.get_mut(&name).unwrap().draining = true;
        }
    }

    fn meet_drains(&mut self, at: usize) {
        for (link, _) in self.sides[at].of(Role::Sender) {
            if self.sides[at].end.connection.wants_drain(link) {
                self.sides[at].end.connection.drained(link);
            }
        }
    }

    fn detach(&mut self, at: usize) {
        let Some((link, _, name)) = self.choices.pick(&self.sides[at].links) else { return };
        self.records.get_mut(&name).unwrap().dead = true;
        let closed = self.choices.one_in(2);
        self.sides[at].end.connection.detach(link, closed, None);
    }

    fn end(&mut self, at: usize) {
        let Some(session) = self.choices.pick(&self.sides[at].sessions) else { return };
        self.sides[at].sessions.retain(|id| *id != session);
        for (link, _, name) in &self.sides[at].links {
            let info = self.sides[at].end.connection.link_info(*link);
            if info.is_some_and(|info| info.session == session) {
                self.records.get_mut(name).unwrap().dead = true;
            }
        }
        self.sides[at].end.connection.end(session, None);
    }

    /// Lets both users do what they owe, until nothing moves.
    fn come_to_rest(&mut self) {
        for _ in 0..ROUNDS {
            let mut carried = 0;
            for at in 0..2 {
                (0..10).for_each(|_| self.answer(at));
                self.meet_drains(at);
                while !self.sides[at].unsettled.is_empty() {
                    self.settle(at);
                }
                carried += self.carry(at, true);
            }
            if carried == 0 {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Lets everything come to rest and looks whether all came of it that had to.
    pub fn finish(&mut self) {
        self.come_to_rest();
        for (name, record) in &self.records {
            assert!(record.dead || !record.draining, "{name} was never drained");
            assert!(record.dead || record.sent == record.received, "{name}: {record:?}");
        }
        for at in 0..2 {
            for (link, _) in self.sides[at].of(Role::Receiver) {
                self.grant_to(at, link, 5);
            }
        }
        self.come_to_rest();
        for at in 0..2 {
            for (link, name) in self.sides[at].of(Role::Sender) {
                let credit = self.sides[at].end.connection.credit(link);
                assert!(self.records[&name].dead || credit == 5, "{name} has credit {credit}");
            }
        }
        for _ in 0..20 {
            (0..10).for_each(|n| self.send(n % 2));
            self.come_to_rest();
        }
        for (name, record) in &self.records {
            let once = record.outcomes.values().all(|told| *told == 1);
            assert!(record.dead || once && record.sent == record.received, "{name}: {record:?}");
        }
        for side in &self.sides {
            assert!(side.end.connection.is_open());
            for session in &side.sessions {
                assert_eq!(side.end.connection.unsettled(*session), (0, 0));
            }
        }
    }

    /// Deliveries that came, on all links.
    pub fn received(&self) -> u32 {
        self.records.values().map(|record| record.received).sum()
    }

    /// Whether nothing is left to choose from.
    pub fn is_exhausted(&self) -> bool {
        self.choices.is_exhausted()
    }
}
