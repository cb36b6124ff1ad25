//! What happens where a limit is reached: the peer is told, others go on, nothing accepted is lost.

use crate::support::{Broker, Client, condition_of, config, text};
use hopline_broker::{Config, Limits, NodeConfig};
use hopline_driver::engine::ClientSasl;
use hopline_driver::engine::wire::DeliveryState;
use hopline_driver::engine::wire::terminus::{Source, Target};
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

fn small(max_messages: usize, max_octets: usize) -> Config {
    let nodes = NodeConfig { max_messages, max_octets, ..NodeConfig::default() };
    Config { nodes, ..config() }
}

/// Sends until there is no credit; how many were accepted.
async fn fill(client: &mut Client, link: hopline_driver::engine::LinkId, octets: usize) -> usize {
    let mut sent = 0;
    client.idle(50).await;
    while client.engine().credit(link) > 0 {
        let state = client.send(link, &text("x".repeat(octets))).await;
        assert_eq!(state, DeliveryState::Accepted);
        sent += 1;
        client.idle(5).await;
        assert!(sent <= 1000, "no end of credit");
    }
    sent
}

#[tokio::test]
async fn a_full_queue_stops_credit_and_an_emptier_one_gives_it_again() {
    let broker = Broker::start(small(20, 1 << 20));
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    assert_eq!(fill(&mut client, sender, 1).await, 20);
    // The connection goes on: other links work, and the queue can be emptied over it.
    let other = client.sender("other").await;
    client.send_all(other, ["a"]).await;
    let receiver = client.receiver("q", 5).await;
    client.take(receiver, 5).await;
    let again = fill(&mut client, sender, 1).await;
    assert!((1..=5).contains(&again), "{again}");
    client.grant(receiver, 100).await;
    client.take(receiver, 15 + again).await;
    client.assert_nothing(receiver).await;
    assert!(fill(&mut client, sender, 1).await >= 20, "all of the room is given again");
}

