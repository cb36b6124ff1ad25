//! Listening, serving, stopping.

use crate::broker::Broker;
use crate::config::{Config, ListenerConfig};
use crate::forward::{self, Forward};
use crate::places::{Place, Places};
use crate::side::{self, Side};
use crate::users::Users;
use crate::{ConnId, Error};
use hopline_driver::engine::wire::{Fields, Symbol, Value};
use hopline_driver::engine::{self, Connection};
use hopline_driver::timeline::Instant;
use hopline_driver::{Clock, Io, KernelTimestamps, Listener, ServerTls, SideRecords, Socket};
use hopline_driver::{Transport, Waiter, clock_domain, listen};
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet};

/// How often expired messages and termini are looked for.
const SWEEP: Duration = Duration::from_millis(250);

/// A broker that listens but does not serve yet.
#[derive(Debug)]
pub struct Server {
    config: Config,
    listeners: Vec<(Listener, Option<Tls>)>,
    side: Side,
}

struct Tls(ServerTls);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// How a stop went.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Messages that were in queues, and are gone with the broker's memory.
    pub messages: usize,
    /// Connections whose peers did not close in time.
    pub connections: usize,
}

impl Server {
    /// Opens the listeners and logs each with the socket options in force.
    ///
    /// # Errors
    /// No listener, or one that can't be had: its address, and what to do. The file of side records
    /// can't be made.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        if config.listeners.is_empty() {
            return Err(Error::NoListener);
        }
        let mut listeners = Vec::new();
        for wanted in &config.listeners {
            let (listener, tls) = open(wanted)
                .await
                .map_err(|source| Error::Listen { address: wanted.address.clone(), source })?;
            match listener.effective() {
                Ok(options) => tracing::info!("listening on {} ({options})", listener.local_addr()),
                Err(error) => tracing::warn!(%error, "listening on {}", listener.local_addr()),
            }
            listeners.push((listener, tls));
        }
        let side = Side::open(&config)?;
        Ok(Self { config, listeners, side })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|(listener, _)| listener.local_addr()).collect()
    }

    /// Serves until `stop` is done, then closes all connections and waits for their peers.
    /// All of it runs on the calling thread.
    ///
    /// # Errors
    /// None at present.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Stopped, Error> {
        let shared = Rc::new(Shared::new(self.config, self.side.records()));
        let local = LocalSet::new();
        let accepting: Vec<_> = self
            .listeners
            .into_iter()
            .map(|(listener, tls)| local.spawn_local(accept(shared.clone(), listener, tls)))
            .collect();
        local.spawn_local(sweep(shared.clone()));
        let side_file = match self.side {
            Side::Off => None,
            Side::File(file) => Some(file),
            Side::Timeline(_, reader) => {
                local.spawn_local(side::publish(shared.clone(), reader));
                None
            }
        };
        for forward in shared.forwards() {
            local.spawn_local(forward::run(shared.clone(), forward));
        }
        local.run_until(stop).await;
        shared.stopping.set(true);
        accepting.iter().for_each(JoinHandle::abort);
        let patience = shared.broker.borrow().config.stop_timeout;
        let stopped = local.run_until(stop_all(&shared, patience)).await;
        if let Some(file) = side_file {
            match file.finish() {
                Ok(written) => tracing::info!(?written, "side records"),
                Err(error) => tracing::error!(%error, "side records were lost"),
            }
        }
        if stopped.messages > 0 {
            tracing::warn!(
                messages = stopped.messages,
                "the queues were not empty: their messages are in memory only and end here"
            );
        }
        Ok(stopped)
    }
}

async fn open(wanted: &ListenerConfig) -> Result<(Listener, Option<Tls>), hopline_driver::Error> {
    let tls = match &wanted.tls {
        Some(files) => Some(Tls(ServerTls::new(&files.certificate, &files.key)?)),
        None => None,
    };
    Ok((listen(&wanted.address, &wanted.socket).await?, tls))
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) broker: RefCell<Broker>,
    pub(crate) engine: engine::Config,
    authenticator: Arc<Users>,
    places: Rc<Places>,
    /// No connection is made any more.
    pub(crate) stopping: Cell<bool>,
    /// Connections that are over, but for the peer's last octets.
    ending: Cell<usize>,
    pub(crate) side: Option<SideRecords>,
}

impl Shared {
    fn new(config: Config, side: Option<SideRecords>) -> Self {
        Self {
            engine: engine_config(&config),
            authenticator: Arc::new(Users::new(&config.users, config.anonymous)),
            places: Rc::new(Places::new(
                config.limits.connections,
                config.limits.connections_per_address,
            )),
            stopping: Cell::new(false),
            ending: Cell::new(0),
            side,
            broker: RefCell::new(Broker::new(config)),
        }
    }

    /// Takes in a connection whose handshake below AMQP is done. Not within a task, which would be
    /// as large as what passes through it, for as long as the connection lives.
    fn add(
        &self,
        (socket, transport): (Arc<Socket>, Transport),
        stamps: KernelTimestamps,
        since: Instant,
    ) -> (ConnId, Rc<Notify>) {
        let engine = Connection::server(self.engine.clone(), self.authenticator.clone(), since);
        let mut io = Io::new(engine, socket, transport);
        io.use_kernel_timestamps(stamps, self.side.as_ref());
        self.broker.borrow_mut().add(io)
    }

