//! Messages from broker to broker: each way, in chains, over breaks, in circles.

use crate::support::{
    Broker, Client, PATIENCE, body, config, decoded, last_hop, text, timed, timeline,
};
use hopline_broker::{Config, Direction, ForwardConfig, ListenerConfig, NodeConfig};
use hopline_broker::{Sampling, User};
use hopline_driver::engine::wire::definitions::SenderSettleMode;
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::{DeliveryState, Role};
use hopline_driver::engine::{self, Anonymous, Answer, Connection, Delivery, Event};
use hopline_driver::timeline::{Instant, Stage, Stamp, UNSTAMPED_PEER};
use hopline_driver::{Reconnect, SocketOptions};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tokio::time::timeout;

/// A port that nobody listens on: for a broker that is to come, or to come back.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub(crate) fn named(name: &str) -> Config {
    Config { name: name.into(), ..config() }
}

pub(crate) fn at(name: &str, address: SocketAddr) -> Config {
    let listener =
        ListenerConfig { address: address.to_string(), ..named(name).listeners[0].clone() };
    Config { listeners: vec![listener], ..named(name) }
}

pub(crate) fn forward(
    direction: Direction,
    local: &str,
    at: SocketAddr,
    remote: &str,
) -> ForwardConfig {
    ForwardConfig {
        name: format!("{local} {direction:?} {remote}"),
        local: local.into(),
        remote: format!("amqp://{at}/{remote}").parse().unwrap(),
        direction,
        socket: SocketOptions::default(),
        ca: None,
        reconnect: Reconnect {
            first: Duration::from_millis(10),
            most: Duration::from_millis(50),
            ..Reconnect::default()
        },
    }
}

pub(crate) fn with(config: Config, forwards: impl IntoIterator<Item = ForwardConfig>) -> Config {
    Config { forwards: forwards.into_iter().collect(), ..config }
}

#[tokio::test]
async fn a_queue_leads_to_one_of_another_broker() {
    let there = Broker::start(named("there"));
    let out = forward(Direction::Out, "q", there.address(), "r");
    let here = Broker::start(with(named("here"), [out]));
    let (mut a, mut b) = (Client::open(&here).await, Client::open(&there).await);
    let sender = a.sender("q").await;
    a.send_numbered(sender, 0..500).await;
    let receiver = b.receiver("r", 500).await;
    let bodies = b.take(receiver, 500).await;
    assert_eq!(bodies, Vec::from_iter((0..500).map(|n| n.to_string())), "in order, each once");
}

#[tokio::test]
async fn a_queue_gets_what_is_in_one_of_another_broker() {
    let there = Broker::start(named("there"));
    let mut b = Client::open(&there).await;
    let sender = b.sender("r").await;
    b.send_numbered(sender, 0..500).await;
    let incoming = forward(Direction::In, "q", there.address(), "r");
    let here = Broker::start(with(named("here"), [incoming]));
    let mut a = Client::open(&here).await;
    let receiver = a.receiver("q", 500).await;
    assert_eq!(a.take(receiver, 500).await, Vec::from_iter((0..500).map(|n| n.to_string())));
}

#[tokio::test]
async fn topics_lead_out_and_get_what_comes() {
    let there = Broker::start(named("there"));
    let out = forward(Direction::Out, "topic/a", there.address(), "r");
    let incoming = forward(Direction::In, "topic/b", there.address(), "r");
    let here = Broker::start(with(named("here"), [out, incoming]));
    let mut client = Client::open(&here).await;
    let subscriber = client.receiver("topic/b", 10).await;
    let sender = client.sender("topic/a").await;
    client.send_all(sender, ["m"]).await;
    // It would be in a circle: what it left comes back to it.
    client.assert_nothing(subscriber).await;
    let mut b = Client::open(&there).await;
    let other = b.sender("r").await;
    b.send_all(other, ["n"]).await;
    assert_eq!(client.take(subscriber, 1).await, ["n"]);
}