#[tokio::test]
async fn octets_fill_a_queue_too() {
    let broker = Broker::start(small(1000, 10_000));
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    // Credit counts messages: what it had promised is taken, up to twice the limit.
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..30 {
        match client.send(sender, &text("x".repeat(1000))).await {
            DeliveryState::Accepted => accepted += 1,
            state => {
                assert_eq!(condition_of(&state), "amqp:resource-limit-exceeded");
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused), (20, 10));
    let late = client.sender("q").await;
    client.idle(50).await;
    assert_eq!(client.engine().credit(late), 0);
    let receiver = client.receiver("q", 100).await;
    assert_eq!(client.take(receiver, 20).await.len(), 20);
    client.assert_nothing(receiver).await;
    assert!(client.engine().credit(late) > 0);
}

#[tokio::test]
async fn credit_is_for_as_many_messages_as_there_is_room_for_in_octets() {
    let broker = Broker::start(small(1000, 1 << 20));
    let mut client = Client::open(&broker).await;
    for octets in [500, 2_000, 5_000, 12_000] {
        let queue = format!("of.{octets}");
        let sender = client.sender(&queue).await;
        let whole = 1000.min((1 << 20) / octets);
        let sent = fill(&mut client, sender, octets).await;
        // At first it is not known how large they are.
        assert!((whole * 9 / 10..=whole.max(127) + 1).contains(&sent), "{sent} of {octets} octets");
        let receiver = client.receiver(&queue, 1000).await;
        client.take(receiver, sent).await;
        let again = fill(&mut client, sender, octets).await;
        assert!(again > 0, "no credit once there is room");
    }
}

#[tokio::test]
async fn many_publishers_share_the_room() {
    let broker = Broker::start(small(100, 1 << 20));
    let mut client = Client::open(&broker).await;
    let mut senders = Vec::new();
    for _ in 0..10 {
        senders.push(client.sender("q").await);
    }
    let mut accepted = 0;
    for sender in senders {
        client.idle(20).await;
        let credit = client.engine().credit(sender);
        for _ in 0..credit {
            match client.send(sender, &text("m")).await {
                DeliveryState::Accepted => accepted += 1,
                state => assert_eq!(condition_of(&state), "amqp:resource-limit-exceeded"),
            }
        }
    }
    assert!((100..=200).contains(&accepted), "{accepted}");
    let receiver = client.receiver("q", 1000).await;
    client.take(receiver, accepted).await;
    client.assert_nothing(receiver).await;
}

#[tokio::test]
async fn there_are_no_more_nodes_than_the_limit_says_and_unused_ones_make_room() {
    let nodes = NodeConfig { max_nodes: 3, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    for round in 0..5 {
        let mut links = Vec::new();
        for name in ["a", "topic/b", "c"] {
            links.push(client.sender(&format!("{name}{round}")).await);
        }
        for target in
            [Target::at("d"), Target::at("topic/d"), Target { dynamic: true, ..Target::default() }]
        {
            let refused = client.sender_to(target).await.expect_err("full");
            assert_eq!(refused.condition.as_str(), "amqp:resource-limit-exceeded");
        }
        let refused = client.receiver_from(Source::at("topic/e")).await.expect_err("full");
        assert_eq!(refused.condition.as_str(), "amqp:resource-limit-exceeded");
        for link in links {
            client.detach(link).await;
        }
    }
}

#[tokio::test]
async fn queues_whose_messages_expired_make_room() {
    let nodes = NodeConfig { max_nodes: 10, ..NodeConfig::default() };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let relay = client.sender_to(Target::default()).await.expect("attached");
    for n in 0..30 {
        let mut message = crate::support::with_ttl("m", 0);
        message.properties.to = Some(format!("q{n}"));
        assert_eq!(client.send(relay, &message).await, DeliveryState::Accepted);
        message.properties.to = Some(format!("topic/{n}"));
        assert_eq!(client.send(relay, &message).await, DeliveryState::Accepted);
    }
}

#[tokio::test]
async fn there_are_no_more_connections_than_the_limit_says() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let broker = Broker::start(Config { limits, ..config() });
    let (one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let mut third = TcpStream::connect(broker.address()).expect("the kernel accepts");
    third.set_read_timeout(Some(crate::support::PATIENCE)).expect("a time limit");
    assert!(matches!(third.read(&mut [0; 8]), Ok(0) | Err(_)), "hung up on");
    let sender = two.sender("q").await;
    two.send_all(sender, ["still served"]).await;
    one.close().await;
    two.idle(50).await;
    Client::open(&broker).await;
}

#[tokio::test]
async fn a_message_larger_than_the_limit_ends_its_link_only() {
    let limits = Limits { max_message_size: 10_000, ..Limits::default() };
    let broker = Broker::start(Config { limits, ..config() });
    let mut raw = crate::support::Raw::open(&broker);
    raw.attach_sender("q");
    raw.write(&crate::support::transfer(
        0,
        false,
        &crate::support::encoded(&text("x".repeat(20_000))),
    ));
    let Some(hopline_driver::engine::wire::Performative::Detach(detach)) = raw.frame() else {
        panic!("no detach");
    };
    let condition = detach.error.expect("a reason").condition;
    assert_eq!(condition.as_str(), "amqp:link:message-size-exceeded");
}

#[tokio::test]
async fn a_consumer_for_which_a_message_is_too_large_does_not_get_it_and_others_do() {
    let broker = Broker::start(config());
    let tiny = hopline_driver::engine::Config { max_message_size: 1000, ..Default::default() };
    let tiny = Client::open_with(broker.address(), tiny, ClientSasl::Anonymous).await;
    let (mut tiny, mut client) = (tiny.expect("let in"), Client::open(&broker).await);
    let sender = client.sender("q").await;
    let link = tiny.receiver("q", 10).await;
    client.send_all(sender, ["x".repeat(5000).as_str(), "small"]).await;
    assert_eq!(tiny.take(link, 1).await, ["small"]);
    let receiver = client.receiver("q", 10).await;
    let large = client.try_receive(receiver, Duration::from_secs(5)).await;
    assert_eq!(crate::support::body(&large.expect("it comes")).len(), 5000);
}
