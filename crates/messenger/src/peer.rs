//! One connection: how it is made, what its events do.

use crate::incoming::Received;
use crate::messenger::Shared;
use crate::state::{End, Peer, Sender, State};
use crate::tracker::Status;
use crate::{Error, PeerId, SenderId, SubscriptionId};
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, Fields, Role, condition};
use hopline_driver::engine::{
    Anonymous, Answer, AttachOptions, ClientSasl, Config, Connection, Event, LinkId,
};
use hopline_driver::{ClientTls, Clock, Io, Read, Transport, Url, Waiter, connect};
use std::sync::Arc;
use tokio::net::TcpStream;

/// Makes the connection to `url` and serves it until it ends.
pub(crate) async fn run(shared: Arc<Shared>, id: PeerId, url: Url) {
    match open(&shared, &url).await {
        Ok(io) => serve(shared, id, io).await,
        Err(reason) => {
            let mut state = shared.lock();
            state.lost(id, &Error::Connect { peer: url.host_port(), reason });
            drop(state);
            shared.tell();
        }
    }
}

async fn open(shared: &Shared, url: &Url) -> Result<Io, String> {
    let (options, timeout, ca, config) = {
        let state = shared.lock();
        let options = &state.options;
        (options.socket.clone(), options.timeout, options.ca.clone(), config(&state, url))
    };
    let socket = connect(&url.host, url.port, &options, timeout).await.map_err(|e| chain(&e))?;
    let mut transport = if url.tls {
        let tls = ClientTls::new(ca.as_deref()).map_err(|e| chain(&e))?;
        Transport::client(&tls, &url.host).map_err(|e| chain(&e))?
    } else {
        Transport::Plain
    };
    match tokio::time::timeout(timeout, transport.handshake(&socket)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("the TLS handshake failed: {error}")),
        Err(_) => return Err("the TLS handshake took too long".into()),
    }
    let sasl = match (&url.user, &url.password) {
        (Some(user), password) => {
            ClientSasl::Plain { user: user.clone(), password: password.clone().unwrap_or_default() }
        }
        (None, _) => ClientSasl::Anonymous,
    };
    let engine = Connection::client(config, sasl, Clock.now());
    Ok(Io::new(engine, Arc::new(socket), transport))
}

