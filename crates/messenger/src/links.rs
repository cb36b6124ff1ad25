//! What a connection's events do: links come and go, credit, deliveries and outcomes arrive.

use crate::reconnect::{Loss, is_permanent};
use crate::state::{End, State, Subscription};
use crate::tracker::Status;
use crate::{Error, PeerId, SenderId, SubscriptionId};
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, Fields, Role, condition};
use hopline_driver::engine::{Answer, AttachOptions, CommandError, Event, LinkId, SessionId};
use hopline_driver::timeline::Instant;
use std::collections::VecDeque;

impl State {
    pub(crate) fn on_event(&mut self, id: PeerId, event: Event, now: Instant) {
        match event {
            Event::Opened(open) => self.on_open(id, &open.container_id),
            Event::SessionEnded { session, .. } => self.session_ended(id, session),
            Event::AttachRequest { link, attach } => self.on_attach(id, link, *attach),
            Event::Attached { link, attach } => self.on_attached(id, link, &attach),
            Event::Credit { link, .. } => self.on_credit(id, link),
            Event::Delivery(delivery) => self.arrived(id, delivery),
            Event::Drained { link } => self.drained(id, link),
            Event::CreditUsed { link } => self.credit_used(id, link),
            Event::Outcome { link, id: delivery, token, state, settled } => {
                if !settled && !state.as_ref().is_some_and(|state| state.is_terminal()) {
                    return;
                }
                if !settled && let Some(io) = self.io(id) {
                    // Gone with its link: then it is settled already.
                    let _ = io.engine_mut().settle_sent(link, delivery, state.clone());
                }
                self.ended(token, Status::of(state), now);
            }
            Event::Detached { link, closed, by_peer, error } => {
                if by_peer && let Some(io) = self.io(id) {
                    io.engine_mut().detach(link, closed, None);
                }
                self.link_gone(id, link, error.map(|error| *error));
            }
            Event::Closed { error, .. } => self.on_closed(id, error.map(|error| *error)),
            Event::SessionBegun(_) | Event::PeerSettled { .. } => {}
        }
    }

    pub(crate) fn end(&self, peer: PeerId, link: LinkId) -> Option<End> {
        self.peers.get(peer).and_then(|peer| peer.links.get(link)).copied()
    }

