//! Transactions of clients: messages that are there from commit on, outcomes that hold from commit
//! on; all of it, or nothing.

use crate::client::{Kind, Link};
use crate::ledger::{Post, Told, Uid};
use crate::world::World;
use hopline_broker::simulation::peer::wire::control::Control;
use hopline_broker::simulation::peer::wire::outcome::{Declared, TransactionalState};
use hopline_broker::simulation::peer::wire::terminus::{Declare, Discharge};
use hopline_broker::simulation::peer::wire::{DeliveryState, DeliveryTag};
use hopline_broker::simulation::peer::{LinkId, Outgoing};

/// Tokens of what is sent to coordinators: above all numbers of messages.
pub const DISCHARGE: u64 = u64::MAX - 1;
const DECLARE: u64 = u64::MAX;

/// A transaction that was declared.
#[derive(Debug)]
pub struct Txn {
    declared: Declared,
    /// Messages, and whether the broker has said that it has them.
    posts: Vec<(usize, bool)>,
    retired: Vec<Retired>,
    /// Its discharge has been sent: whether as failed.
    discharge: Option<bool>,
}

#[derive(Debug)]
struct Retired {
    uid: Uid,
    number: usize,
    /// The link has not gone since, and so has taken the outcome to the broker.
    is_certain: bool,
}

impl Txn {
    /// The state of work in it, if it takes any.
    fn state(&self, outcome: Option<DeliveryState>) -> Option<DeliveryState> {
        let txn_id = self.declared.txn_id.clone();
        let state = TransactionalState { txn_id, outcome: outcome.map(Box::new) };
        self.discharge.is_none().then_some(DeliveryState::Transactional(state))
    }
}

impl World {
    /// A client attaches a control link, or goes on with its transaction.
    pub fn transact(&mut self, at: usize) {
        let Some((id, uid)) = self.control(at) else {
            let Some(client) = &self.clients[at] else { return };
            if client.engine.is_open() && !client.is_closing {
                self.uids += 1;
                let name = format!("control-{}", self.uids);
                self.attach_plain(at, Link::new(self.uids, name, Kind::Control, String::new()));
            }
            return;
        };
        let fails = self.one_in(3);
        match self.txns.get(&uid).map(|txn| txn.discharge) {
            None if !self.is_declaring(at, id) => {
                self.control_with(at, id, DECLARE, Control::Declare(Declare { global_id: None }));
            }
            Some(None) if self.one_in(3) => self.discharge(at, fails),
            _ => {}
        }
    }

    fn control(&self, at: usize) -> Option<(LinkId, Uid)> {
        let links = &self.clients[at].as_ref()?.links;
        let control = links.iter().find(|(_, link)| link.kind == Kind::Control && link.is_attached);
        control.map(|(id, link)| (*id, link.uid))
    }

    fn is_declaring(&mut self, at: usize, id: LinkId) -> bool {
        self.link(at, id).is_some_and(|link| !link.unsettled_sent.is_empty())
    }

    pub fn discharge(&mut self, at: usize, fail: bool) {
        let Some((id, uid)) = self.control(at) else { return };
        let Some(txn) = self.txns.get(&uid).filter(|txn| txn.discharge.is_none()) else { return };
        let txn_id = txn.declared.txn_id.clone();
        // Outcomes that belong to it are to be written before.
        self.clients[at].as_mut().expect("it is there").engine.poll_transmit();
        let discharge = Control::Discharge(Discharge { txn_id, fail });
        if self.control_with(at, id, DISCHARGE, discharge) {
            let txn = self.txns.get_mut(&uid).expect("it is there");
            txn.discharge = Some(fail);
            for (number, _) in txn.posts.iter().filter(|_| !fail) {
                self.ledger.entry(*number).post = Post::Due;
            }
        }
    }

    fn control_with(&mut self, at: usize, id: LinkId, token: u64, control: Control) -> bool {
        let Some(client) = &mut self.clients[at] else { return false };
        if client.engine.send_block(id).is_some() {
            return false;
        }
        let mut octets = Vec::new();
        control.write(&mut octets);
        let tag = DeliveryTag::from(self.sim.now().as_nanos() as u64 ^ token);
        let sent = Outgoing { tag, settled: false, format: 0, token, bare: octets.into() };
        client.engine.send(id, sent, |_| None).expect("it may send");
        let link = client.links.get_mut(&id).expect("it is there");
        link.unsettled_sent.push(token);
        let uid = link.uid;
        self.note("control", uid.into(), token);
        true
    }

