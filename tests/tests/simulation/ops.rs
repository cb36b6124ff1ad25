//! What the users of clients do, drawn at random.

use crate::client::{Copy, Done, Kind, Link, Owed};
use crate::ledger::{Draft, LOOSE, PARTS};
use crate::world::{TOPICS, World};
use hopline_broker::simulation::peer::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_broker::simulation::peer::wire::outcome::{Modified, Received, Rejected};
use hopline_broker::simulation::peer::wire::terminus::{Coordinator, Source, Target, TargetKind};
use hopline_broker::simulation::peer::wire::{
    DeliveryState, DeliveryTag, Fields, Role, Symbol, Value,
};
use hopline_broker::simulation::peer::{AttachOptions, LinkId, Outgoing, SessionId};
use std::time::Duration;

const LINKS_MAX: usize = 8;

/// Number of the state that is no outcome.
const RECEIVED: u8 = 7;

impl World {
    pub fn step(&mut self) {
        let at = self.random.usize(..self.clients.len());
        if self.clients[at].is_none() {
            if self.random.bool() {
                self.connect(at);
            }
            return;
        }
        match self.random.usize(..120) {
            0..=9 => self.attach(at),
            10..=34 => self.send(at),
            35..=49 => self.settle_some(at),
            50..=59 => self.grant(at),
            60..=61 => self.drain(at),
            62 => self.detach(at),
            63 if self.one_in(3) => self.end_session(at),
            64..=67 => self.advance(),
            68 if self.one_in(2) => self.cut(at),
            69 if self.one_in(3) => self.close(at),
            70 if self.one_in(3) => self.steal(at),
            71..=72 => self.pay(at),
            73 | 77..=80 => self.transact(at),
            74 | 81..=84 => self.retire_some(at),
            75 => drop(self.turn_leaving()),
            76 if self.one_in(2) => self.check_at_rest(),
            _ => self.carry(at),
        }
        self.listen(at);
        let other = self.random.usize(..self.clients.len());
        self.carry(other);
    }

    /// Does what the user of a client owes.
    pub fn pay(&mut self, at: usize) {
        let Some(client) = &mut self.clients[at] else { return };
        for owed in std::mem::take(&mut client.owed) {
            match owed {
                Owed::Detach(link, closed) => client.engine.detach(link, closed, None),
                Owed::Settle(link, delivery) => {
                    // The link may be gone, and the delivery with it.
                    let _ = client.engine.settle_sent(link, delivery, None);
                    // Written before what is sent next: there may be no room for that before.
                    client.engine.poll_transmit();
                }
            }
        }
    }

    fn links_of(&self, at: usize, picks: impl Fn(&Link) -> bool) -> Vec<LinkId> {
        self.clients[at].as_ref().map(|client| client.links(picks)).unwrap_or_default()
    }

    fn attach(&mut self, at: usize) {
        let kind = match self.random.usize(..10) {
            0..=3 => Kind::Consumer,
            4..=5 => Kind::Publisher,
            6..=7 => Kind::Subscriber,
            8 => Kind::Browser,
            _ => Kind::Relay,
        };
        self.attach_for(at, kind);
    }

    fn attach_for(&mut self, at: usize, kind: Kind) {
        let mut nodes: Vec<_> = self.queues.iter().map(|node| (*node).to_owned()).collect();
        nodes.extend(self.dynamic.iter().cloned());
        let node = match kind {
            Kind::Relay => String::new(),
            Kind::Subscriber => TOPICS[self.random.usize(..2)].to_owned(),
            Kind::Publisher if self.one_in(4) => TOPICS[self.random.usize(..2)].to_owned(),
            _ => self.pick(&nodes).expect("there are some"),
        };
        self.uids += 1;
        // A name may come back with another link, as after a reconnect.
        let name = format!("link-{}", if self.one_in(4) { self.uids / 2 } else { self.uids });
        let link = Link::new(self.uids, name, kind, node);
        self.attach_as(at, link);
    }

    /// Attaches a link under the name of one that is attached.
    fn steal(&mut self, at: usize) {
        let attached = self
            .links_of(at, |link| link.is_attached && !link.owns_node && link.kind != Kind::Control);
        let Some(victim) = self.pick(&attached) else { return };
        let Some(old) = self.link(at, victim) else { return };
        let (name, kind, node) = (old.name.clone(), old.kind, old.node.clone());
        self.uids += 1;
        self.attach_as(at, Link::new(self.uids, name, kind, node));
    }

