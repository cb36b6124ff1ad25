//! An AMQP client on the engine: one connection, one session, as many links as a test wants.

use super::{Broker, PATIENCE, encoded};
use hopline_driver::engine::wire::Symbol;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, DeliveryState, DeliveryTag, Fields, Role, Serial};
use hopline_driver::engine::{AttachOptions, ClientSasl, Config, Connection, Delivery, Event};
use hopline_driver::engine::{LinkId, Outgoing, SessionId};
use hopline_driver::{Clock, Flush, Io, Read, SocketOptions, Transport, Waiter, connect};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

pub struct Client {
    io: Io,
    waiter: Waiter,
    events: VecDeque<Event>,
    session: SessionId,
    links: u32,
    tags: u64,
}

/// Link names are unique between containers: clients that give no container-id are strangers.
fn own_container(config: Config) -> Config {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if config.container_id != Config::default().container_id {
        return config;
    }
    let container_id = format!("client-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Config { container_id, ..config }
}

impl Client {
    /// Connected, with a session.
    pub async fn open(broker: &Broker) -> Self {
        let opened = Self::open_with(broker.address(), Config::default(), ClientSasl::Anonymous);
        opened.await.expect("let in")
    }

    /// The same for a container of this name.
    pub async fn open_as(broker: &Broker, container: &str) -> Self {
        let config = Config { container_id: container.into(), ..Config::default() };
        let opened = Self::open_with(broker.address(), config, ClientSasl::Anonymous);
        opened.await.expect("let in")
    }

    /// The error is the broker's, or that of a connection lost before `open`.
    pub async fn open_with(
        address: SocketAddr,
        config: Config,
        sasl: ClientSasl,
    ) -> Result<Self, AmqpError> {
        let host = address.ip().to_string();
        let config = own_container(config);
        let socket = connect(&host, address.port(), &SocketOptions::default(), PATIENCE).await;
        let engine = Connection::client(config, sasl, Clock.now());
        let io = Io::new(engine, Arc::new(socket.expect("it listens")), Transport::Plain);
        let (waiter, events) = (Waiter::default(), VecDeque::new());
        let session = SessionId::default();
        let mut client = Self { io, waiter, events, session, links: 0, tags: 0 };
        client
            .expect("open", |event| match event {
                Event::Opened(_) => Some(Ok(())),
                Event::Closed { error, .. } => {
                    let lost = || AmqpError::new(Symbol::from_static("lost"), "");
                    Some(Err(error.as_deref().cloned().unwrap_or_else(lost)))
                }
                _ => None,
            })
            .await?;
        client.session = client.io.engine_mut().begin().expect("a free channel");
        Ok(client)
    }

    pub fn engine(&mut self) -> &mut Connection {
        self.io.engine_mut()
    }

    /// Writes what is ready, reads once, collects events; waits for the socket for a while.
    async fn turn(&mut self, wait: Duration) {
        let flushed = self.io.flush();
        let blocked = matches!(flushed, Ok(Flush::Blocked));
        let socket = self.io.socket().clone();
        let deadline = self.io.engine().poll_timeout();
        let interest = (self.io.wants_read(), blocked);
        let wake = Notify::new();
        // A timer would take a millisecond to find that there is nothing to wait for.
        if !wait.is_zero() {
            let ready = self.waiter.ready(&socket, interest, deadline, &wake);
            let _ = timeout(wait, ready).await;
        }
        let now = Clock.now();
        self.io.engine_mut().handle_timeout(now);
        let read = self.io.read();
        self.collect();
        if read == Read::End {
            self.io.engine_mut().handle_eof();
            self.collect();
        }
        let _ = self.io.flush();
    }

    fn collect(&mut self) {
        while let Some(event) = self.io.engine_mut().poll_event(Clock.now()) {
            if let Event::Detached { link, closed, by_peer: true, .. } = &event {
                self.io.engine_mut().detach(*link, *closed, None);
            }
            self.events.push_back(event);
        }
    }

    /// The first event of which `pick` makes something, now or later.
    pub async fn expect<T>(&mut self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        let found = self.find(PATIENCE, pick).await;
        found.unwrap_or_else(|| panic!("no {what} came; these did: {:?}", self.events))
    }

    pub async fn find<T>(
        &mut self,
        patience: Duration,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + patience;
        loop {
            let found = self.events.iter().enumerate().find_map(|(at, e)| Some((at, pick(e)?)));
            if let Some((at, found)) = found {
                self.events.remove(at);
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.turn(left).await;
        }
    }

    /// Goes on for a while, as an application that waits does.
    pub async fn idle(&mut self, ms: u64) {
        let _ = self.find(Duration::from_millis(ms), |_| None::<()>).await;
    }

    /// Attaches; the peer's attach, or why it refuses.
    pub async fn attach(
        &mut self,
        options: AttachOptions,
    ) -> Result<(LinkId, Box<Attach>), AmqpError> {
        let session = self.session;
        let id = self.io.engine_mut().attach(session, options).expect("a free handle");
        let pick = |event: &Event| match event {
            Event::Attached { link, attach } if *link == id => Some(attach.clone()),
            _ => None,
        };
        let answer = self.expect("attach", pick).await;
        let refused = match answer.role {
            Role::Receiver => answer.target.is_none(),
            Role::Sender => answer.source.is_none(),
        };
        match refused {
            true => Err(self.detached(id).await.expect("a reason")),
            false => Ok((id, answer)),
        }
    }

    /// Attaches and grants without waiting for any answer.
    pub fn attach_only(&mut self, options: AttachOptions) -> LinkId {
        let session = self.session;
        self.io.engine_mut().attach(session, options).expect("a free handle")
    }

    pub fn grant_only(&mut self, link: LinkId, credit: u32) {
        self.io.engine_mut().set_credit(link, credit).expect("attached");
    }

    pub fn options(&mut self, role: Role, source: Source, target: Target) -> AttachOptions {
        self.links += 1;
        AttachOptions {
            name: format!("link-{}", self.links),
            role,
            source,
            target: TargetKind::Target(target),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            desired_capabilities: Vec::new(),
            properties: Fields::default(),
        }
    }

    pub async fn sender_to(&mut self, target: Target) -> Result<LinkId, AmqpError> {
        let options = self.options(Role::Sender, Source::default(), target);
        self.attach(options).await.map(|(link, _)| link)
    }

    pub async fn sender(&mut self, address: &str) -> LinkId {
        self.sender_to(Target::at(address)).await.expect("attached")
    }

    pub async fn receiver_from(&mut self, source: Source) -> Result<LinkId, AmqpError> {
        let options = self.options(Role::Receiver, source, Target::default());
        self.attach(options).await.map(|(link, _)| link)
    }

    pub async fn receiver(&mut self, address: &str, credit: u32) -> LinkId {
        let link = self.receiver_from(Source::at(address)).await.expect("attached");
        self.grant(link, credit).await;
        link
    }

    pub async fn grant(&mut self, link: LinkId, credit: u32) {
        self.io.engine_mut().set_credit(link, credit).expect("attached");
        self.flush().await;
    }

    pub async fn flush(&mut self) {
        self.turn(Duration::ZERO).await;
    }

    /// Sends as soon as there is credit; no outcome is waited for.
    pub async fn post(&mut self, link: LinkId, message: &Message, settled: bool) -> u64 {
        self.post_octets(link, encoded(message), settled).await
    }

    pub async fn post_octets(&mut self, link: LinkId, octets: bytes::Bytes, settled: bool) -> u64 {
        let until = Instant::now() + PATIENCE;
        while let Some(wait) = self.io.engine().send_block(link) {
            assert!(Instant::now() < until, "can't send: {wait:?}; {:?}", self.events);
            self.turn(Duration::from_millis(100)).await;
        }
        self.tags += 1;
        let (tag, token, format) = (DeliveryTag::from(self.tags), self.tags, 0);
        let outgoing = Outgoing { tag, settled, format, token, bare: octets };
        self.io.engine_mut().send(link, outgoing, |_| None).expect("not blocked");
        self.flush().await;
        token
    }

    /// The outcome of a delivery.
    pub async fn outcome(&mut self, wanted: u64) -> DeliveryState {
        let pick = |event: &Event| match event {
            Event::Outcome { token, state, .. } if *token == wanted => state.clone(),
            _ => None,
        };
        self.expect("outcome", pick).await
    }

    pub async fn send(&mut self, link: LinkId, message: &Message) -> DeliveryState {
        let token = self.post(link, message, false).await;
        self.outcome(token).await
    }

    /// Sends messages with these numbers; all are accepted.
    pub async fn send_numbered(&mut self, link: LinkId, numbers: impl IntoIterator<Item = i32>) {
        let mut last = None;
        for n in numbers {
            last = Some(self.post(link, &super::numbered(n), false).await);
        }
        if let Some(last) = last {
            assert_eq!(self.outcome(last).await, DeliveryState::Accepted);
        }
    }

    /// Sends and is told that all are accepted.
    pub async fn send_all<'a>(&mut self, link: LinkId, bodies: impl IntoIterator<Item = &'a str>) {
        for body in bodies {
            let state = self.send(link, &Message::data(body.to_owned())).await;
            assert_eq!(state, DeliveryState::Accepted, "{body}");
        }
    }

    /// Asks to have the credit used up, and waits until it is.
    pub async fn drain(&mut self, link: LinkId) {
        self.io.engine_mut().drain(link).expect("attached");
        self.flush().await;
        let drained = |event: &Event| match event {
            Event::Drained { link: of } if *of == link => Some(()),
            _ => None,
        };
        self.expect("drained", drained).await;
    }

    pub async fn try_receive(&mut self, link: LinkId, patience: Duration) -> Option<Delivery> {
        let pick = |event: &Event| match event {
            Event::Delivery(delivery) if delivery.link == link => Some(delivery.clone()),
            _ => None,
        };
        self.find(patience, pick).await
    }

    pub async fn receive(&mut self, link: LinkId) -> Delivery {
        let delivery = self.try_receive(link, PATIENCE).await;
        delivery.unwrap_or_else(|| panic!("no delivery came; these did: {:?}", self.events))
    }

    /// The next bodies on a link, each accepted if that is owed.
    pub async fn take(&mut self, link: LinkId, count: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        for _ in 0..count {
            let delivery = self.receive(link).await;
            bodies.push(super::body(&delivery));
            if !delivery.settled {
                self.settle(&delivery, DeliveryState::Accepted).await;
            }
        }
        bodies
    }

    /// Nothing comes on a link for a while.
    pub async fn assert_nothing(&mut self, link: LinkId) {
        let delivery = self.try_receive(link, Duration::from_millis(150)).await;
        assert!(delivery.is_none(), "{}", super::body(&delivery.unwrap()));
    }

    pub async fn settle(&mut self, delivery: &Delivery, state: DeliveryState) {
        self.settle_only(delivery.link, delivery.id, state);
        self.flush().await;
    }

    pub fn settle_only(&mut self, link: LinkId, id: Serial, state: DeliveryState) {
        self.io.engine_mut().settle(link, id, state).expect("attached");
    }

    /// Waits until a link is gone; the peer's reason.
    pub async fn detached(&mut self, id: LinkId) -> Option<AmqpError> {
        let pick = |event: &Event| match event {
            Event::Detached { link, error, .. } if *link == id => Some(error.as_deref().cloned()),
            _ => None,
        };
        self.expect("detach", pick).await
    }

    /// Ends the session and goes on in another one.
    pub async fn begin_other(&mut self) {
        let session = self.io.engine_mut().begin().expect("a free channel");
        let old = std::mem::replace(&mut self.session, session);
        self.io.engine_mut().end(old, None);
        self.flush().await;
    }

    /// Detaches without closing; the broker's error.
    pub async fn leave(&mut self, link: LinkId) -> Option<AmqpError> {
        self.io.engine_mut().detach(link, false, None);
        self.detached(link).await
    }

    /// Attaches as a receiver under this name.
    pub async fn attach_as(
        &mut self,
        name: &str,
        source: Source,
    ) -> Result<(LinkId, Box<Attach>), AmqpError> {
        let options = self.options(Role::Receiver, source, Target::default());
        self.attach(AttachOptions { name: name.into(), ..options }).await
    }

    pub async fn detach(&mut self, link: LinkId) {
        self.io.engine_mut().detach(link, true, None);
        self.detached(link).await;
    }

    /// Waits until the connection is over; the peer's reason.
    pub async fn closed(&mut self) -> Option<AmqpError> {
        let pick = |event: &Event| match event {
            Event::Closed { error, .. } => Some(error.as_deref().cloned()),
            _ => None,
        };
        self.expect("close", pick).await
    }

    pub async fn close(mut self) {
        self.io.engine_mut().close(None, Clock.now());
        assert_eq!(self.closed().await, None);
    }
}