    /// The forwards whose local nodes could be made.
    fn forwards(&self) -> Vec<Rc<Forward>> {
        let mut broker = self.broker.borrow_mut();
        let configs = broker.config.forwards.clone();
        let ready = configs.into_iter().filter_map(|config| {
            let name = config.name.clone();
            let ready = broker.ready_forward(config);
            let refuse = |error| tracing::error!(forward = name, %error, "it has no local node");
            ready.map(Rc::new).map_err(refuse).ok()
        });
        ready.collect()
    }
}

/// The settings of the engine of each connection.
pub(crate) fn engine_config(config: &Config) -> engine::Config {
    let limits = &config.limits;
    let properties = Fields(vec![
        (Symbol::from_static("product"), Value::from("hopline")),
        (Symbol::from_static("version"), Value::from(env!("CARGO_PKG_VERSION"))),
    ]);
    engine::Config {
        container_id: config.name.clone(),
        max_frame_size: limits.max_frame_size,
        channel_max: limits.channel_max,
        handle_max: limits.handle_max,
        max_message_size: limits.max_message_size,
        idle_timeout: limits.idle_timeout,
        handshake_timeout: limits.handshake_timeout,
        offered_capabilities: vec![Symbol::from_static("ANONYMOUS-RELAY")],
        properties,
        clock: Some(clock_domain()),
        ..engine::Config::default()
    }
}

async fn accept(shared: Rc<Shared>, listener: Listener, tls: Option<Tls>) {
    loop {
        let (socket, peer) = listener.accept().await;
        let place = match shared.places.take(peer.ip()) {
            Ok(place) => place,
            Err(full) => {
                tracing::warn!(%peer, "refused: {full}");
                continue;
            }
        };
        let transport = match &tls {
            None => Transport::Plain,
            Some(Tls(tls)) => match Transport::server(tls) {
                Ok(transport) => transport,
                Err(error) => {
                    tracing::warn!(%peer, %error, "no TLS session");
                    continue;
                }
            },
        };
        let stamps = listener.options().kernel_timestamps;
        let accepted = Accepted { socket, peer, transport, place, stamps };
        tokio::task::spawn_local(serve(shared.clone(), accepted));
    }
}

/// A connection as the listener has it.
struct Accepted {
    socket: Socket,
    peer: SocketAddr,
    transport: Transport,
    place: Place,
    stamps: KernelTimestamps,
}

async fn serve(shared: Rc<Shared>, accepted: Accepted) {
    let Accepted { socket, peer, mut transport, place: _place, stamps } = accepted;
    let since = Clock.now();
    let patience = shared.engine.handshake_timeout;
    let handshake = Box::pin(transport.handshake(&socket));
    match tokio::time::timeout(patience, handshake).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return tracing::info!(%peer, %error, "TLS handshake failed"),
        Err(_) => return tracing::info!(%peer, "TLS handshake took too long"),
    }
    let socket = Arc::new(socket);
    let (id, wake) = shared.add((socket.clone(), transport), stamps, since);
    drive(&shared, (id, &wake), &socket, &peer).await;
}

/// Gives a connection its turns until it is over.
pub(crate) async fn drive(
    shared: &Shared,
    (id, wake): (ConnId, &Notify),
    socket: &Socket,
    peer: &dyn Display,
) {
    let waiter = shared.broker.borrow().conns.get(id).map(|conn| Waiter::of(&conn.io));
    let mut waiter = waiter.unwrap_or_default();
    loop {
        let wanted = shared.broker.borrow().conns.get(id).map(|conn| {
            let interest = (conn.io.wants_read(), conn.io.wants_write());
            (interest, conn.deadline(), conn.can_go_on())
        });
        match wanted {
            None => return,
            Some((.., true)) => tokio::task::yield_now().await,
            Some((interest, deadline, false)) => {
                waiter.ready(socket, interest, deadline, wake).await;
            }
        }
        let (finished, is_full) = {
            let mut broker = shared.broker.borrow_mut();
            broker.turn(id);
            let is_full = broker.conns.get(id).is_some_and(|conn| conn.io.is_full());
            (broker.remove_if_finished(id), is_full)
        };
        if let Some(io) = finished {
            if tracing::enabled!(tracing::Level::DEBUG)
                && let Some(account) = io.record(&shared.engine.container_id)
            {
                let account = account.to_string().replace("\n ", ";");
                tracing::debug!(%peer, account, "connection over");
            }
            shared.ending.update(|connections| connections + 1);
            Box::pin(end(io)).await;
            return shared.ending.update(|connections| connections - 1);
        }
        // Readiness that is there already suspends nobody: without this a peer that sends
        // without a pause would keep the others from their turn.
        if is_full {
            tokio::task::yield_now().await;
        } else {
            tokio::task::consume_budget().await;
        }
    }
}

async fn end(io: Box<Io>) {
    io.close().await;
}

async fn sweep(shared: Rc<Shared>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        shared.broker.borrow_mut().sweep();
    }
}

async fn stop_all(shared: &Rc<Shared>, patience: Duration) -> Stopped {
    shared.broker.borrow_mut().close_all();
    let all_gone = async {
        while !shared.broker.borrow().conns.is_empty() || shared.ending.get() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(patience, all_gone).await;
    let broker = shared.broker.borrow();
    tracing::info!(losses = ?broker.losses, "stopped");
    Stopped {
        messages: broker.queues.values().map(crate::queue::Queue::len).sum(),
        connections: broker.conns.len(),
    }
}
