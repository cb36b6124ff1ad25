//! All of a messenger: peers, links, store, window. Behind one lock, held for moments only.

use crate::incoming::Received;
use crate::options::{Builder, Sampling};
use crate::outgoing::{Base, PutOptions, Stamps, Stored};
use crate::tracker::{Counts, Status, Window};
use crate::{Error, PeerId, SenderId, SubscriptionId};
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::{AmqpError, DeliveryTag, Serial};
use hopline_driver::engine::{LinkId, Outgoing, SessionId};
use hopline_driver::timeline::{Instant, TimelineId};
use hopline_driver::{Clock, Io, node};
use slab::Slab;
use slotmap::{SecondaryMap, SlotMap};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// Outcomes that are kept until somebody asks; the oldest go first.
const OUTCOMES_MAX: usize = 65_536;

/// Failures that are kept until a call reports them; the oldest go first.
const FAILURES_MAX: usize = 16;

/// The end of one message, and how long it took.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// From the put to the outcome (or, for settled ones, to the hand-over to the connection).
    pub delay_ns: i64,
    /// Whether it was accepted, or sent settled.
    pub good: bool,
}

/// What a link is to the messenger.
#[derive(Copy, Clone, Debug)]
pub(crate) enum End {
    Sender(SenderId),
    Subscription(SubscriptionId),
}

/// A connection, or one that is being made.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Host and port, for people.
    pub(crate) name: String,
    pub(crate) io: Option<Io>,
    pub(crate) session: Option<SessionId>,
    pub(crate) links: SecondaryMap<LinkId, End>,
    pub(crate) wake: Arc<Notify>,
    /// Its task is told already that there is something to write.
    pub(crate) is_woken: bool,
    /// A peer that connected to us.
    pub(crate) is_inbound: bool,
}

/// Where messages of one address go.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) address: String,
    /// The peer that it leads to; none for an address of our own.
    pub(crate) peer: Option<PeerId>,
    /// The node at the peer.
    pub(crate) node: String,
    /// Attached links: one at a peer, any number for an address of our own.
    pub(crate) links: VecDeque<(PeerId, LinkId)>,
    pub(crate) queue: VecDeque<Stored>,
}

/// A source of messages.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) address: Arc<str>,
    pub(crate) node: String,
    pub(crate) peer: PeerId,
    pub(crate) link: Option<LinkId>,
    /// Attached at both ends.
    pub(crate) is_attached: bool,
    /// Messages of it that wait for `get`.
    pub(crate) waiting: u32,
    /// Deliveries that are not settled, oldest first.
    pub(crate) unsettled: VecDeque<Serial>,
}

/// A message that was sent and not settled.
#[derive(Debug)]
pub(crate) struct InFlight {
    tracker: u64,
    sender: SenderId,
    link: (PeerId, LinkId),
    octets: usize,
    put_at: Instant,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) options: Builder,
    pub(crate) clock: Clock,
    pub(crate) node: Arc<[u8]>,
    id_base: [u8; 8],
    timelines: u64,
    puts: u32,
    pub(crate) peers: SlotMap<PeerId, Peer>,
    pub(crate) hosts: HashMap<(bool, Option<String>, String), PeerId>,
    pub(crate) senders: SlotMap<SenderId, Sender>,
    pub(crate) by_address: HashMap<String, SenderId>,
    pub(crate) subscriptions: SlotMap<SubscriptionId, Subscription>,
    pub(crate) incoming: VecDeque<Received>,
    pub(crate) in_flight: Slab<InFlight>,
    pub(crate) window: Window,
    pub(crate) stored: (usize, usize),
    pub(crate) counts: Counts,
    outcomes: VecDeque<Outcome>,
    pub(crate) failures: VecDeque<Error>,
    /// Credit of each subscription; none: as many as the application asked for last.
    pub(crate) auto_credit: Option<u32>,
    pub(crate) is_stopped: bool,
    /// Somebody who waits may be able to go on.
    pub(crate) is_changed: bool,
}