fn config(state: &State, url: &Url) -> Config {
    Config {
        container_id: format!("{}-{}", state.options.name, uuid::Uuid::new_v4().simple()),
        hostname: Some(url.host.clone()),
        ..Config::default()
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Takes in a peer that connected to us.
pub(crate) fn take_in(shared: &Arc<Shared>, socket: TcpStream, name: String) {
    let io = {
        let state = shared.lock();
        let config = Config { container_id: state.options.name.clone(), ..Config::default() };
        let engine = Connection::server(config, Arc::new(Anonymous), Clock.now());
        Io::new(engine, Arc::new(socket), Transport::Plain)
    };
    let id = shared.lock().peers.insert(Peer::new(name, true));
    tokio::spawn(serve(shared.clone(), id, io));
}

async fn serve(shared: Arc<Shared>, id: PeerId, io: Io) {
    let socket = io.socket().clone();
    let wake = {
        let mut state = shared.lock();
        let Some(peer) = state.peers.get_mut(id) else { return };
        peer.io = Some(io);
        let wake = peer.wake.clone();
        state.turn(id);
        wake
    };
    let mut waiter = Waiter::default();
    loop {
        let wanted = shared.lock().peers.get_mut(id).and_then(|peer| {
            let io = peer.io.as_ref()?;
            Some(((io.wants_read(), io.wants_write()), io.engine().poll_timeout()))
        });
        let Some((interest, deadline)) = wanted else { return };
        waiter.ready(&socket, interest, deadline, &wake).await;
        let finished = {
            let mut state = shared.lock();
            state.turn(id);
            state.remove_if_finished(id)
        };
        shared.tell();
        if let Some(io) = finished {
            return io.close().await;
        }
    }
}

impl Peer {
    pub(crate) fn new(name: String, is_inbound: bool) -> Self {
        Self {
            name,
            io: None,
            session: None,
            links: slotmap::SecondaryMap::new(),
            wake: Arc::default(),
            is_woken: false,
            is_inbound,
        }
    }
}

impl State {
    /// Reads, acts and writes on one connection.
    pub(crate) fn turn(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.is_woken = false;
        let Some(io) = peer.io.as_mut() else { return };
        let now = self.clock.now();
        if io.engine().poll_timeout().is_some_and(|deadline| deadline <= now) {
            io.engine_mut().handle_timeout(now);
        }
        if io.wants_write() {
            let _ = io.flush();
        }
        let read = io.read();
        self.take_events(id);
        if read == Read::End
            && let Some(io) = self.peers.get_mut(id).and_then(|peer| peer.io.as_mut())
        {
            io.engine_mut().handle_eof();
            self.take_events(id);
        }
        self.pump_peer(id);
        self.flush(id);
    }

    /// Writes what is ready on one connection.
    pub(crate) fn flush(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        match io.flush() {
            Ok(hopline_driver::Flush::Done) => {}
            Ok(hopline_driver::Flush::Blocked) => {
                // Its task is to wait for the socket, if it isn't its own turn.
                peer.is_woken = true;
            }
            Err(error) => {
                tracing::debug!(%error, "write failed");
                io.abandon();
                io.engine_mut().handle_eof();
                self.take_events(id);
            }
        }
    }

    fn pump_peer(&mut self, id: PeerId) {
        let senders: Vec<_> = self
            .senders
            .iter()
            .filter(|(_, sender)| {
                !sender.queue.is_empty() && sender.links.iter().any(|(peer, _)| *peer == id)
            })
            .map(|(id, _)| id)
            .collect();
        senders.into_iter().for_each(|sender| self.pump(sender));
    }

    fn take_events(&mut self, id: PeerId) {
        loop {
            let now = self.clock.now();
            let Some(io) = self.peers.get_mut(id).and_then(|peer| peer.io.as_mut()) else { return };
            let Some(event) = io.engine_mut().poll_event(now) else { return };
            self.on_event(id, event);
        }
    }

    fn on_event(&mut self, id: PeerId, event: Event) {
        match event {
            Event::Opened(_) => self.on_open(id),
            Event::AttachRequest { link, attach } => self.on_attach(id, link, *attach),
            Event::Attached { link, attach } => self.on_attached(id, link, &attach),
            Event::Credit { link } => {
                if let Some(End::Sender(sender)) = self.end(id, link) {
                    self.pump(sender);
                    self.answer_drain(id, link);
                }
            }
            Event::Delivery(delivery) => {
                let Some(End::Subscription(subscription)) = self.end(id, delivery.link) else {
                    return;
                };
                let Some(known) = self.subscriptions.get(subscription) else { return };
                let now = self.clock.now();
                let received = Received {
                    peer: id,
                    link: delivery.link,
                    address: known.address.clone(),
                    queued_at: now,
                    taken_at: now,
                    node: self.stamping_node(),
                    delivery,
                };
                self.arrived(subscription, received);
            }
            Event::Outcome { link, id: delivery, token, state, settled } => {
                let is_final = state.as_ref().is_some_and(|state| state.is_terminal());
                if !settled && !is_final {
                    return;
                }
                if !settled && let Some(io) = self.peers.get_mut(id).and_then(|p| p.io.as_mut()) {
                    let _ = io.engine_mut().settle_sent(link, delivery, state.clone());
                }
                self.ended(token, Status::of(state));
            }
            Event::Detached { link, closed, by_peer, error } => {
                if by_peer && let Some(io) = self.peers.get_mut(id).and_then(|p| p.io.as_mut()) {
                    io.engine_mut().detach(link, closed, None);
                }
                self.link_gone(id, link, error.map(|error| *error));
            }
            Event::Closed { error, .. } => {
                let peer = self.peers.get(id).map(|peer| peer.name.clone()).unwrap_or_default();
                let error = error.map_or_else(
                    || AmqpError::new(condition::CONNECTION_FORCED, "closed"),
                    |error| *error,
                );
                self.lost(id, &Error::Peer { peer, what: "connection", error });
            }
            _ => {}
        }
    }

    fn end(&self, peer: PeerId, link: LinkId) -> Option<End> {
        self.peers.get(peer).and_then(|peer| peer.links.get(link)).copied()
    }

    fn answer_drain(&mut self, id: PeerId, link: LinkId) {
        let Some(io) = self.peers.get_mut(id).and_then(|peer| peer.io.as_mut()) else { return };
        if io.engine().wants_drain(link) {
            io.engine_mut().drained(link);
        }
    }

    fn on_open(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        if peer.is_inbound {
            return;
        }
        peer.session = peer.io.as_mut().and_then(|io| io.engine_mut().begin().ok());
        let senders: Vec<_> =
            self.senders.iter().filter(|(_, s)| s.peer == Some(id)).map(|(k, _)| k).collect();
        senders.into_iter().for_each(|sender| self.attach_sender(sender));
        let mine = self.subscriptions.iter().filter(|(_, s)| s.peer == id && s.link.is_none());
        let subscriptions: Vec<_> = mine.map(|(k, _)| k).collect();
        subscriptions.into_iter().for_each(|subscription| self.attach_subscription(subscription));
    }

    /// Attaches a sender's link, if its connection is open.
    pub(crate) fn attach_sender(&mut self, id: SenderId) {
        let Some(sender) = self.senders.get_mut(id) else { return };
        let Some(peer_id) = sender.peer else { return };
        let options = attach_options(Role::Sender, &sender.node);
        let Some(peer) = self.peers.get_mut(peer_id) else { return };
        let (Some(session), Some(io)) = (peer.session, peer.io.as_mut()) else { return };
        if let Ok(link) = io.engine_mut().attach(session, options) {
            peer.links.insert(link, End::Sender(id));
            peer.wake.notify_one();
        }
    }

    /// Attaches a subscription's link, if its connection is open.
    pub(crate) fn attach_subscription(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.get_mut(id) else { return };
        let options = attach_options(Role::Receiver, &subscription.node);
        let Some(peer) = self.peers.get_mut(subscription.peer) else { return };
        let (Some(session), Some(io)) = (peer.session, peer.io.as_mut()) else { return };
        if let Ok(link) = io.engine_mut().attach(session, options) {
            peer.links.insert(link, End::Subscription(id));
            subscription.link = Some(link);
            peer.wake.notify_one();
        }
    }

    fn on_attached(&mut self, id: PeerId, link: LinkId, attach: &Attach) {
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
                self.top_up(subscription);
            }
            _ => {}
        }
        self.is_changed = true;
    }

    /// A peer that connected to us attaches: it sends to us, or takes what is put to its source.
    fn on_attach(&mut self, id: PeerId, link: LinkId, attach: Attach) {
        let source = attach.source.map(|source| *source);
        let target = attach.target.map(|target| *target);
        let Some(io) = self.peers.get_mut(id).and_then(|peer| peer.io.as_mut()) else { return };
        let node = match (attach.role, &source, &target) {
            (Role::Sender, _, Some(TargetKind::Target(Target { address, .. }))) => {
                Some(address.clone().unwrap_or_default())
            }
            (Role::Receiver, Some(Source { address: Some(address), dynamic: false, .. }), _) => {
                Some(address.clone())
            }
            _ => None,
        };
        let Some(node) = node else {
            let text = "this messenger takes plain addresses only";
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
        if io.engine_mut().accept(link, answer).is_err() {
            return;
        }
        let end = match attach.role {
            Role::Sender => {
                End::Subscription(self.subscriptions.insert(crate::state::Subscription {
                    address: node.as_str().into(),
                    node,
                    peer: id,
                    link: Some(link),
                    is_attached: true,
                    waiting: 0,
                    unsettled: Default::default(),
                }))
            }
            Role::Receiver => End::Sender(self.local_sender(&node, Some((id, link)))),
        };
        if let Some(peer) = self.peers.get_mut(id) {
            peer.links.insert(link, end);
        }
        match end {
            End::Subscription(subscription) => self.top_up(subscription),
            End::Sender(sender) => self.pump(sender),
        }
    }

    /// The sender of an address of our own.
    pub(crate) fn local_sender(&mut self, node: &str, link: Option<(PeerId, LinkId)>) -> SenderId {
        let id = match self.by_address.get(node) {
            Some(id) => *id,
            None => {
                let id = self.senders.insert(Sender {
                    address: node.to_owned(),
                    peer: None,
                    node: node.to_owned(),
                    links: Default::default(),
                    queue: Default::default(),
                });
                self.by_address.insert(node.to_owned(), id);
                id
            }
        };
        if let Some(sender) = self.senders.get_mut(id) {
            sender.links.extend(link);
        }
        id
    }

    fn link_gone(&mut self, id: PeerId, link: LinkId, error: Option<AmqpError>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let Some(end) = peer.links.remove(link) else { return };
        let error = error.unwrap_or_else(|| AmqpError::new(condition::DETACH_FORCED, "detached"));
        match end {
            End::Sender(sender_id) => {
                let Some(sender) = self.senders.get_mut(sender_id) else { return };
                sender.links.retain(|other| *other != (id, link));
                // Messages for an address of our own wait for the next receiver.
                if sender.peer.is_some() {
                    let peer = sender.address.clone();
                    self.abort_sender(sender_id, Error::Peer { peer, what: "link", error });
                } else {
                    self.abort_link((id, link));
                }
            }
            End::Subscription(subscription) => {
                let Some(gone) = self.subscriptions.remove(subscription) else { return };
                let inbound = self.peers.get(id).is_some_and(|peer| peer.is_inbound);
                if !inbound {
                    let peer = gone.address.to_string();
                    self.fail(Error::Peer { peer, what: "link", error });
                }
            }
        }
        self.is_changed = true;
    }

    /// A connection is gone, or could not be made.
    pub(crate) fn lost(&mut self, id: PeerId, error: &Error) {
        self.hosts.retain(|_, peer| *peer != id);
        let senders: Vec<_> =
            self.senders.iter().filter(|(_, s)| s.peer == Some(id)).map(|(k, _)| k).collect();
        for sender in senders {
            self.abort_sender(sender, error.clone());
        }
        let mine = self.subscriptions.iter().filter(|(_, s)| s.peer == id).map(|(k, _)| k);
        let subscriptions: Vec<_> = mine.collect();
        let inbound = self.peers.get(id).is_some_and(|peer| peer.is_inbound);
        for subscription in subscriptions {
            self.subscriptions.remove(subscription);
            if !inbound {
                self.fail(error.clone());
            }
        }
        if self.peers.get(id).is_some_and(|peer| peer.io.is_none()) {
            self.peers.remove(id);
        }
        self.is_changed = true;
    }

    fn remove_if_finished(&mut self, id: PeerId) -> Option<Io> {
        let io = self.peers.get(id)?.io.as_ref()?;
        if !io.is_finished() {
            return None;
        }
        self.is_changed = true;
        self.peers.remove(id).and_then(|peer| peer.io)
    }
}

fn attach_options(role: Role, node: &str) -> AttachOptions {
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
        rcv_settle_mode: ReceiverSettleMode::First,
        desired_capabilities: Vec::new(),
        properties: Fields::default(),
    }
}
