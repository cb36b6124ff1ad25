//! Work grows with what there is to do and no faster: a hundred thousand messages that come back,
//! thousands of links that leave. Each of these takes minutes if it is quadratic.

use crate::support::{Broker, Client, config, text, with_ttl};
use hopline_broker::{Config, Limits, NodeConfig};
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{DeliveryState, Serial};
use hopline_driver::engine::{ClientSasl, LinkId};
use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(30);

async fn fill(client: &mut Client, address: &str, count: usize) {
    let sender = client.sender(address).await;
    for n in 0..count {
        client.post(sender, &text(n.to_string()), true).await;
    }
    client.send_all(sender, ["last"]).await;
}

fn crowd() -> Config {
    let limits = Limits { handle_max: 20_000, ..Limits::default() };
    Config { limits, ..config() }
}

#[tokio::test]
async fn many_messages_are_released_one_by_one() {
    const HELD: usize = 40_000;
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    fill(&mut client, "q", 2 * HELD).await;
    let receiver = client.receiver("q", HELD as u32).await;
    let mut ids: Vec<Serial> = Vec::new();
    for _ in 0..HELD {
        ids.push(client.receive(receiver).await.id);
    }
    let begun = Instant::now();
    // Every other one first, so that no two make a range.
    for odd in [0, 1] {
        for id in ids.iter().skip(odd).step_by(2) {
            client.settle_only(receiver, *id, DeliveryState::Released);
        }
        client.flush().await;
    }
    client.grant(receiver, 3).await;
    assert_eq!(client.take(receiver, 3).await, ["0", "1", "2"]);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn many_messages_expire_while_others_stay() {
    const COUNT: usize = 40_000;
    let nodes = NodeConfig { dead_letter: Some("dead".into()), ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let begun = Instant::now();
    for n in 0..COUNT {
        let ttl = if n % 2 == 0 { 1 } else { 600_000 };
        client.post(sender, &with_ttl("m", ttl), true).await;
    }
    client.send_all(sender, ["last"]).await;
    let dead = client.receiver("dead", COUNT as u32).await;
    client.take(dead, COUNT / 2).await;
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn many_consumers_leave_one_queue() {
    let broker = Broker::start(crowd());
    let mut client = crowd_client(&broker).await;
    attach_many(&mut client, 10_000, "q").await;
    let begun = Instant::now();
    drop(client);
    let mut other = Client::open(&broker).await;
    let (sender, receiver) = (other.sender("q").await, other.receiver("q", 1).await);
    other.send_all(sender, ["m"]).await;
    assert_eq!(other.take(receiver, 1).await, ["m"]);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn many_subscribers_come_and_go() {
    let broker = Broker::start(crowd());
    let mut client = crowd_client(&broker).await;
    let begun = Instant::now();
    attach_many(&mut client, 5_000, "topic/t").await;
    let mut other = Client::open(&broker).await;
    let sender = other.sender("topic/t").await;
    other.send_all(sender, ["0", "1", "2"]).await;
    drop(client);
    other.send_all(sender, ["3"]).await;
    let receiver = other.receiver("topic/t", 1).await;
    other.send_all(sender, ["4"]).await;
    assert_eq!(other.take(receiver, 1).await, ["4"]);
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
}

async fn crowd_client(broker: &Broker) -> Client {
    let wide = hopline_driver::engine::Config { handle_max: 20_000, ..Default::default() };
    let client = Client::open_with(broker.address(), wide, ClientSasl::Anonymous).await;
    client.expect("let in")
}

/// Receivers with credit.
async fn attach_many(client: &mut Client, count: usize, address: &str) {
    let mut links: Vec<LinkId> = Vec::new();
    for _ in 0..count {
        let options = client.options(
            hopline_driver::engine::wire::Role::Receiver,
            Source::at(address),
            Target::default(),
        );
        links.push(client.attach_only(options));
    }
    for link in links {
        client.grant_only(link, 5);
    }
    let last = client.receiver("sync", 1).await;
    client.detach(last).await;
}