    /// The state of a message that is sent in the client's transaction, if it has one open.
    pub fn posting(&self, at: usize) -> Option<(Uid, DeliveryState)> {
        let (_, uid) = self.control(at)?;
        Some((uid, self.txns.get(&uid)?.state(None)?))
    }

    pub fn posted(&mut self, uid: Uid, number: usize) {
        self.ledger.entry(number).post = Post::Held;
        self.txns.get_mut(&uid).expect("it is there").posts.push((number, false));
    }

    /// The broker has a message of a transaction.
    pub fn on_posted(&mut self, number: usize, state: &TransactionalState) {
        let is_held = state.outcome.as_deref() == Some(&DeliveryState::Accepted);
        let posts = self.txns.values_mut().flat_map(|txn| &mut txn.posts);
        for (_, is_certain) in posts.filter(|(post, _)| *post == number) {
            *is_certain = is_held;
        }
    }

    /// Consumers accept deliveries within their client's transaction.
    pub fn retire_some(&mut self, at: usize) {
        if self.posting(at).is_none() {
            return self.transact(at);
        }
        for _ in 0..self.random.usize(1..5) {
            self.retire_one(at);
        }
    }

    fn retire_one(&mut self, at: usize) {
        let Some((_, control)) = self.control(at) else { return };
        let Some(client) = &mut self.clients[at] else { return };
        let may = |link: &Link| {
            let is_plain = !link.settles_second && !link.is_given_up;
            link.kind == Kind::Consumer && is_plain && !link.unsettled.is_empty()
        };
        let links = client.links(may);
        let Some(id) = self.pick(&links) else { return };
        let Some(client) = &mut self.clients[at] else { return };
        let Some(txn) = self.txns.get_mut(&control) else { return };
        let Some(state) = txn.state(Some(DeliveryState::Accepted)) else { return };
        let link = client.links.get_mut(&id).expect("it is there");
        let (delivery, number) = link.unsettled.remove(0);
        let entry = self.ledger.entry(number);
        if client.engine.settle(id, delivery, state).is_ok() {
            let uid = link.uid;
            (entry.holder, entry.is_retired) = (None, true);
            txn.retired.push(Retired { uid, number, is_certain: true });
            self.note("retire", uid.into(), number as u64);
        }
    }

    /// The outcome of a declare or discharge.
    pub fn on_control(&mut self, at: usize, id: LinkId, token: u64, state: Option<DeliveryState>) {
        let Some(link) = self.link(at, id) else { return };
        link.unsettled_sent.retain(|sent| *sent != token);
        let uid = link.uid;
        self.note("controlled", uid.into(), token);
        if let Some(DeliveryState::Declared(declared)) = state {
            let (posts, retired) = (Vec::new(), Vec::new());
            self.txns.insert(uid, Txn { declared, posts, retired, discharge: None });
        } else if token == DISCHARGE {
            let txn = self.txns.remove(&uid).expect("it was declared");
            let commits = txn.discharge == Some(false);
            self.discharged(txn, commits && state == Some(DeliveryState::Accepted));
        }
    }

    fn discharged(&mut self, txn: Txn, is_committed: bool) {
        for (number, is_certain) in txn.posts {
            self.ledger.entry(number).post = if is_committed { Post::Over } else { Post::Undone };
            if is_committed && is_certain {
                self.ledger.tell(number, Told::Accepted);
            }
        }
        for Retired { number, is_certain, .. } in txn.retired {
            let entry = self.ledger.entry(number);
            let has_come_back = !std::mem::take(&mut entry.is_retired);
            if is_committed && is_certain {
                assert!(!has_come_back, "message {number} came back from what was committed");
                entry.done = true;
            }
            entry.accepted |= is_committed;
        }
    }

    /// A link is gone: of a consumer's, what it has retired may not have come to the broker; of a
    /// controller's, so its discharge.
    pub fn abandon(&mut self, uid: Uid) {
        let retired = self.txns.values_mut().flat_map(|txn| &mut txn.retired);
        retired.filter(|it| it.uid == uid).for_each(|it| it.is_certain = false);
        let Some(mut txn) = self.txns.remove(&uid) else { return };
        // What was discharged as done may have been done, or not.
        let may_be_done = txn.discharge == Some(false);
        txn.posts.iter_mut().for_each(|post| post.1 = false);
        txn.retired.iter_mut().for_each(|retired| retired.is_certain = false);
        self.discharged(txn, may_be_done);
    }

    pub fn is_discharging(&self) -> bool {
        self.txns.values().any(|txn| txn.discharge.is_some())
    }
}
