//! Forwards over lines that break, to brokers that refuse, give back and can't take.

use crate::forwards::{at, forward, free_address, named, peer, with};
use crate::support::{Broker, Client, PATIENCE, body, decoded, numbered};
use hopline_broker::{Config, Direction, Limits, NodeConfig, User};
use hopline_driver::engine::wire::DeliveryState;
use hopline_driver::engine::wire::outcome::{Modified, Rejected, TransactionalState};
use hopline_driver::engine::{Delivery, LinkId};
use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Passes octets on, until it is cut; then anew.
pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Line {
    pub(crate) fn to(there: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, open) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<_>>>::default());
        let ends = open.clone();
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(there) else { return };
                pass(&near, &far);
                pass(&far, &near);
                ends.lock().unwrap().extend([near, far]);
            }
        });
        Self { address, open }
    }

    /// Connections that have come and were not cut by us.
    pub(crate) fn connections(&self) -> usize {
        self.open.lock().unwrap().len() / 2
    }

    /// What is on its way is lost. Whether there was anything to cut.
    fn cut(&self) -> bool {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        open.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
        !open.is_empty()
    }
}

fn pass(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

pub(crate) const COUNT: i32 = 3_000;

/// A queue of few messages, so that the forward does not run ahead of who takes them.
pub(crate) fn narrow(config: Config) -> Config {
    let nodes = NodeConfig { max_messages: 100, ..NodeConfig::default() };
    let limits = Limits { producer_credit: 50, ..Limits::default() };
    Config { nodes, limits, ..config }
}

/// Takes all numbers and cuts the line again and again meanwhile. Each number comes, the first time
/// in order; what comes twice was on its way when the line was cut.
pub(crate) async fn take_all_over(line: &Line, client: &mut Client, receiver: LinkId) {
    let (mut seen, mut again, mut cuts) = (Vec::new(), 0, 0);
    let mut times = BTreeMap::<String, u32>::new();
    while seen.len() < COUNT as usize {
        client.grant_only(receiver, 20);
        let delivery = client.receive(receiver).await;
        client.settle(&delivery, DeliveryState::Accepted).await;
        let number = body(&delivery);
        let before = times.entry(number.clone()).or_default();
        *before += 1;
        if *before > 1 {
            again += 1;
            continue;
        }
        seen.push(number);
        if seen.len() % 300 == 0 {
            cuts += usize::from(line.cut());
        }
    }
    assert_eq!(seen, Vec::from_iter((0..COUNT).map(|n| n.to_string())), "{again} came again");
    assert!(cuts > 5, "the line was cut {cuts} times while messages went over it");
    assert!(again <= cuts * 200, "{again} came again after {cuts} cuts");
}

#[tokio::test]
async fn nothing_is_lost_on_the_way_out_however_often_the_line_is_cut() {
    let there = Broker::start(narrow(named("there")));
    let line = Line::to(there.address());
    let out = forward(Direction::Out, "q", line.address, "r");
    let here = Broker::start(with(named("here"), [out]));
    let (mut a, mut b) = (Client::open(&here).await, Client::open(&there).await);
    let sender = a.sender("q").await;
    a.send_numbered(sender, 0..COUNT).await;
    let receiver = b.receiver("r", 20).await;
    take_all_over(&line, &mut b, receiver).await;
}

#[tokio::test]
async fn nothing_is_lost_on_the_way_in_however_often_the_line_is_cut() {
    let there = Broker::start(named("there"));
    let mut b = Client::open(&there).await;
    let sender = b.sender("r").await;
    b.send_numbered(sender, 0..COUNT).await;
    let line = Line::to(there.address());
    let incoming = forward(Direction::In, "q", line.address, "r");
    let here = Broker::start(narrow(with(named("here"), [incoming])));
    let mut a = Client::open(&here).await;
    let receiver = a.receiver("q", 20).await;
    take_all_over(&line, &mut a, receiver).await;
}

#[tokio::test]
async fn who_is_not_let_in_tries_again_and_others_go_on() {
    let address = free_address();
    let users = |password: &str| vec![User { name: "ann".into(), password: password.into() }];
    let guarded = |password| Config {
        users: users(password),
        anonymous: false,
        stop_timeout: std::time::Duration::from_millis(100),
        ..at("there", address)
    };
    let there = Broker::start(guarded("other"));
    let open = Broker::start(named("open"));
    let mut out = forward(Direction::Out, "q", address, "r");
    out.remote.user = Some("ann".into());
    out.remote.password = Some("secret".into());
    let other = forward(Direction::Out, "p", open.address(), "r");
    let here = Broker::start(with(named("here"), [out, other]));
    let (mut a, mut b) = (Client::open(&here).await, Client::open(&open).await);
    let (q, p) = (a.sender("q").await, a.sender("p").await);
    a.send_all(q, ["waits"]).await;
    a.send_all(p, ["goes"]).await;
    let receiver = b.receiver("r", 1).await;
    assert_eq!(b.take(receiver, 1).await, ["goes"]);
    there.stop();
    let mut let_in = guarded("secret");
    let_in.forwards.push(forward(Direction::Out, "r", open.address(), "s"));
    let _there = Broker::start(let_in);
    let onward = b.receiver("s", 1).await;
    assert_eq!(b.take(onward, 1).await, ["waits"]);
}

#[tokio::test]
async fn a_node_that_is_refused_is_asked_for_again() {
    let address = free_address();
    let nodes = NodeConfig { deny: vec!["r".into()], ..NodeConfig::default() };
    let denying = Config { nodes, ..at("there", address) };
    let there = Broker::start(denying);
    let out = forward(Direction::Out, "q", address, "r");
    let here = Broker::start(with(named("here"), [out]));
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_all(sender, ["m"]).await;
    there.stop();
    let there = Broker::start(at("there", address));
    let mut b = Client::open(&there).await;
    let receiver = b.receiver("r", 1).await;
    assert_eq!(b.take(receiver, 1).await, ["m"]);
}

#[tokio::test]
async fn one_that_is_too_large_stays_and_does_not_hold_up_the_others() {
    let limits = Limits { max_message_size: 1_000, ..Limits::default() };
    let there = Broker::start(Config { limits, ..named("there") });
    let out = forward(Direction::Out, "q", there.address(), "r");
    let here = Broker::start(with(named("here"), [out]));
    let (mut a, mut b) = (Client::open(&here).await, Client::open(&there).await);
    let sender = a.sender("q").await;
    let large = "x".repeat(2_000);
    a.send_all(sender, [large.as_str(), "m"]).await;
    let receiver = b.receiver("r", 2).await;
    assert_eq!(b.take(receiver, 1).await, ["m"]);
    let rest = a.receiver("q", 1).await;
    assert_eq!(a.take(rest, 1).await, [large]);
}

#[tokio::test]
async fn one_that_is_too_large_for_us_stays_there() {
    let there = Broker::start(named("there"));
    let (mut b, large) = (Client::open(&there).await, "x".repeat(2_000));
    let sender = b.sender("r").await;
    b.send_all(sender, [large.as_str(), "m"]).await;
    let incoming = forward(Direction::In, "q", there.address(), "r");
    let limits = Limits { max_message_size: 1_000, ..Limits::default() };
    let here = Broker::start(with(Config { limits, ..named("here") }, [incoming]));
    let mut a = Client::open(&here).await;
    let receiver = a.receiver("q", 1).await;
    assert_eq!(a.take(receiver, 1).await, ["m"]);
    let rest = b.receiver("r", 1).await;
    assert_eq!(b.take(rest, 1).await, [large]);
}

/// A broker whose queue `q` leads to a peer that does with each message as it is told to.
fn to_peer(
    act: impl FnMut(&Delivery) -> (Option<DeliveryState>, bool) + Send + 'static,
) -> (Broker, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = forward(Direction::Out, "q", listener.local_addr().unwrap(), "r");
    let nodes = NodeConfig {
        dead_letter: Some("dead".into()),
        max_delivery_count: Some(2),
        ..NodeConfig::default()
    };
    let here = Broker::start(with(Config { nodes, ..named("here") }, [out]));
    let mut act = act;
    let thread = thread::spawn(move || {
        let mut stays = true;
        while stays {
            peer(&listener, |delivery| {
                let (state, goes_on) = act(delivery);
                stays = goes_on;
                (state, goes_on)
            });
        }
    });
    (here, thread)
}

#[tokio::test]
async fn outcomes_hold_as_those_of_any_consumer() {
    let mut times = BTreeMap::<String, Vec<u32>>::new();
    let (tell, told) = std::sync::mpsc::channel();
    let (here, _peer) = to_peer(move |delivery| {
        let times = times.entry(body(delivery)).or_default();
        times.push(decoded(delivery).header.delivery_count);
        let failed = Modified { delivery_failed: Some(true), ..Modified::default() };
        let state = match (body(delivery).as_str(), times.len()) {
            ("rejected", _) => DeliveryState::Rejected(Rejected::default()),
            ("modified", _) => DeliveryState::Modified(Box::new(failed)),
            ("released", 1) => DeliveryState::Released,
            _ => DeliveryState::Accepted,
        };
        let _ = tell.send((body(delivery), times.clone()));
        (Some(state), true)
    });
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_all(sender, ["rejected", "modified", "released", "accepted"]).await;
    let dead = a.receiver("dead", 10).await;
    assert_eq!(a.take(dead, 2).await, ["rejected", "modified"]);
    let mut last = BTreeMap::new();
    while !last.contains_key("accepted") || last.get("released").is_none_or(|it| it != &[0, 0]) {
        let (body, times) = told.recv_timeout(PATIENCE).unwrap();
        last.insert(body, times);
    }
    assert_eq!((&last["modified"][..], &last["rejected"][..]), (&[0, 1][..], &[0][..]));
    a.assert_nothing(dead).await;
    let rest = a.receiver("q", 10).await;
    a.assert_nothing(rest).await;
}

#[tokio::test]
async fn what_is_given_back_at_once_is_not_offered_again_at_once() {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let (here, _peer) = to_peer(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        (Some(DeliveryState::Released), true)
    });
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_all(sender, ["m"]).await;
    let began = Instant::now();
    while count.load(Ordering::Relaxed) < 4 {
        assert!(began.elapsed() < PATIENCE);
        a.idle(10).await;
    }
    // A sweep, four times a second, lets it begin again; without that it is thousands of times.
    let at_most = 2 + 4 * (began.elapsed().as_secs() + 1);
    assert!(count.load(Ordering::Relaxed) <= at_most);
}