#[tokio::test]
async fn a_timeline_grows_by_each_broker() {
    let last = Broker::start(named("last"));
    let middle =
        Broker::start(with(named("middle"), [forward(Direction::Out, "q", last.address(), "q")]));
    let first =
        Broker::start(with(named("first"), [forward(Direction::Out, "q", middle.address(), "q")]));
    let (mut a, mut c) = (Client::open(&first).await, Client::open(&last).await);
    let sender = a.sender("q").await;
    a.send(sender, &timed("m")).await;
    let receiver = c.receiver("q", 1).await;
    let delivery = c.receive(receiver).await;
    let timeline = timeline(&delivery);
    let names: Vec<_> = timeline.nodes.iter().map(|node| node.name.as_str()).collect();
    assert!(names.ends_with(&["first", "middle", "last"]), "{names:?}");
    let sends = timeline.stamps.iter().filter(|stamp| stamp.stage == Stage::Send.code());
    assert!(sends.count() >= 3, "each hop has its SEND");
    assert!(last_hop(&timeline).iter().all(|stamp| stamp.at.is_some()));
    assert_eq!(decoded(&delivery).octets().unwrap(), "m");
}

#[tokio::test]
async fn what_comes_from_a_broker_that_does_not_stamp_says_so() {
    for (timelines, detail) in [(Sampling::Carried, 0), (Sampling::Off, UNSTAMPED_PEER)] {
        let there = Broker::start(Config { timelines, ..named("there") });
        let mut b = Client::open(&there).await;
        let sender = b.sender("r").await;
        b.send(sender, &timed("m")).await;
        let incoming = forward(Direction::In, "q", there.address(), "r");
        let here = Broker::start(with(named("here"), [incoming]));
        let mut a = Client::open(&here).await;
        let receiver = a.receiver("q", 1).await;
        let timeline = timeline(&a.receive(receiver).await);
        let received = |stamp: &&Stamp| stamp.stage == Stage::Receive.code();
        let last = timeline.stamps.iter().rfind(received).unwrap();
        assert_eq!(last.detail, detail, "{timelines:?}");
    }
}

/// Takes whatever comes until all numbers were there; returns how often each came.
async fn take_until_all(client: &mut Client, queue: &str, count: usize) -> BTreeMap<String, u32> {
    let receiver = client.receiver(queue, 10_000).await;
    let mut seen = BTreeMap::new();
    while seen.len() < count {
        let delivery = client.receive(receiver).await;
        *seen.entry(body(&delivery)).or_default() += 1;
        client.settle(&delivery, DeliveryState::Accepted).await;
    }
    seen
}

