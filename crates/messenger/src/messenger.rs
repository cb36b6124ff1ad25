//! The face of the messenger.

use crate::incoming::Received;
use crate::options::Builder;
use crate::outgoing::PutOptions;
use crate::peer::{chain, run, take_in};
use crate::state::{End, Outcome, Peer, Sender, State, Subscription};
use crate::tracker::{Counts, Status, Tracker};
use crate::{Error, PeerId, SenderId};
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::{DeliveryState, Serial};
use hopline_driver::{Counters, EffectiveOptions, Url, listen};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::{Duration, timeout};

pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    /// The state. A thread that panicked with the lock held leaves it as it was.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait, if something happened for them.
    pub(crate) fn tell(&self) {
        if std::mem::take(&mut self.lock().is_changed) {
            self.changed.notify_waiters();
        }
    }
}

/// Sends and receives messages. Clones are the same messenger.
#[derive(Clone)]
pub struct Messenger {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Messenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messenger").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// Which deliveries a call is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// This one.
    One,
    /// This one, and all of its link before it that have no outcome yet.
    UpTo,
}

/// What is known of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Host and port.
    pub peer: String,
    /// The socket options in force, and both ends of the socket, if the system could say.
    pub socket: Option<(EffectiveOptions, std::net::SocketAddr, std::net::SocketAddr)>,
    /// What passed.
    pub counters: Counters,
}

impl Messenger {
    /// Settings, then the messenger.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(options: Builder) -> Self {
        let shared = Shared { state: Mutex::new(State::new(options)), changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Puts a message into the store; it leaves as soon as its connection, its link's credit and
    /// the socket let it. Never blocks.
    ///
    /// # Errors
    /// A full store, or an address that can't be used. A peer that can't be reached shows in the
    /// tracker's status ([`Status::Aborted`]) and in [`Messenger::send`].
    pub fn put(&self, address: &str, message: Message) -> Result<Tracker, Error> {
        self.put_with(address, message, PutOptions::default())
    }

    /// Puts a message with more said of it.
    ///
    /// # Errors
    /// As [`Messenger::put`].
    pub fn put_with(
        &self,
        address: &str,
        message: Message,
        how: PutOptions,
    ) -> Result<Tracker, Error> {
        let mut state = self.shared.lock();
        let sender = self.sender(&mut state, address)?;
        state.put(sender, message, how).map(Tracker)
    }

    fn sender(&self, state: &mut State, address: &str) -> Result<SenderId, Error> {
        if state.is_stopped {
            return Err(Error::Stopped);
        }
        if let Some(sender) = state.by_address.get(address) {
            return Ok(*sender);
        }
        let routed = state.options.routes.resolve(address);
        if !routed.contains("://") {
            return Ok(state.local_sender(&routed, None));
        }
        let url = parse(&routed)?;
        let node = url.address.clone().ok_or_else(|| no_node(&url))?;
        let peer = self.peer(state, &url);
        let id = state.senders.insert(Sender {
            address: address.to_owned(),
            peer: Some(peer),
            node,
            links: Default::default(),
            queue: Default::default(),
        });
        state.by_address.insert(address.to_owned(), id);
        state.attach_sender(id);
        Ok(id)
    }

    /// The connection to the host of `url`; made if there is none.
    fn peer(&self, state: &mut State, url: &Url) -> PeerId {
        let key = (url.tls, url.user.clone(), url.host_port());
        if let Some(peer) = state.hosts.get(&key) {
            return *peer;
        }
        let id = state.peers.insert(Peer::new(url.host_port(), false));
        state.hosts.insert(key, id);
        tokio::spawn(run(self.shared.clone(), id, url.clone()));
        id
    }

    /// Makes sure that messages for `address` can be sent: connects and attaches. Without it the
    /// first put does so, behind the scenes.
    ///
    /// # Errors
    /// The peer can't be reached, or refuses the address.
    pub async fn connect(&self, address: &str) -> Result<(), Error> {
        let id = self.sender(&mut self.shared.lock(), address)?;
        self.wait(|state| match state.senders.get(id) {
            Some(sender) if !sender.links.is_empty() => Some(Ok(())),
            Some(_) => None,
            None => Some(Err(state.failures.pop_front().unwrap_or(Error::Timeout))),
        })
        .await
    }

    /// Writes what is ready, now and on this thread; without it the connections' own tasks do.
    pub fn flush(&self) {
        let mut state = self.shared.lock();
        let woken: Vec<_> =
            state.peers.iter().filter(|(_, peer)| peer.is_woken).map(|(id, _)| id).collect();
        woken.into_iter().for_each(|id| state.flush(id));
    }

    /// Waits until all that was put has an outcome.
    ///
    /// # Errors
    /// The timeout of the builder, or the first failure of a connection or link since the last
    /// call.
    pub async fn send(&self) -> Result<(), Error> {
        self.wait(|state| match state.failures.pop_front() {
            Some(error) => Some(Err(error)),
            None => (state.stored.0 == 0).then_some(Ok(())),
        })
        .await
    }

    /// Waits until at most `messages` of those put are in the store or without an outcome.
    ///
    /// # Errors
    /// As [`Messenger::send`].
    pub async fn settled(&self, messages: usize) -> Result<(), Error> {
        self.wait(|state| match state.failures.pop_front() {
            Some(error) => Some(Err(error)),
            None => (state.stored.0 <= messages).then_some(Ok(())),
        })
        .await
    }

    /// Waits for `done` within the builder's timeout.
    async fn wait<T>(
        &self,
        done: impl FnMut(&mut State) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        let patience = self.shared.lock().options.timeout;
        timeout(patience, self.wait_for_ever(done)).await.unwrap_or(Err(Error::Timeout))
    }

    async fn wait_for_ever<T>(
        &self,
        mut done: impl FnMut(&mut State) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(result) = done(&mut self.shared.lock()) {
                return result;
            }
            changed.await;
        }
    }