#[tokio::test]
async fn a_link_that_we_have_to_end_is_made_again() {
    let mut came = 0;
    let (tell, told) = std::sync::mpsc::channel();
    let (here, _peer) = to_peer(move |_| {
        came += 1;
        // No transaction of this name was declared: that costs the link.
        let work = TransactionalState { txn_id: "none".into(), outcome: None };
        let state = match came {
            1 => DeliveryState::Transactional(work),
            _ => DeliveryState::Accepted,
        };
        let _ = tell.send(came);
        (Some(state), true)
    });
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_all(sender, ["m"]).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(2), "by another link");
}

#[tokio::test]
async fn a_circle_of_three_ends_too() {
    let addresses = [free_address(), free_address(), free_address()];
    let brokers = [0, 1, 2].map(|n| {
        let next = addresses[(n + 1) % 3];
        let config = at(&format!("b{n}"), addresses[n]);
        Broker::start(with(config, [forward(Direction::Out, "q", next, "q")]))
    });
    let mut a = Client::open(&brokers[0]).await;
    let sender = a.sender("q").await;
    a.send_numbered(sender, 0..100).await;
    let mut c = Client::open(&brokers[2]).await;
    let receiver = c.receiver("q", 200).await;
    // Which it takes before the forward there does, and which after they came back, is open.
    let mut bodies = c.take(receiver, 100).await;
    bodies.sort_by_key(|body| body.parse::<i32>().unwrap());
    assert_eq!(bodies, Vec::from_iter((0..100).map(|n| n.to_string())));
}

#[tokio::test]
async fn topics_that_lead_to_each_other_neither_double_nor_fill_up() {
    let addresses = [free_address(), free_address()];
    let nodes = NodeConfig { max_messages: 10, ..NodeConfig::default() };
    let brokers = [0, 1].map(|n| {
        let other = addresses[1 - n];
        let config = Config { nodes: nodes.clone(), ..at(&format!("b{n}"), addresses[n]) };
        Broker::start(with(config, [forward(Direction::Out, "topic/t", other, "topic/t")]))
    });
    let (mut a, mut b) = (Client::open(&brokers[0]).await, Client::open(&brokers[1]).await);
    let (near, far) = (a.receiver("topic/t", 500).await, b.receiver("topic/t", 500).await);
    let sender = a.sender("topic/t").await;
    for n in 0..100 {
        assert_eq!(a.send(sender, &numbered(n)).await, DeliveryState::Accepted);
        assert_eq!(b.take(far, 1).await, [n.to_string()]);
        assert_eq!(a.take(near, 1).await, [n.to_string()]);
    }
    a.assert_nothing(near).await;
    b.assert_nothing(far).await;
}