    /// Attaches a link with nothing special about it.
    pub fn attach_plain(&mut self, at: usize, link: Link) -> LinkId {
        let client = self.clients[at].as_mut().expect("it is there");
        let session = client.engine.begin().expect("it is open");
        client.sessions.push(session);
        self.attach_on(at, session, link)
    }

    pub fn attach_on(&mut self, at: usize, session: SessionId, link: Link) -> LinkId {
        self.give_up(at, &link);
        let client = self.clients[at].as_mut().expect("it is there");
        let id = client.engine.attach(session, options(&link)).expect("it is open");
        client.links.insert(id, link);
        id
    }

    fn attach_as(&mut self, at: usize, mut link: Link) {
        let is_dynamic = link.kind == Kind::Consumer && self.one_in(12);
        let takes_settled = link.kind == Kind::Subscriber || link.node == LOOSE;
        let settles = match link.role() {
            _ if link.kind == Kind::Browser => self.random.bool(),
            Role::Receiver => takes_settled && self.one_in(3),
            _ => self.one_in(4),
        };
        if settles || self.one_in(3) {
            link.settled = Some(settles);
        }
        if is_dynamic {
            (link.owns_node, link.node) = (true, String::new());
        }
        if link.role() == Role::Receiver && self.one_in(4) {
            link.part = Some(self.random.i32(..PARTS));
        }
        // A settlement may be written behind what is sent next: too late where there is no room.
        let may_be_late = self.is_frugal && link.role() == Role::Receiver;
        link.settles_second = self.one_in(4) && !may_be_late;
        let options = options(&link);
        let Some(client) = &mut self.clients[at] else { return };
        if client.is_closing || !client.engine.is_open() || client.links.len() >= LINKS_MAX {
            return;
        }
        if client.sessions.is_empty() || client.sessions.len() < 3 && self.random.usize(..6) == 0 {
            client.sessions.extend(client.engine.begin().ok());
        }
        let sessions = client.sessions.clone();
        let Some(session) = self.pick(&sessions) else { return };
        let Some(client) = &mut self.clients[at] else { return };
        let Ok(id) = client.engine.attach(session, options) else { return };
        self.give_up(at, &link);
        self.note("attach", at as u64, link.uid.into());
        if self.is_verbose {
            eprintln!("             {link:?}");
        }
        self.clients[at].as_mut().expect("it is there").links.insert(id, link);
    }

    /// Links that lose their name to `to`: the broker may have put back already what they hold.
    fn give_up(&mut self, at: usize, to: &Link) {
        let ids = self.links_of(at, |link| link.name == to.name && link.role() == to.role());
        for id in ids {
            let Some(client) = &mut self.clients[at] else { return };
            let Some(old) = client.links.get_mut(&id) else { continue };
            old.is_given_up = true;
            let uid = old.uid;
            self.abandon(uid);
            let Some(client) = &mut self.clients[at] else { return };
            let Some(old) = client.links.get_mut(&id) else { continue };
            let (uid, held) = (old.uid, std::mem::take(&mut old.unsettled));
            client.done.retain(|done| done.uid != uid);
            for (_, number) in held {
                let entry = self.ledger.entry(number);
                if entry.holder == Some(uid) {
                    entry.holder = None;
                }
            }
        }
    }

    fn send(&mut self, at: usize) {
        let publishes = |link: &Link| matches!(link.kind, Kind::Publisher | Kind::Relay);
        let links = self.links_of(at, |link| publishes(link) && !link.is_given_up);
        let Some(id) = self.pick(&links) else { return self.attach_for(at, Kind::Publisher) };
        for _ in 0..=self.random.usize(..10) {
            if !self.send_one(at, id) {
                return;
            }
        }
    }