    /// Takes messages from `address`, or, for `amqp://~host:port`, from peers that connect to us;
    /// returns the address: for one with port 0, with the port that was free.
    ///
    /// # Errors
    /// The address can't be used, the peer can't be reached or refuses, or the port is in use.
    pub async fn subscribe(&self, address: &str) -> Result<String, Error> {
        let routed = self.shared.lock().options.routes.resolve(address);
        let url = parse(&routed)?;
        if url.listen {
            return self.listen(&url).await;
        }
        let node = url.address.clone().ok_or_else(|| no_node(&url))?;
        let id = {
            let mut state = self.shared.lock();
            if state.is_stopped {
                return Err(Error::Stopped);
            }
            let peer = self.peer(&mut state, &url);
            let id = state.subscriptions.insert(Subscription {
                address: address.into(),
                node,
                peer,
                link: None,
                is_attached: false,
                waiting: 0,
                unsettled: Default::default(),
            });
            state.attach_subscription(id);
            id
        };
        self.wait(|state| match state.subscriptions.get(id) {
            Some(subscription) if subscription.is_attached => Some(Ok(())),
            Some(_) => None,
            None => Some(Err(state.failures.pop_front().unwrap_or(Error::Timeout))),
        })
        .await?;
        Ok(address.to_owned())
    }

