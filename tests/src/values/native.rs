use std::sync::Arc;

use hopline_messenger::driver::engine::wire::Role;
use hopline_messenger::driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_messenger::driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_messenger::driver::engine::{
    AttachOptions, ClientSasl, Config, Connection, Event, LinkId, Outgoing,
};
use hopline_messenger::driver::{Clock, Io, SocketOptions, Transport, Waiter, connect};
use hopline_messenger::{DeliveryState, Message, Messenger, Sampling};
use tokio::sync::Notify;

use crate::PATIENCE;

/// Sends messages as these octets, each whole as it is, and waits until all are accepted.
///
/// # Panics
/// If one is not.
pub async fn send_octets(host: &str, address: &str, messages: Vec<Vec<u8>>) {
    let (name, port) = host.rsplit_once(':').expect("HOST:PORT");
    let port = port.parse().expect("a port");
    let socket = connect(name, port, &SocketOptions::default(), PATIENCE).await.expect("a peer");
    let engine = Connection::client(Config::default(), ClientSasl::Anonymous, Clock.now());
    let mut io = Io::new(engine, Arc::new(socket), Transport::Plain);
    let (wake, mut waiter) = (Notify::new(), Waiter::default());
    let mut sending = Sending { address, messages, link: None, sent: 0, accepted: 0 };
    while sending.accepted < sending.messages.len() {
        io.read();
        while let Some(event) = io.engine_mut().poll_event(Clock.now()) {
            sending.on_event(io.engine_mut(), event);
        }
        sending.pump(io.engine_mut());
        io.flush().expect("the broker stays");
        let (socket, interest) = (io.socket().clone(), (io.wants_read(), io.wants_write()));
        waiter.ready(&socket, interest, None, &wake).await;
    }
    io.engine_mut().close(None, Clock.now());
    io.flush().expect("the broker stays");
    io.close().await;
}

struct Sending<'a> {
    address: &'a str,
    messages: Vec<Vec<u8>>,
    link: Option<LinkId>,
    sent: usize,
    accepted: usize,
}

impl Sending<'_> {
    fn on_event(&mut self, engine: &mut Connection, event: Event) {
        match event {
            Event::Opened(_) => self.attach(engine),
            Event::Credit { link, .. } => self.link = Some(link),
            Event::Outcome { state, token, .. } => {
                assert!(matches!(state, Some(DeliveryState::Accepted)), "{token}: {state:?}");
                self.accepted += 1;
            }
            Event::Detached { error, .. } => panic!("detached: {error:?}"),
            Event::Closed { error, .. } => panic!("closed: {error:?}"),
            _ => {}
        }
    }

    fn attach(&self, engine: &mut Connection) {
        let session = engine.begin().expect("a session");
        let options = AttachOptions {
            name: "octets".into(),
            role: Role::Sender,
            source: Source::default(),
            target: TargetKind::Target(Target::at(self.address)),
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            desired_capabilities: Vec::new(),
            properties: Default::default(),
        };
        engine.attach(session, options).expect("a link");
    }

    fn pump(&mut self, engine: &mut Connection) {
        let Some(link) = self.link else { return };
        while let Some(octets) = self.messages.get(self.sent) {
            let (number, bare) = (self.sent as u64, octets.clone().into());
            let tag = number.into();
            let message = Outgoing { tag, settled: false, format: 0, token: number, bare };
            if engine.send(link, message, |_| None).is_err() {
                return;
            }
            self.sent += 1;
        }
    }
}

/// Sends messages with the messenger, and waits until all are accepted.
///
/// # Panics
/// If one is not.
pub async fn send_messages(url: &str, messages: Vec<Message>) {
    let messenger = messenger();
    let count = messages.len() as u64;
    for message in messages {
        messenger.put(url, message).expect("room in the store");
    }
    messenger.send().await.expect("outcomes");
    assert_eq!(messenger.counts().accepted, count);
    messenger.stop().await.expect("it stops");
}

/// Receives and accepts `count` messages with the messenger; what came, octet by octet.
///
/// # Panics
/// If they don't come.
pub async fn receive_all(url: &str, count: usize) -> Vec<Vec<u8>> {
    let messenger = messenger();
    messenger.subscribe(url).await.expect("a subscription");
    let mut received = Vec::new();
    while received.len() < count {
        let next =
            tokio::time::timeout(PATIENCE, messenger.next()).await.expect("it comes in time");
        let next = next.expect("the subscription stays");
        received.push(next.encoded().to_vec());
        messenger.accept(&next).expect("it has no outcome yet");
    }
    messenger.stop().await.expect("it stops");
    received
}

fn messenger() -> Messenger {
    Messenger::builder().timeout(PATIENCE).timelines(Sampling::Off).build()
}