    fn send_one(&mut self, at: usize, id: LinkId) -> bool {
        let now = self.sim.now();
        let Some(client) = &mut self.clients[at] else { return false };
        if client.engine.send_block(id).is_some() {
            return false;
        }
        let link = &client.links[&id];
        let relayed = link.kind == Kind::Relay;
        let (publisher, settled, node) = (link.uid, link.settled, link.node.clone());
        let nodes = [&self.queues[..], &TOPICS[..]].concat();
        let draft = Draft {
            publisher,
            relayed,
            node: if relayed { nodes[self.random.usize(..nodes.len())].into() } else { node },
            priority: if self.one_in(3) { self.random.u8(..10) } else { 4 },
            ttl: self.one_in(12).then(|| Duration::from_millis(self.random.u64(1..300))),
            size: [0, 10, 300, 3000][self.random.usize(..4)],
        };
        let settled = settled.unwrap_or_else(|| self.one_in(4));
        let (number, octets) = self.ledger.write(draft, now);
        let outgoing = Outgoing {
            tag: DeliveryTag::from(number as u64),
            settled,
            format: 0,
            token: number as u64,
            bare: octets.into(),
        };
        let posting = self.posting(at).filter(|_| self.random.bool());
        let Some(client) = &mut self.clients[at] else { return false };
        client.engine.set_delivery_state(id, posting.as_ref().map(|(_, state)| state.clone()));
        client.engine.send(id, outgoing, |_| None).expect("it may send");
        if let Some((control, _)) = posting {
            self.posted(control, number);
        }
        self.note("send", publisher.into(), number as u64);
        true
    }

    fn settle_some(&mut self, at: usize) {
        let links = self.links_of(at, |link| !link.unsettled.is_empty() && !link.is_given_up);
        let Some(id) = self.pick(&links) else { return };
        let kind = self.random.u8(..12);
        let count = if self.random.bool() { 1 } else { usize::MAX };
        let Some(link) = self.link(at, id) else { return };
        // What is no outcome ends nothing, unless it is settled with it.
        let kind = if link.settles_second && kind == RECEIVED { 0 } else { kind };
        let held = link.unsettled.len();
        let n = held.min(count);
        let from = if n == 1 { self.random.usize(..held) } else { 0 };
        for _ in 0..n {
            self.settle_one(at, id, from, outcome(kind));
        }
    }

    /// Settles one of the deliveries that a link holds.
    pub fn settle_one(&mut self, at: usize, id: LinkId, which: usize, state: DeliveryState) {
        let Some(client) = &mut self.clients[at] else { return };
        let Some(link) = client.links.get_mut(&id) else { return };
        let (delivery, number) = link.unsettled.remove(which);
        let (uid, kind, node) = (link.uid, link.kind, link.node.clone());
        if client.engine.settle(id, delivery, state.clone()).is_err() || kind == Kind::Browser {
            return;
        }
        let is_done = matches!(state, DeliveryState::Accepted | DeliveryState::Rejected(_));
        let entry = self.ledger.entry(number);
        entry.rejected |= matches!(state, DeliveryState::Rejected(_));
        if kind == Kind::Subscriber {
            let copy = if is_done { Copy::Done } else { Copy::GivenBack };
            link.copies.insert(number, copy);
        } else {
            entry.holder = None;
            entry.accepted |= state == DeliveryState::Accepted;
            if is_done {
                client.done.push(Done { uid, number, offset: None });
            }
        }
        if let DeliveryState::Modified(modified) = &state {
            entry.barred |= modified.undeliverable_here == Some(true);
            if modified.undeliverable_here == Some(true) {
                link.barred.insert(number);
            }
            self.ledger.node(&node).has_failures |= modified.delivery_failed == Some(true);
        }
        self.note("settle", uid.into(), number as u64);
    }

    fn grant(&mut self, at: usize) {
        let links = self.links_of(at, |link| link.is_attached && !link.is_given_up);
        let credit = [0, 1, 2, 10, 100][self.random.usize(..5)];
        if let Some(id) = self.pick(&links) {
            self.grant_to(at, id, credit);
        }
    }

    pub fn grant_to(&mut self, at: usize, id: LinkId, credit: u32) {
        let Some(client) = &mut self.clients[at] else { return };
        if client.engine.set_credit(id, credit).is_err() {
            return;
        }
        let Some(link) = client.links.get_mut(&id) else { return };
        // One more may have begun to come.
        link.limit = link.limit.max(link.received + u64::from(credit) + 1);
        link.is_draining = false;
        let uid = link.uid;
        self.note("grant", uid.into(), credit.into());
    }

