//! What the engines of clients tell, held against the rules.

use crate::client::{Copy, Kind, Link, Owed};
use crate::ledger::{DEAD, Post, Told, read};
use crate::txn::DISCHARGE;
use crate::world::World;
use hopline_broker::simulation::peer::wire::performative::Attach;
use hopline_broker::simulation::peer::wire::{AmqpError, DeliveryState, Role, Symbol, condition};
use hopline_broker::simulation::peer::{Delivery, Event, LinkId};

/// Why a broker may end a link of a client that makes no mistake.
const PLAUSIBLE: [Symbol; 6] = [
    condition::ROLLBACK,
    condition::UNKNOWN_ID,
    condition::RESOURCE_LIMIT_EXCEEDED,
    condition::RESOURCE_DELETED,
    condition::RESOURCE_LOCKED,
    condition::STOLEN,
];

impl World {
    /// Takes the events of a client; takes the client away once it is finished.
    pub fn listen(&mut self, at: usize) {
        let now = self.sim.now();
        loop {
            let Some(client) = &mut self.clients[at] else { return };
            if let Some(event) = client.engine.poll_event(now) {
                self.told(at, event);
                continue;
            }
            if client.pipe.is_left() && client.pipe.untaken() == 0 && !client.engine.is_over() {
                client.engine.handle_eof();
                continue;
            }
            if client.engine.is_finished() || client.engine.is_over() && client.pipe.is_left() {
                client.push(usize::MAX);
                client.pipe.end();
                assert!(client.links.is_empty(), "links outlive their connection");
                let client = self.clients[at].take().expect("it is there");
                self.leaving.push((client.peer, client.pipe));
                self.note("gone", at as u64, 0);
            }
            return;
        }
    }

    fn told(&mut self, at: usize, event: Event) {
        let Some(client) = &mut self.clients[at] else { return };
        match event {
            Event::Opened(_) => client.was_open = true,
            Event::SessionBegun(_) => {}
            Event::SessionEnded { session, error } => {
                assert!(error.is_none() || client.engine.is_over(), "session ended: {error:?}");
                client.sessions.retain(|id| *id != session);
            }
            Event::Attached { link, attach } => self.on_attached(at, link, &attach),
            Event::Detached { link, closed, by_peer, error } => {
                if by_peer {
                    client.owed.push(Owed::Detach(link, closed));
                }
                self.on_detached(at, link, error.as_deref());
            }
            Event::Delivery(delivery) => self.on_delivery(at, &delivery),
            Event::Outcome { link, id, token, state, settled } => {
                if !settled {
                    client.owed.push(Owed::Settle(link, id));
                }
                match state {
                    _ if token >= DISCHARGE => self.on_control(at, link, token, state),
                    Some(DeliveryState::Transactional(state)) => {
                        self.on_posted(token as usize, &state);
                    }
                    _ => self.on_outcome(token as usize, state, settled),
                }
            }
            Event::Drained { link } => {
                let Some(link) = self.link(at, link) else { return };
                assert!(std::mem::take(&mut link.is_draining), "drained, but nobody asked");
            }
            Event::Closed { error, .. } => {
                let stops = |error: &AmqpError| error.condition == condition::CONNECTION_FORCED;
                assert!(error.as_deref().is_none_or(stops), "connection closed: {error:?}");
            }
            Event::AttachRequest { .. } => panic!("the broker attaches of its own accord"),
            Event::Credit { .. } | Event::CreditUsed { .. } | Event::PeerSettled { .. } => {}
        }
    }

    fn on_attached(&mut self, at: usize, id: LinkId, attach: &Attach) {
        let messages = self.ledger.len();
        let Some(link) = self.clients[at].as_mut().and_then(|it| it.links.get_mut(&id)) else {
            return;
        };
        // Without a source it is refused.
        if link.role() == Role::Receiver && attach.source.is_none() {
            return;
        }
        link.is_attached = true;
        link.since = messages;
        let uid = link.uid;
        if link.owns_node {
            let address = attach.source.as_ref().and_then(|source| source.address.clone());
            link.node = address.expect("a dynamic node has a name");
            self.dynamic.push(link.node.clone());
        }
        let receives = link.role() == Role::Receiver;
        self.note("attached", at as u64, uid.into());
        if receives && self.is_lively && !self.one_in(4) {
            let credit = self.random.u32(1..20);
            self.grant_to(at, id, credit);
        }
    }

