//! What has to hold whenever nothing moves, and at the end.

use crate::client::{Copy, Kind, Link};
use crate::ledger::{DEAD, Told};
use crate::world::{FEW, QUEUES, World};
use hopline_broker::simulation::Counts;
use hopline_broker::simulation::peer::LinkId;
use hopline_broker::simulation::peer::wire::DeliveryState;
use std::time::Duration;

impl World {
    /// Lets everything come to rest; then no work may be left that could be done.
    pub fn check_at_rest(&mut self) {
        self.come_to_rest();
        let faults = self.sim.faults();
        assert!(faults.is_empty(), "{faults:?}");
        assert!(!self.is_discharging(), "a transaction was never discharged");
        for at in 0..self.clients.len() {
            let Some(client) = &self.clients[at] else { continue };
            assert!(client.done.is_empty(), "the broker has not read what was written");
            for (id, link) in &client.links {
                let info = client.engine.link_info(*id).expect("the link is there");
                let (unsettled, _) = client.engine.unsettled(info.session);
                let may_take = !self.is_frugal || unsettled < FEW;
                self.check_link(link, client.engine.credit(*id), may_take);
            }
        }
    }

    fn check_link(&self, link: &Link, credit: u32, may_take: bool) {
        let Link { uid, node, .. } = link;
        assert!(!link.is_given_up && link.is_attached, "link {uid} is neither there nor gone");
        let queued = self.sim.waiting(node);
        let state = format!("link {uid} has credit {credit}, {node} {queued:?} messages");
        assert!(!link.is_draining, "{state}: it was never drained");
        if link.kind == Kind::Consumer && credit > 0 && may_take {
            let waiting = self.ledger.waiting(node, |entry| link.wants(entry));
            assert!(waiting.is_empty(), "{state}: there wait {waiting:?}");
        }
    }

    fn each_link(&self, picks: impl Fn(&Link) -> bool) -> Vec<(usize, LinkId)> {
        let clients = self.clients.iter().enumerate();
        let clients = clients.filter_map(|(at, client)| Some((at, client.as_ref()?)));
        clients
            .flat_map(|(at, client)| client.links(&picks).into_iter().map(move |id| (at, id)))
            .collect()
    }

    /// All consumers take and accept all that there is.
    fn take_all(&mut self) {
        loop {
            self.come_to_rest();
            let mut settled = 0;
            for (at, id) in self.each_link(|link| !link.unsettled.is_empty()) {
                while self.link(at, id).is_some_and(|link| !link.unsettled.is_empty()) {
                    self.settle_one(at, id, 0, DeliveryState::Accepted);
                    settled += 1;
                }
            }
            if settled == 0 {
                return;
            }
        }
    }

    pub fn finish(&mut self) {
        self.check_at_rest();
        if self.random.bool() {
            self.satisfy();
        }
        self.leave_all();
        self.empty_queues();
        self.leave_all();
        let left = Counts { queues: 1, ..Counts::default() };
        assert_eq!(self.sim.counts(), left, "something is left of it all");
        self.ledger.audit(self.sim.now());
    }

    /// All consumers get as much credit as they can use: subscribers then have all they should.
    fn satisfy(&mut self) {
        (0..self.clients.len()).for_each(|at| self.discharge(at, false));
        for (at, id) in self.each_link(|link| link.is_attached) {
            self.grant_to(at, id, 10_000);
        }
        self.take_all();
        self.check_at_rest();
        for (at, id) in self.each_link(|link| link.kind == Kind::Subscriber) {
            let link = &self.clients[at].as_ref().expect("it is there").links[&id];
            for (number, entry) in self.ledger.entries().skip(link.since) {
                let is_due = entry.node == link.node
                    && link.wants(entry)
                    && entry.told == Told::Accepted
                    && entry.expires.is_none()
                    && self.ledger.max_deliveries.is_none()
                    && !link.barred.contains(&number);
                let has_it = link.copies.get(&number) == Some(&Copy::Done);
                assert!(!is_due || has_it, "subscriber {} lacks message {number}", link.uid);
            }
        }
        for (at, id) in self.each_link(|link| link.kind == Kind::Publisher) {
            let client = self.clients[at].as_ref().expect("it is there");
            let link = &client.links[&id];
            let has_room = self.sim.waiting(&link.node).is_some_and(|waiting| waiting == 0);
            let credit = client.engine.credit(id);
            let is_barred = self.ledger.entries().any(|(_, entry)| entry.barred);
            assert!(!has_room || is_barred || credit > 0, "publisher {} has no credit", link.uid);
        }
    }

    /// Everybody goes, in one way or another; nothing of them is left.
    fn leave_all(&mut self) {
        match self.random.usize(..3) {
            0 => self.sim.close_all(),
            1 => (0..self.clients.len()).for_each(|at| self.close(at)),
            _ => (0..self.clients.len()).for_each(|at| self.cut(at)),
        }
        self.come_to_rest();
        // Who was not open yet has not been closed.
        (0..self.clients.len()).for_each(|at| self.cut(at));
        self.come_to_rest();
        self.sim.advance(Duration::from_secs(3));
        self.come_to_rest();
        let counts = self.sim.counts();
        let Counts { queues, messages, octets, .. } = counts;
        let gone = Counts { queues, messages, octets, ..Counts::default() };
        assert_eq!(counts, gone, "not everything closed");
        let faults = self.sim.faults();
        assert!(faults.is_empty(), "{faults:?}");
    }

    /// One new client takes what is left in all queues: in order, whatever came back meanwhile.
    fn empty_queues(&mut self) {
        self.connect(0);
        self.come_to_rest();
        let nodes = self.nodes();
        for node in &nodes {
            self.uids += 1;
            let name = format!("last-{node}");
            let link = Link::new(self.uids, name, Kind::Consumer, node.clone());
            let link = Link { is_last: node != DEAD, ..link };
            self.attach_plain(0, link);
        }
        self.come_to_rest();
        for (at, id) in self.each_link(|_| true) {
            self.grant_to(at, id, 100_000);
        }
        self.take_all();
        self.check_at_rest();
        for node in nodes {
            assert_eq!(self.sim.waiting(&node), Some(0), "{node} can't be emptied");
        }
    }

    /// All queues in which something may be. The name of a dynamic node that is gone may have been
    /// taken for that of a queue.
    fn nodes(&self) -> Vec<String> {
        let named = self.ledger.entries().map(|(_, entry)| &entry.node);
        let named = named.filter(|node| node.starts_with("dynamic-")).cloned();
        let mut nodes: Vec<_> = named.filter(|node| self.sim.waiting(node).is_some()).collect();
        nodes.sort();
        nodes.dedup();
        nodes.extend(QUEUES.into_iter().chain([DEAD]).map(str::to_owned));
        nodes
    }
}
