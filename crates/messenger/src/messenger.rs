//! The face of the messenger: what holds for both directions. See `put.rs` and `receive.rs`.

use crate::options::Builder;
use crate::shared::Shared;
use crate::state::{Peer, State};
use crate::tracker::{Counts, Status, Tracker};
use crate::{Error, PeerId};
use hopline_driver::{Counters, EffectiveOptions, Io, Url};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long [`Messenger::stop`] waits for peers to answer drains, and to answer the close.
const DRAIN_PATIENCE: Duration = Duration::from_secs(1);
const CLOSE_PATIENCE: Duration = Duration::from_secs(4);

/// Sends and receives messages. Clones are the same messenger, for use in several tasks.
///
/// When the last clone is dropped its connections are closed, and what was not sent is lost:
/// [`Messenger::stop`] first.
#[derive(Clone)]
pub struct Messenger {
    owner: Arc<Owner>,
}

/// Ends with the last clone of a messenger; the tasks hold what is shared only.
struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.lock().close_all();
        self.shared.tell_all();
    }
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
    /// The socket options in force, and both ends of the socket (ours first), if the system could
    /// say.
    pub socket: Option<(EffectiveOptions, SocketAddr, SocketAddr)>,
    /// What passed.
    pub counters: Counters,
}

impl Messenger {
    /// Settings, then the messenger.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(options: Builder) -> Self {
        Self { owner: Arc::new(Owner { shared: Arc::new(Shared::new(options)) }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }

    /// The connection to the host of `url`; made if there is none.
    pub(crate) fn peer(&self, state: &mut State, url: &Url) -> PeerId {
        let key = (url.tls, url.user.clone(), url.host_port());
        if let Some(peer) = state.hosts.get(&key) {
            return *peer;
        }
        let id = state.peers.insert(Peer::new(url.host_port(), false));
        state.hosts.insert(key, id);
        self.shared().spawn(crate::connection::run(self.shared().clone(), id, url.clone()));
        id
    }

    /// What became of a message that was put, or that came.
    pub fn status(&self, tracker: Tracker) -> Status {
        self.shared().lock().status(tracker)
    }

    /// Counts since the messenger was made.
    pub fn counts(&self) -> Counts {
        self.shared().lock().counts
    }

    /// The failures of connections and links that no call has reported.
    pub fn take_failures(&self) -> Vec<Error> {
        let state = &mut *self.shared().lock();
        state.send_failures.take().chain(state.receive_failures.take()).collect()
    }

    /// The connections there are.
    pub fn connections(&self) -> Vec<ConnectionInfo> {
        let state = self.shared().lock();
        let open = state.peers.values().filter_map(|peer| Some((peer, peer.io.as_ref()?)));
        open.map(|(peer, io)| ConnectionInfo {
            peer: peer.name.clone(),
            socket: socket_info(io),
            counters: io.counters(),
        })
        .collect()
    }

    /// Writes what is ready, now and on this thread; without it the connections' own tasks do.
    pub fn flush(&self) {
        let mut state = self.shared().lock();
        let awake = state.peers.iter().filter(|(_, peer)| peer.is_awake);
        let awake: Vec<_> = awake.map(|(id, _)| id).collect();
        awake.into_iter().for_each(|id| state.flush(id));
        drop(state);
        self.shared().tell();
    }

    /// Stops in order: nothing more can be put; what was put is sent, and its outcomes awaited,
    /// within the builder's timeout; subscriptions are drained, and what came and was not taken is
    /// released; then the connections are closed. What has no outcome by then is
    /// [`Status::Aborted`].
    ///
    /// # Errors
    /// What kept messages from having an outcome; the messenger is stopped all the same.
    pub async fn stop(&self) -> Result<(), Error> {
        self.shared().lock().begin_stop();
        self.shared().tell_all();
        let (drained, sent) = tokio::join!(timeout(DRAIN_PATIENCE, self.drained()), self.send());
        if drained.is_err() {
            tracing::debug!("closing although not all subscriptions are drained");
        }
        {
            let mut state = self.shared().lock();
            state.release_incoming();
            state.close_all();
            state.abort_all();
        }
        self.shared().tell_all();
        let idle = self.shared().wait(|_| self.shared().is_idle().then_some(()));
        if timeout(CLOSE_PATIENCE, idle).await.is_err() {
            tracing::debug!("stopped although a connection is not closed yet");
        }
        sent
    }

    async fn drained(&self) {
        let drained = |state: &mut State| {
            let is_draining = state.subscriptions.values().any(|s| s.is_draining);
            (!is_draining).then_some(())
        };
        self.shared().wait(drained).await;
    }
}

fn socket_info(io: &Io) -> Option<(EffectiveOptions, SocketAddr, SocketAddr)> {
    let socket = io.socket();
    Some((io.effective().ok()?, socket.local_addr().ok()?, socket.peer_addr().ok()?))
}

pub(crate) fn parse(address: &str) -> Result<Url, Error> {
    address.parse().map_err(|error: hopline_driver::Error| Error::Address {
        address: address.rsplit_once('@').map_or(address, |(_, rest)| rest).to_owned(),
        reason: error.to_string(),
    })
}

/// The node that a URL names.
pub(crate) fn node_of(url: &Url) -> Result<String, Error> {
    url.address.clone().ok_or_else(|| {
        let reason = "it names no node: write amqp://host/node".to_owned();
        Error::Address { address: url.to_string(), reason }
    })
}