    fn drain(&mut self, at: usize) {
        let links = self.links_of(at, |link| link.is_attached && !link.is_given_up);
        let Some(id) = self.pick(&links) else { return };
        let Some(client) = &mut self.clients[at] else { return };
        // Without credit there is nothing to use up, and nothing is told.
        if client.engine.credit(id) > 0
            && client.engine.drain(id).is_ok()
            && let Some(link) = client.links.get_mut(&id)
        {
            link.is_draining = true;
            let uid = link.uid;
            self.note("drain", uid.into(), 0);
        }
    }

    fn detach(&mut self, at: usize) {
        let links = self.links_of(at, |_| true);
        let closed = self.random.bool();
        let Some(id) = self.pick(&links) else { return };
        self.leave(at, id);
        if let Some(client) = &mut self.clients[at] {
            client.engine.detach(id, closed, None);
        }
    }

    /// The user gives up a link: its deliveries go back.
    fn leave(&mut self, at: usize, id: LinkId) {
        let link = self.clients[at].as_mut().and_then(|client| client.links.remove(&id));
        if let Some(link) = link {
            self.note("leave", at as u64, link.uid.into());
            self.bury(&link);
        }
    }

    fn end_session(&mut self, at: usize) {
        let Some(client) = &mut self.clients[at] else { return };
        let sessions = client.sessions.clone();
        let Some(session) = self.pick(&sessions) else { return };
        let Some(client) = &mut self.clients[at] else { return };
        client.sessions.retain(|id| *id != session);
        let of_session =
            |id: &LinkId| client.engine.link_info(*id).is_some_and(|info| info.session == session);
        let links: Vec<_> = client.links.keys().copied().filter(of_session).collect();
        client.engine.end(session, None);
        links.into_iter().for_each(|id| self.leave(at, id));
    }

    pub fn close(&mut self, at: usize) {
        let now = self.sim.now();
        let Some(client) = &mut self.clients[at] else { return };
        if !client.engine.is_open() {
            return;
        }
        client.is_closing = true;
        client.engine.close(None, now);
        self.links_of(at, |_| true).into_iter().for_each(|id| self.leave(at, id));
        self.note("close", at as u64, 0);
    }
}

fn options(link: &Link) -> AttachOptions {
    let address = Some(link.node.clone()).filter(|node| !node.is_empty());
    let mode = (link.kind == Kind::Browser).then_some(Symbol::from_static("copy"));
    AttachOptions {
        name: link.name.clone(),
        role: link.role(),
        source: Source {
            address: address.clone(),
            dynamic: link.owns_node,
            distribution_mode: mode,
            filter: link.part.map(selector),
            ..Source::default()
        },
        target: match link.kind {
            Kind::Control => TargetKind::Coordinator(Coordinator { capabilities: Vec::new() }),
            _ => TargetKind::Target(Target { address, ..Target::default() }),
        },
        snd_settle_mode: match link.settled {
            Some(true) => SenderSettleMode::Settled,
            Some(false) => SenderSettleMode::Unsettled,
            None => SenderSettleMode::Mixed,
        },
        rcv_settle_mode: match link.settles_second {
            true => ReceiverSettleMode::Second,
            false => ReceiverSettleMode::First,
        },
        desired_capabilities: Vec::new(),
        properties: Fields::default(),
    }
}

fn selector(part: i32) -> Fields {
    let name = Symbol::from_static("apache.org:selector-filter:string");
    let text = Value::String(format!("part = {part}"));
    let filter = Value::Described(Box::new((Value::Symbol(name.clone()), text)));
    Fields(vec![(name, filter)])
}

fn outcome(kind: u8) -> DeliveryState {
    let modified = |failed, here| {
        DeliveryState::Modified(Box::new(Modified {
            delivery_failed: Some(failed),
            undeliverable_here: Some(here),
            message_annotations: None,
        }))
    };
    match kind {
        0..=5 => DeliveryState::Accepted,
        6 => DeliveryState::Rejected(Rejected::default()),
        RECEIVED => DeliveryState::Received(Received { section_number: 0, section_offset: 0 }),
        8 => modified(true, false),
        9 => modified(false, true),
        _ => DeliveryState::Released,
    }
}