    async fn listen(&self, url: &Url) -> Result<String, Error> {
        let options = self.shared.lock().options.socket.clone();
        let listener = listen(&url.host_port(), &options)
            .await
            .map_err(|error| Error::Connect { peer: url.host_port(), reason: chain(&error) })?;
        let address = format!("amqp://{}", listener.local_addr());
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            loop {
                let (socket, peer) = listener.accept().await;
                let Some(shared) = shared.upgrade().filter(|shared| !shared.lock().is_stopped)
                else {
                    return;
                };
                take_in(&shared, socket, peer.to_string());
            }
        });
        Ok(address)
    }

    /// How many messages each subscription may be sent: `Some(n)`, that many from now on and no
    /// more until the next call; `None`, as many as the builder's credit says, topped up.
    pub fn recv(&self, messages: Option<u32>) {
        let mut state = self.shared.lock();
        state.auto_credit = match messages {
            Some(_) => None,
            None => Some(state.options.credit),
        };
        let links: Vec<_> = state
            .subscriptions
            .iter()
            .filter_map(|(id, known)| Some((id, known.peer, known.link?)))
            .collect();
        for (id, peer, link) in links {
            match messages {
                Some(n) => {
                    if let Some(peer) = state.peers.get_mut(peer)
                        && let Some(io) = peer.io.as_mut()
                    {
                        let _ = io.engine_mut().set_credit(link, n);
                        peer.is_woken = true;
                        peer.wake.notify_one();
                    }
                }
                None => state.top_up(id),
            }
        }
    }

    /// Takes the oldest message that came. Never blocks.
    pub fn get(&self) -> Option<Received> {
        self.shared.lock().get()
    }

    /// Waits for a message, for as long as it takes. Cancel-safe: a future that is dropped takes no
    /// message with it.
    ///
    /// # Errors
    /// A failure of a connection or link since the last call; the messenger is stopped.
    pub async fn next(&self) -> Result<Received, Error> {
        self.wait_for_ever(|state| {
            if let Some(received) = state.get() {
                return Some(Ok(received));
            }
            if let Some(error) = state.failures.pop_front() {
                return Some(Err(error));
            }
            state.is_stopped.then_some(Err(Error::Stopped))
        })
        .await
    }

    /// Tells the sender that the message was taken.
    ///
    /// # Errors
    /// [`Error::Tracker`]: its link is gone, or it was settled before.
    pub fn accept(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, DeliveryState::Accepted, Span::One)
    }

    /// Tells the sender the outcome of one message, or of all up to it. Messages that came settled
    /// need none: nothing is done for them.
    ///
    /// # Errors
    /// As [`Messenger::accept`].
    pub fn settle(
        &self,
        received: &Received,
        outcome: DeliveryState,
        span: Span,
    ) -> Result<(), Error> {
        if received.is_settled() {
            return Ok(());
        }
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let peer = state.peers.get_mut(received.peer).ok_or(Error::Tracker)?;
        let Some(End::Subscription(id)) = peer.links.get(received.link).copied() else {
            return Err(Error::Tracker);
        };
        let subscription = state.subscriptions.get_mut(id).ok_or(Error::Tracker)?;
        let ids = take_ids(subscription, received.delivery.id, span).ok_or(Error::Tracker)?;
        let io = peer.io.as_mut().ok_or(Error::Tracker)?;
        for id in ids {
            let told = io.engine_mut().settle(received.link, id, outcome.clone());
            told.map_err(|_| Error::Tracker)?;
        }
        if !std::mem::replace(&mut peer.is_woken, true) {
            peer.wake.notify_one();
        }
        Ok(())
    }

    /// What became of a message that was put.
    pub fn status(&self, tracker: Tracker) -> Status {
        self.shared.lock().window.get(tracker.0)
    }

    /// Counts since the messenger was made.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// Messages put that are in the store or without an outcome.
    pub fn outgoing(&self) -> usize {
        self.shared.lock().stored.0
    }

    /// Messages put that no connection has taken yet. One that is not here need not be on the wire.
    pub fn buffered(&self) -> usize {
        self.shared.lock().unsent()
    }

    /// Messages that came and were not taken.
    pub fn incoming(&self) -> usize {
        self.shared.lock().incoming.len()
    }

    /// Hands out the outcomes that came since the last call, oldest first; of more than 65,536
    /// only the latest.
    pub fn take_outcomes(&self, mut each: impl FnMut(Outcome)) {
        self.shared.lock().take_outcomes().for_each(&mut each);
    }

    /// The failures of connections and links that no call has reported.
    pub fn take_failures(&self) -> Vec<Error> {
        self.shared.lock().failures.drain(..).collect()
    }

    /// The connections there are.
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        let state = self.shared.lock();
        let open = state.peers.values().filter_map(|peer| Some((peer, peer.io.as_ref()?)));
        open.map(|(peer, io)| {
            let ends =
                (io.effective().ok(), io.socket().local_addr().ok(), io.socket().peer_addr().ok());
            let socket = match ends {
                (Some(options), Some(local), Some(remote)) => Some((options, local, remote)),
                _ => None,
            };
            ConnectionInfo { peer: peer.name.clone(), socket, counters: io.counters() }
        })
        .collect()
    }

    /// Waits (within the timeout) until what was put has an outcome, then closes all connections.
    /// What has no outcome by then is [`Status::Aborted`].
    ///
    /// # Errors
    /// What went wrong on the way; the messenger is stopped all the same.
    pub async fn stop(&self) -> Result<(), Error> {
        let sent = self.send().await;
        let now = hopline_driver::Clock.now();
        {
            let mut state = self.shared.lock();
            state.is_stopped = true;
            let peers: Vec<_> = state.peers.keys().collect();
            for id in peers {
                if let Some(peer) = state.peers.get_mut(id)
                    && let Some(io) = peer.io.as_mut()
                {
                    io.engine_mut().close(None, now);
                    peer.wake.notify_one();
                }
            }
        }
        self.shared.changed.notify_waiters();
        let gone = self.wait_for_ever(|state| {
            let open = state.peers.values().any(|peer| peer.io.is_some());
            (!open).then_some(Ok(()))
        });
        let _ = timeout(Duration::from_secs(3), gone).await;
        sent
    }
}

/// Takes out of a subscription's unsettled deliveries what a call is about.
fn take_ids(subscription: &mut Subscription, id: Serial, span: Span) -> Option<Vec<Serial>> {
    let unsettled = &mut subscription.unsettled;
    let at = match unsettled.front() {
        Some(first) if *first == id => 0,
        _ => unsettled.iter().position(|other| *other == id)?,
    };
    match span {
        Span::One => unsettled.remove(at).map(|id| vec![id]),
        Span::UpTo => Some(unsettled.drain(..=at).collect()),
    }
}

fn parse(address: &str) -> Result<Url, Error> {
    address.parse().map_err(|error: hopline_driver::Error| Error::Address {
        address: address.rsplit_once('@').map_or(address, |(_, rest)| rest).to_owned(),
        reason: error.to_string(),
    })
}

fn no_node(url: &Url) -> Error {
    let reason = "it names no node: write amqp://host/node".to_owned();
    Error::Address { address: url.to_string(), reason }
}