    fn on_detached(&mut self, at: usize, id: LinkId, error: Option<&AmqpError>) {
        let Some(client) = &mut self.clients[at] else { return };
        let Some(link) = client.links.remove(&id) else { return };
        let over = client.engine.is_over() || client.is_closing;
        let plausible = error.is_none_or(|error| PLAUSIBLE.contains(&error.condition));
        assert!(over || plausible, "detached: {error:?}");
        // What is still on its way may come too late.
        client.done.retain(|done| error.is_none() || done.uid != link.uid);
        self.note("detached", at as u64, link.uid.into());
        self.bury(&link);
    }

    /// A link is gone: what it held goes back.
    pub fn bury(&mut self, link: &Link) {
        if link.owns_node {
            self.dynamic.retain(|address| *address != link.node);
        }
        self.abandon(link.uid);
        if link.role() == Role::Sender {
            return;
        }
        let node = self.ledger.node(&link.node);
        node.has_failures |= link.kind != Kind::Browser;
        node.is_lossy |=
            link.owns_node || link.kind == Kind::Consumer && link.settled == Some(true);
        for (_, number) in &link.unsettled {
            let entry = self.ledger.entry(*number);
            if entry.holder == Some(link.uid) {
                entry.holder = None;
            }
        }
    }

    fn on_outcome(&mut self, number: usize, state: Option<DeliveryState>, settled: bool) {
        let told = match state {
            Some(DeliveryState::Accepted) => Told::Accepted,
            Some(DeliveryState::Rejected(_)) => Told::Refused,
            other => panic!("message {number} was told {other:?}"),
        };
        self.note("outcome", number as u64, u64::from(settled));
        self.ledger.tell(number, told);
    }

    fn on_delivery(&mut self, at: usize, delivery: &Delivery) {
        let (number, header) = read(&delivery.payload);
        let entry = self.ledger.entry(number).clone();
        let is_copy = entry.node.starts_with("topic/");
        let (id, settled) = (delivery.id, delivery.settled);
        let Some(link) = self.link(at, delivery.link) else { return };
        let (uid, kind, node) = (link.uid, link.kind, link.node.clone());
        if link.is_given_up {
            return;
        }
        link.received += 1;
        let granted = link.received <= link.limit;
        assert!(granted, "link {uid} got message {number} beyond its credit of {}", link.limit);
        if !settled {
            link.unsettled.push((id, number));
        }
        let is_there = matches!(entry.post, Post::None | Post::Due | Post::Over);
        assert!(is_there, "message {number} of a transaction was delivered: {entry:?}");
        assert!(link.wants(&entry), "link {uid} does not want message {number}: {entry:?}");
        if node != DEAD {
            link.check_order(number, &entry, header.first_acquirer);
        }
        match kind {
            Kind::Subscriber => link.copy(number, settled),
            Kind::Consumer if is_copy => self.ledger.deliver_copy(number),
            Kind::Consumer => self.ledger.deliver(number, &node, uid, settled),
            Kind::Browser | Kind::Publisher | Kind::Relay | Kind::Control => {}
        }
        self.ledger.deliveries += 1;
        self.note("delivery", uid.into(), number as u64);
    }
}

impl Link {
    /// A subscriber gets its copy of a message.
    fn copy(&mut self, number: usize, settled: bool) {
        let before = self.copies.get(&number).copied();
        let may_come = before.is_none_or(|copy| copy == Copy::GivenBack);
        let uid = self.uid;
        assert!(may_come, "subscriber {uid} got message {number} again, which is {before:?}");
        assert!(!self.barred.contains(&number), "subscriber {uid} gave up message {number}");
        self.copies.insert(number, if settled { Copy::Done } else { Copy::Held });
    }
}
