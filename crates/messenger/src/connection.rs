//! The task of one connection: how it is made, and its turns between waits.

use crate::reconnect::Loss;
use crate::shared::Shared;
use crate::state::{Peer, State};
use crate::{Error, PeerId};
use hopline_driver::engine::{Anonymous, Config, Connection};
use hopline_driver::timeline::Instant;
use hopline_driver::{Clock, Flush, Io, Read, Refusal, Socket, Transport, Url, Waiter, dial};
use std::sync::Arc;
use tokio::sync::Notify;
use uuid::Uuid;

/// Makes the connection to `url` and serves it until it ends; again, if it has a successor.
pub(crate) async fn run(shared: Arc<Shared>, mut id: PeerId, url: Url) {
    loop {
        let opened = tokio::select! {
            opened = open(&shared, &url) => opened,
            () = closed(&shared) => Err(Refusal::permanent("it was stopped")),
        };
        match opened {
            Ok(io) => serve(&shared, id, io).await,
            Err(Refusal { reason, is_permanent }) => {
                let error = Error::Connect { peer: url.host_port(), reason };
                shared.lock().lost(id, &Loss { error, is_permanent });
                shared.tell();
            }
        }
        let Some((next, pause)) = shared.lock().successors.remove(&id) else { return };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = closed(&shared) => {}
        }
        id = next;
    }
}

async fn closed(shared: &Shared) {
    shared.wait(|state| state.is_closed.then_some(())).await;
}

async fn open(shared: &Shared, url: &Url) -> Result<Io, Refusal> {
    let (options, timeout, ca, config) = {
        let state = shared.lock();
        let options = &state.options;
        (options.socket.clone(), options.timeout, options.ca.clone(), config(&state, url))
    };
    let mut io = dial(url, ca.as_deref(), &options, timeout, config).await?;
    shared.lock().ready(&mut io);
    Ok(io)
}

fn config(state: &State, url: &Url) -> Config {
    Config {
        // Brokers tell two containers of one name from each other, or don't let the second in.
        container_id: format!("{}-{}", state.options.name, Uuid::new_v4().simple()),
        hostname: Some(url.host.clone()),
        clock: Some(state.clock_domain),
        ..Config::default()
    }
}

/// Takes in a peer that connected to us.
pub(crate) fn take_in(shared: &Arc<Shared>, socket: Socket, name: String) {
    let mut state = shared.lock();
    let open = state.peers.values().filter(|peer| peer.is_inbound).count();
    if open >= state.options.inbound_max {
        tracing::warn!(peer = name, open, "refused a connection; raise Builder::inbound_max");
        return;
    }
    let config = Config {
        container_id: state.options.name.clone(),
        clock: Some(state.clock_domain),
        ..Config::default()
    };
    let engine = Connection::server(config, Arc::new(Anonymous), Clock.now());
    let mut io = Io::new(engine, Arc::new(socket), Transport::Plain);
    state.ready(&mut io);
    let id = state.peers.insert(Peer::new(name, true));
    drop(state);
    let task = shared.clone();
    shared.spawn(async move { serve(&task, id, io).await });
}

/// What a turn ended with.
enum Turn {
    /// Wait until the socket can be read or written, or until then.
    Wait((bool, bool), Option<Instant>),
    /// The connection is over.
    Over(Option<Box<Io>>),
}

async fn serve(shared: &Shared, id: PeerId, io: Io) {
    let socket = io.socket().clone();
    let mut waiter = Waiter::of(&io);
    let Some(wake) = shared.lock().adopt(id, io) else { return };
    loop {
        let turn = shared.lock().turn(id);
        shared.tell();
        match turn {
            Turn::Wait(interest, deadline) => {
                waiter.ready(&socket, interest, deadline, &wake).await;
                // A peer that talks without pause must not keep other tasks from running.
                tokio::task::coop::consume_budget().await;
            }
            Turn::Over(Some(io)) => return io.close().await,
            Turn::Over(None) => return,
        }
    }
}

impl State {
    /// What of the options concerns a connection, before its first octet.
    fn ready(&self, io: &mut Io) {
        let options = &self.options;
        let side = options.side_records.as_ref().map(|side| side.of_node(&options.name));
        io.use_kernel_timestamps(options.socket.kernel_timestamps, side.as_ref());
        io.split_writes(options.split_writes);
    }

    /// The connection is made. `None`: it is wanted no more.
    fn adopt(&mut self, id: PeerId, io: Io) -> Option<Arc<Notify>> {
        if self.is_closed {
            self.peers.remove(id);
            self.is_changed = true;
        }
        let peer = self.peers.get_mut(id)?;
        peer.io = Some(io);
        Some(peer.wake.clone())
    }

    /// Reads, acts and writes on one connection.
    fn turn(&mut self, id: PeerId) -> Turn {
        let Some(peer) = self.peers.get_mut(id) else { return Turn::Over(None) };
        peer.is_awake = true;
        let Some(io) = peer.io.as_mut() else { return Turn::Over(None) };
        let now = self.clock.now();
        if io.engine().poll_timeout().is_some_and(|deadline| deadline <= now) {
            io.engine_mut().handle_timeout(now);
        }
        // Room for what is to come.
        if io.wants_write() {
            self.flush(id);
        }
        self.read(id);
        self.pump_peer(id);
        self.flush(id);
        // What the outbox had no room for: a socket that took all of it will not wake us.
        while self.pump_peer(id) {
            self.flush(id);
        }
        let Some(peer) = self.peers.get_mut(id) else { return Turn::Over(None) };
        let Some(io) = peer.io.as_mut() else { return Turn::Over(None) };
        if io.is_finished() {
            self.is_changed = true;
            self.accounts.keep(io, &self.options.name);
            return Turn::Over(self.peers.remove(id).and_then(|peer| peer.io).map(Box::new));
        }
        // Until a full socket takes more, waking the task would be of no use.
        peer.is_awake = io.wants_write();
        Turn::Wait((io.wants_read(), io.wants_write()), io.engine().poll_timeout())
    }

    fn read(&mut self, id: PeerId) {
        let Some(io) = self.io(id) else { return };
        let read = io.read();
        self.take_events(id);
        if read == Read::End
            && let Some(io) = self.io(id)
        {
            io.engine_mut().handle_eof();
            self.take_events(id);
        }
    }

    /// Writes what is ready on one connection.
    pub(crate) fn flush(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        match io.flush() {
            Ok(Flush::Done | Flush::Blocked) => {}
            Err(error) => {
                tracing::debug!(%error, "write failed");
                io.abandon();
                io.engine_mut().handle_eof();
                self.take_events(id);
            }
        }
    }

    /// Sends what waits for this connection: its window or its outbox may have room again. Whether
    /// there was something to send.
    fn pump_peer(&mut self, id: PeerId) -> bool {
        let waits = self.senders.iter().filter(|(_, sender)| {
            !sender.queue.is_empty() && sender.links.iter().any(|(peer, _)| *peer == id)
        });
        let waits: Vec<_> = waits.map(|(id, _)| id).collect();
        let sent = self.counts.sent;
        waits.into_iter().for_each(|sender| self.pump(sender));
        self.counts.sent > sent
    }

    fn take_events(&mut self, id: PeerId) {
        // One reading for all: it is for time limits, and how long outcomes took.
        let now = self.clock.now();
        while let Some(event) = self.io(id).and_then(|io| io.engine_mut().poll_event(now)) {
            self.on_event(id, event, now);
        }
    }
}