impl State {
    pub(crate) fn new(options: Builder) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *uuid::Uuid::new_v4().as_bytes();
        Self {
            clock: Clock,
            node: node(options.name.clone()).record().into(),
            id_base: [a, b, c, d, e, f, g, h],
            timelines: 0,
            puts: 0,
            peers: SlotMap::with_key(),
            hosts: HashMap::new(),
            senders: SlotMap::with_key(),
            by_address: HashMap::new(),
            subscriptions: SlotMap::with_key(),
            incoming: VecDeque::new(),
            in_flight: Slab::new(),
            window: Window::new(options.outgoing_window),
            stored: (0, 0),
            counts: Counts::default(),
            outcomes: VecDeque::new(),
            failures: VecDeque::new(),
            auto_credit: Some(options.credit),
            is_stopped: false,
            is_changed: false,
            options,
        }
    }

    /// Puts a message into the store of its sender, and sends what can be sent.
    pub(crate) fn put(
        &mut self,
        sender: SenderId,
        message: Message,
        how: PutOptions,
    ) -> Result<u64, Error> {
        let (messages, octets) = self.stored;
        if messages >= self.options.store_messages || octets >= self.options.store_octets {
            return Err(Error::Full { messages, octets });
        }
        let put_at = self.clock.now();
        let tracker = self.window.push();
        let stored = Stored::new(message, (tracker, how.settled, put_at), |carried| {
            let base = match carried {
                Some(octets) => Base::Carried(octets),
                None => Base::New(self.next_timeline()?),
            };
            let created = how.created.unwrap_or(put_at);
            Some(Stamps { base, due: how.due, created, published: put_at })
        });
        self.stored = (messages + 1, octets + stored.octets());
        self.counts.put += 1;
        if let Some(sender) = self.senders.get_mut(sender) {
            sender.queue.push_back(stored);
        }
        self.pump(sender);
        Ok(tracker)
    }

    fn next_timeline(&mut self) -> Option<TimelineId> {
        let n = match self.options.sampling {
            Sampling::All => 1,
            Sampling::OneIn(n) => n.max(1),
            Sampling::OnlyCarried | Sampling::Off => return None,
        };
        self.puts = (self.puts + 1) % n;
        if self.puts != 0 {
            return None;
        }
        self.timelines += 1;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.id_base);
        id[8..].copy_from_slice(&self.timelines.to_be_bytes());
        Some(TimelineId(id))
    }

    /// Sends what a sender's links can send.
    pub(crate) fn pump(&mut self, id: SenderId) {
        let Some(sender) = self.senders.get_mut(id) else { return };
        while let Some(stored) = sender.queue.front() {
            let peers = &self.peers;
            let can_send = sender.links.iter().position(|(peer, link)| {
                let io = peers.get(*peer).and_then(|peer| peer.io.as_ref());
                io.is_some_and(|io| io.engine().send_block(*link).is_none())
            });
            let Some(at) = can_send else { return };
            sender.links.rotate_left(at);
            let Some((peer_id, link)) = sender.links.front().copied() else { return };
            let Some(peer) = self.peers.get_mut(peer_id) else { return };
            let Some(io) = peer.io.as_mut() else { return };
            let outgoing = Outgoing {
                tag: DeliveryTag::from(stored.tracker),
                settled: stored.settled,
                format: 0,
                token: self.in_flight.vacant_key() as u64,
                bare: stored.bare.clone(),
            };
            let (node, clock) = (&self.node, self.clock);
            let sent = io
                .engine_mut()
                .send(link, outgoing, |out| stored.write_head(out, node, || clock.now()));
            let Some(stored) = sender.queue.pop_front() else { return };
            if sender.links.len() > 1 {
                sender.links.rotate_left(1);
            }
            if !std::mem::replace(&mut peer.is_woken, true) {
                peer.wake.notify_one();
            }
            match sent {
                Ok(_) => self.counts.sent += 1,
                Err(error) => {
                    let error = AmqpError::new(
                        hopline_driver::engine::wire::condition::MESSAGE_SIZE_EXCEEDED,
                        error.to_string(),
                    );
                    let status = Status::Rejected(Some(error));
                    finish(
                        (&mut self.window, &mut self.counts, &mut self.stored),
                        (stored.tracker, stored.octets()),
                        status,
                    );
                    self.is_changed = true;
                    continue;
                }
            }
            let (octets, put_at, tracker) = (stored.octets(), stored.put_at, stored.tracker);
            if stored.settled {
                finish(
                    (&mut self.window, &mut self.counts, &mut self.stored),
                    (tracker, octets),
                    Status::Settled,
                );
                note(&mut self.outcomes, self.clock.now().since_ns(put_at), true);
                self.is_changed = true;
            } else {
                self.in_flight.insert(InFlight {
                    tracker,
                    sender: id,
                    link: (peer_id, link),
                    octets,
                    put_at,
                });
            }
        }
    }

    /// An outcome came.
    pub(crate) fn ended(&mut self, token: u64, status: Status) {
        let key = usize::try_from(token).ok();
        let Some(sent) = key.and_then(|key| self.in_flight.try_remove(key)) else { return };
        let good = matches!(status, Status::Accepted | Status::Settled);
        note(&mut self.outcomes, self.clock.now().since_ns(sent.put_at), good);
        finish(
            (&mut self.window, &mut self.counts, &mut self.stored),
            (sent.tracker, sent.octets),
            status,
        );
        self.is_changed = true;
    }

    /// A sender's way is gone: what was on it has no outcome any more.
    pub(crate) fn abort_sender(&mut self, id: SenderId, error: Error) {
        let Some(sender) = self.senders.remove(id) else { return };
        self.by_address.remove(&sender.address);
        let mut gone: Vec<_> =
            sender.queue.iter().map(|stored| (stored.tracker, stored.octets())).collect();
        self.in_flight.retain(|_, sent| {
            let stays = sent.sender != id;
            if !stays {
                gone.push((sent.tracker, sent.octets));
            }
            stays
        });
        for what in gone {
            let books = (&mut self.window, &mut self.counts, &mut self.stored);
            finish(books, what, Status::Aborted);
        }
        self.fail(error);
    }

    /// A link of an address of our own is gone: what it carried has no outcome any more.
    pub(crate) fn abort_link(&mut self, link: (PeerId, LinkId)) {
        let mut gone = Vec::new();
        self.in_flight.retain(|_, sent| {
            let stays = sent.link != link;
            if !stays {
                gone.push((sent.tracker, sent.octets));
            }
            stays
        });
        for what in gone {
            let books = (&mut self.window, &mut self.counts, &mut self.stored);
            finish(books, what, Status::Aborted);
        }
    }

    /// Keeps a failure for the next call that waits.
    pub(crate) fn fail(&mut self, error: Error) {
        if self.failures.len() == FAILURES_MAX {
            self.failures.pop_front();
        }
        self.failures.push_back(error);
        self.is_changed = true;
    }

    /// Hands out the outcomes that came since the last call.
    pub(crate) fn take_outcomes(&mut self) -> impl Iterator<Item = Outcome> + '_ {
        self.outcomes.drain(..)
    }

    /// Takes the oldest message.
    pub(crate) fn get(&mut self) -> Option<Received> {
        let mut received = self.incoming.pop_front()?;
        received.taken_at = self.clock.now();
        let (peer, link) = (received.peer, received.link);
        let end = self.peers.get(peer).and_then(|peer| peer.links.get(link)).copied();
        if let Some(End::Subscription(id)) = end {
            if let Some(subscription) = self.subscriptions.get_mut(id) {
                subscription.waiting = subscription.waiting.saturating_sub(1);
            }
            self.top_up(id);
        }
        Some(received)
    }

    /// Grants credit once half of it is used and half of what came is taken.
    pub(crate) fn top_up(&mut self, id: SubscriptionId) {
        let Some(credit) = self.auto_credit else { return };
        let Some(subscription) = self.subscriptions.get(id) else { return };
        let Some(link) = subscription.link.filter(|_| subscription.is_attached) else { return };
        let Some(peer) = self.peers.get_mut(subscription.peer) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        let left = io.engine().credit(link);
        let wanted = credit.saturating_sub(subscription.waiting);
        if left <= credit / 2 && wanted > left {
            let _ = io.engine_mut().set_credit(link, wanted);
            if !std::mem::replace(&mut peer.is_woken, true) {
                peer.wake.notify_one();
            }
        }
    }

    /// Messages in the store that no connection has taken.
    pub(crate) fn unsent(&self) -> usize {
        self.senders.values().map(|sender| sender.queue.len()).sum()
    }

    /// A whole delivery came by a subscription.
    pub(crate) fn arrived(&mut self, id: SubscriptionId, received: Received) {
        let Some(subscription) = self.subscriptions.get_mut(id) else { return };
        subscription.waiting += 1;
        if !received.delivery.settled {
            subscription.unsettled.push_back(received.delivery.id);
        }
        self.counts.received += 1;
        self.incoming.push_back(received);
        self.is_changed = true;
    }

    /// The octets of our node record, if we stamp.
    pub(crate) fn stamping_node(&self) -> Option<Arc<[u8]>> {
        (self.options.sampling != Sampling::Off).then(|| self.node.clone())
    }
}

fn note(outcomes: &mut VecDeque<Outcome>, delay_ns: i64, good: bool) {
    if outcomes.len() == OUTCOMES_MAX {
        outcomes.pop_front();
    }
    outcomes.push_back(Outcome { delay_ns, good });
}

fn finish(
    (window, counts, stored): (&mut Window, &mut Counts, &mut (usize, usize)),
    (tracker, octets): (u64, usize),
    status: Status,
) {
    counts.count(&status);
    window.set(tracker, status);
    *stored = (stored.0.saturating_sub(1), stored.1.saturating_sub(octets));
}