    fn on_open(&mut self, id: PeerId, container: &str) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.container = container.into();
        if peer.is_inbound {
            return;
        }
        peer.session = peer.io.as_mut().and_then(|io| io.engine_mut().begin().ok());
        peer.opened_at = Some(self.clock.now());
        peer.attempts.was_open = true;
        let senders = self.senders.iter().filter(|(_, sender)| sender.peer == Some(id));
        let senders: Vec<_> = senders.map(|(id, _)| id).collect();
        senders.into_iter().for_each(|sender| self.attach_sender(sender));
        let mine = self.subscriptions.iter().filter(|(_, s)| s.peer == id && s.link.is_none());
        let subscriptions: Vec<_> = mine.map(|(id, _)| id).collect();
        subscriptions.into_iter().for_each(|subscription| self.attach_subscription(subscription));
    }

    /// The peer ended our session; what is put or subscribed to from now on gets another one.
    fn session_ended(&mut self, id: PeerId, session: SessionId) {
        let Some(peer) = self.peers.get_mut(id).filter(|p| p.session == Some(session)) else {
            return;
        };
        peer.session = peer.io.as_mut().and_then(|io| io.engine_mut().begin().ok());
    }

    /// Attaches, if the connection is open; else that is done once it is.
    fn attach(
        &mut self,
        id: PeerId,
        end: End,
        options: AttachOptions,
    ) -> Option<Result<LinkId, CommandError>> {
        let peer = self.peers.get_mut(id)?;
        let io = peer.io.as_mut()?;
        let attached = io.engine_mut().attach(peer.session?, options);
        if let Ok(link) = attached {
            peer.links.insert(link, end);
            peer.wake();
        }
        Some(attached)
    }

    fn attach_options(&self, role: Role, node: &str) -> AttachOptions {
        let source = match role {
            Role::Sender => Source::default(),
            Role::Receiver => Source::at(node),
        };
        let target = match role {
            Role::Sender => Target::at(node),
            Role::Receiver => Target::default(),
        };
        AttachOptions {
            name: format!("{node}-{}", uuid::Uuid::new_v4().simple()),
            role,
            source,
            target: TargetKind::Target(target),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: match self.options.settles_second {
                true => ReceiverSettleMode::Second,
                false => ReceiverSettleMode::First,
            },
            desired_capabilities: Vec::new(),
            properties: Fields::default(),
        }
    }

    /// Attaches a sender's link.
    pub(crate) fn attach_sender(&mut self, id: SenderId) {
        let Some(sender) = self.senders.get(id) else { return };
        let (address, Some(peer)) = (sender.address.clone(), sender.peer) else { return };
        let options = self.attach_options(Role::Sender, &sender.node);
        if let Some(Err(error)) = self.attach(peer, End::Sender(id), options) {
            self.abort_sender(id, not_attached(address, error));
        }
    }

    /// Attaches a subscription's link.
    pub(crate) fn attach_subscription(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.get(id) else { return };
        let (address, peer) = (subscription.address.to_string(), subscription.peer);
        let options = self.attach_options(Role::Receiver, &subscription.node);
        match self.attach(peer, End::Subscription(id), options) {
            Some(Ok(link)) => {
                if let Some(subscription) = self.subscriptions.get_mut(id) {
                    subscription.link = Some(link);
                }
            }
            Some(Err(error)) => self.subscription_gone(id, not_attached(address, error)),
            None => {}
        }
    }

    fn on_attached(&mut self, id: PeerId, link: LinkId, attach: &Attach) {
        // Without a terminus the peer refuses; its detach says why.
        match self.end(id, link) {
            Some(End::Sender(sender)) if attach.target.is_some() => {
                if let Some(sender) = self.senders.get_mut(sender) {
                    sender.links.push_back((id, link));
                }
                self.pump(sender);
            }
            Some(End::Subscription(subscription)) if attach.source.is_some() => {
                if let Some(subscription) = self.subscriptions.get_mut(subscription) {
                    subscription.is_attached = true;
                }
                self.resume_demand(subscription);
            }
            _ => {}
        }
        self.is_changed = true;
    }

    fn on_credit(&mut self, id: PeerId, link: LinkId) {
        let Some(End::Sender(sender)) = self.end(id, link) else { return };
        self.pump(sender);
        if let Some(io) = self.io(id) {
            io.engine_mut().drained(link);
        }
    }

    /// A peer that connected to us attaches: it sends to us, or takes what is put to its source.
    fn on_attach(&mut self, id: PeerId, link: LinkId, attach: Attach) {
        let (source, target) = (attach.source.map(|s| *s), attach.target.map(|t| *t));
        let node = match (attach.role, &source, &target) {
            (Role::Sender, _, Some(TargetKind::Target(target))) if !target.dynamic => {
                Some(target.address.clone().unwrap_or_default())
            }
            (Role::Receiver, Some(Source { address: Some(address), dynamic: false, .. }), _) => {
                Some(address.clone())
            }
            _ => None,
        };
        let Some(io) = self.io(id) else { return };
        let Some(node) = node else {
            let text = "this messenger knows plain addresses only: name one";
            return io.engine_mut().refuse(link, AmqpError::new(condition::NOT_IMPLEMENTED, text));
        };
        let answer = Answer {
            source: source.map(|source| Source { filter: None, ..source }),
            target,
            snd_settle_mode: attach.snd_settle_mode,
            rcv_settle_mode: attach.rcv_settle_mode,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
        };
        if io.engine_mut().accept(link, answer).is_ok() {
            self.take_link(id, link, attach.role, node);
        }
    }

    fn take_link(&mut self, id: PeerId, link: LinkId, role: Role, node: String) {
        match role {
            Role::Sender => {
                let subscription = Subscription {
                    link: Some(link),
                    is_attached: true,
                    ..Subscription::new(&node, node.clone(), id)
                };
                let subscription = self.subscriptions.insert(subscription);
                self.note_end(id, link, End::Subscription(subscription));
                self.start_demand(subscription);
            }
            Role::Receiver => {
                let sender = self.local_sender(&node);
                self.note_end(id, link, End::Sender(sender));
                if let Some(sender) = self.senders.get_mut(sender) {
                    sender.links.push_back((id, link));
                }
                self.is_changed = true;
            }
        }
    }

    fn note_end(&mut self, id: PeerId, link: LinkId, end: End) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.links.insert(link, end);
        }
    }

    fn link_gone(&mut self, id: PeerId, link: LinkId, error: Option<AmqpError>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let goes_with_it = peer.io.as_ref().is_some_and(|io| io.engine().is_closed());
        if goes_with_it && !peer.is_inbound {
            return;
        }
        let Some(end) = peer.links.remove(link) else { return };
        let error = error.unwrap_or_else(|| {
            AmqpError::new(condition::DETACH_FORCED, "it was detached without a reason")
        });
        match end {
            End::Sender(sender_id) => {
                let Some(sender) = self.senders.get_mut(sender_id) else { return };
                sender.links.retain(|other| *other != (id, link));
                // Messages for an address of our own wait for the next receiver.
                if sender.peer.is_some() {
                    let peer = sender.address.clone();
                    self.abort_sender(sender_id, Error::Peer { peer, what: "link", error });
                } else {
                    self.abort_link(sender_id, (id, link));
                }
            }
            End::Subscription(subscription) => {
                let Some(gone) = self.subscriptions.get(subscription) else { return };
                let peer = gone.address.to_string();
                self.subscription_gone(subscription, Error::Peer { peer, what: "link", error });
            }
        }
    }

    fn subscription_gone(&mut self, id: SubscriptionId, error: Error) {
        let Some(gone) = self.subscriptions.remove(id) else { return };
        let is_inbound = self.peers.get(gone.peer).is_some_and(|peer| peer.is_inbound);
        // Before that, the call that subscribes learns it from its fate.
        if (gone.is_attached || gone.is_resumed) && !is_inbound && !self.is_stopping {
            self.receive_failures.push(error.clone());
        }
        let _ = gone.fate.set(error);
        self.is_changed = true;
    }

    fn on_closed(&mut self, id: PeerId, error: Option<AmqpError>) {
        let Some(peer) = self.peers.get(id) else { return };
        let name = peer.name.clone();
        let error = error.unwrap_or_else(|| {
            AmqpError::new(condition::CONNECTION_FORCED, "it was closed without a reason")
        });
        let is_permanent = is_permanent(&error);
        let error = match peer.opened_at {
            Some(_) => Error::Peer { peer: name, what: "connection", error },
            None => Error::Connect { peer: name, reason: error.to_string() },
        };
        self.lost(id, &Loss { error, is_permanent });
    }

    /// A connection is gone, or could not be made.
    pub(crate) fn lost(&mut self, id: PeerId, loss: &Loss) {
        if !self.succeed(id, loss) {
            self.give_up(id, &loss.error);
        }
        // One with a socket is removed once all is written.
        if self.peers.get(id).is_some_and(|peer| peer.io.is_none()) {
            self.peers.remove(id);
        }
        self.is_changed = true;
    }

    fn give_up(&mut self, id: PeerId, error: &Error) {
        self.hosts.retain(|_, peer| *peer != id);
        let senders = self.senders.iter().filter(|(_, sender)| sender.peer == Some(id));
        let senders: Vec<_> = senders.map(|(id, _)| id).collect();
        senders.into_iter().for_each(|sender| self.abort_sender(sender, error.clone()));
        let mine = self.subscriptions.iter().filter(|(_, s)| s.peer == id);
        let subscriptions: Vec<_> = mine.map(|(id, _)| id).collect();
        for subscription in subscriptions {
            self.subscription_gone(subscription, error.clone());
        }
    }
}

impl Subscription {
    pub(crate) fn new(address: &str, node: String, peer: PeerId) -> Self {
        Self {
            address: address.into(),
            node,
            peer,
            link: None,
            is_attached: false,
            is_resumed: false,
            is_draining: false,
            waiting: 0,
            demand: 0,
            unsettled: VecDeque::new(),
            origin: None,
            fate: Default::default(),
        }
    }
}

fn not_attached(peer: String, error: CommandError) -> Error {
    let error = AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, error.to_string());
    Error::Peer { peer, what: "link", error }
}