#[tokio::test]
async fn what_waits_for_a_broker_that_is_away_comes_when_it_is_there() {
    let address = free_address();
    let out = forward(Direction::Out, "q", address, "r");
    let here = Broker::start(with(named("here"), [out]));
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_numbered(sender, 0..100).await;
    let there = Broker::start(at("there", address));
    let mut b = Client::open(&there).await;
    let seen = take_until_all(&mut b, "r", 100).await;
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

#[tokio::test]
async fn over_a_break_nothing_is_lost_that_the_other_broker_has_not_taken() {
    let address = free_address();
    let out = forward(Direction::Out, "q", address, "r");
    let nodes = NodeConfig { max_delivery_count: Some(1), ..NodeConfig::default() };
    let here = Broker::start(Config { nodes, ..with(named("here"), [out]) });
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    // One that takes messages and never says what becomes of them.
    let listener = TcpListener::bind(address).unwrap();
    a.send_numbered(sender, 0..100).await;
    let mute = std::thread::spawn(move || silent_peer(&listener));
    let unsettled = timeout(PATIENCE, async { mute.join().unwrap() }).await.unwrap();
    assert!(unsettled > 0, "some were on their way");
    let there = Broker::start(at("there", address));
    let mut b = Client::open(&there).await;
    let seen = take_until_all(&mut b, "r", 100).await;
    assert_eq!(seen.len(), 100, "a break is no failed delivery: none is a dead letter");
}

/// Takes 30 messages, says nothing of them, and goes.
fn silent_peer(listener: &TcpListener) -> usize {
    let mut came = 0;
    peer(listener, |_| {
        came += 1;
        (None, came < 30)
    });
    came
}

/// Answers open, begin and attach, gives credit, and takes transfers. `act` says what becomes of
/// each, and whether to stay.
pub(crate) fn peer(
    listener: &TcpListener,
    act: impl FnMut(&Delivery) -> (Option<DeliveryState>, bool),
) {
    peer_that(listener, |attach| Some(consent(attach)), act);
}

/// The answer to an attach that grants all.
pub(crate) fn consent(attach: Attach) -> Answer {
    Answer {
        source: attach.source.map(|source| *source),
        target: attach.target.map(|target| *target),
        snd_settle_mode: SenderSettleMode::Unsettled,
        rcv_settle_mode: attach.rcv_settle_mode,
        offered_capabilities: Vec::new(),
        properties: Default::default(),
    }
}

/// The same, where `answer` says how an attach is answered, if it is.
pub(crate) fn peer_that(
    listener: &TcpListener,
    mut answer: impl FnMut(Attach) -> Option<Answer>,
    mut act: impl FnMut(&Delivery) -> (Option<DeliveryState>, bool),
) {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let now = Instant::from_nanos(1);
    let anonymous = std::sync::Arc::new(Anonymous);
    let mut engine = Connection::server(engine::Config::default(), anonymous, now);
    let (mut stays, mut octets) = (true, [0; 65_536]);
    loop {
        while let Some(event) = engine.poll_event(now) {
            match event {
                Event::AttachRequest { link, attach } => {
                    let is_sender = attach.role == Role::Sender;
                    if let Some(answer) = answer(*attach) {
                        engine.accept(link, answer).unwrap();
                        if is_sender {
                            engine.set_credit(link, 30).unwrap();
                        }
                    }
                }
                Event::Delivery(delivery) => {
                    let (state, goes_on) = act(&delivery);
                    stays &= goes_on;
                    if let Some(state) = state {
                        engine.settle(delivery.link, delivery.id, state).unwrap();
                    }
                }
                Event::Detached { link, closed, by_peer: true, .. } => {
                    engine.detach(link, closed, None);
                }
                _ => {}
            }
        }
        if engine.poll_transmit() {
            let mut slices = [std::io::IoSlice::new(&[])];
            engine.outbox().slices(&mut slices);
            let n = socket.write(&slices[0]).unwrap();
            engine.wrote(n, now);
        } else if !stays {
            return;
        } else {
            match socket.read(&mut octets) {
                Ok(n) if n > 0 => {
                    engine.read_buffer().extend_from_slice(&octets[..n]);
                    engine.handle_read(now);
                }
                _ => return,
            }
        }
    }
}

#[tokio::test]
async fn a_circle_ends_where_it_began_and_leaves_the_message_for_others() {
    let addresses = [free_address(), free_address()];
    let brokers = [0, 1].map(|n| {
        let other = addresses[1 - n];
        let config = at(&format!("b{n}"), addresses[n]);
        Broker::start(with(config, [forward(Direction::Out, "q", other, "q")]))
    });
    let (mut a, mut b) = (Client::open(&brokers[0]).await, Client::open(&brokers[1]).await);
    let sender = a.sender("q").await;
    a.send_all(sender, ["m"]).await;
    let receiver = b.receiver("q", 1).await;
    let delivery = b.receive(receiver).await;
    assert_eq!(body(&delivery), "m", "it stays at the last broker that it had not passed");
}

#[tokio::test]
async fn a_broker_says_who_it_is_and_takes_no_links_over_its_own_connection() {
    let users = vec![User { name: "ann".into(), password: "secret".into() }];
    let there = Broker::start(Config { users, anonymous: false, ..named("there") });
    let mut wrong = forward(Direction::Out, "w", there.address(), "r");
    wrong.remote.user = Some("ann".into());
    wrong.remote.password = Some("false".into());
    let mut right = forward(Direction::Out, "q", there.address(), "r");
    right.remote.user = Some("ann".into());
    right.remote.password = Some("secret".into());
    let incoming = ForwardConfig {
        direction: Direction::In,
        local: "back".into(),
        name: "back".into(),
        ..right.clone()
    };
    let here = Broker::start(with(named("here"), [wrong, right, incoming]));
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    // The path says that it has been here: it is turned away, and stays there.
    a.send(sender, &text("m")).await;
    let back = a.receiver("back", 1).await;
    a.assert_nothing(back).await;
}
