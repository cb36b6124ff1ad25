//! A link name is in use once between two containers, for each direction (2.6.1).

use crate::support::{Broker, Client, Raw, attach, begin, config, detach};
use hopline_broker::{Config, User};
use hopline_driver::engine::wire::performative::{Frame, Open, Performative};
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{Role, Symbol};
use hopline_driver::engine::{AttachOptions, ClientSasl, LinkId};

const STOLEN: Option<&str> = Some("amqp:link:stolen");

async fn sender(client: &mut Client, name: &str, address: &str) -> LinkId {
    let options = client.options(Role::Sender, Source::default(), Target::at(address));
    let options = AttachOptions { name: name.into(), ..options };
    client.attach(options).await.expect("attached").0
}

#[test]
fn the_newer_link_of_a_session_lives() {
    let broker = Broker::start(config());
    for role in [Role::Sender, Role::Receiver] {
        let mut raw = Raw::open(&broker);
        for handle in 0..5 {
            raw.put(&attach("l", handle, role, "q"));
            if handle > 0 {
                let (_, closed, error) = raw.detached();
                assert_eq!((closed, error.as_deref()), (true, STOLEN));
                raw.put(&detach(handle - 1, true));
            }
            let answer = raw.attached();
            assert!(answer.source.is_some() && answer.target.is_some());
        }
    }
}

#[test]
fn the_newer_link_of_two_sessions_lives() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    let mut frames = Vec::new();
    begin().put(&mut frames, 1);
    raw.write(&frames);
    assert!(matches!(raw.frame(), Some(Performative::Begin(_))));
    raw.put(&attach("l", 0, Role::Sender, "q"));
    raw.attached();
    let mut frames = Vec::new();
    attach("l", 0, Role::Sender, "q").put(&mut frames, 1);
    raw.write(&frames);
    assert_eq!(raw.detached().2.as_deref(), STOLEN);
    assert!(raw.attached().target.is_some());
}

#[tokio::test]
async fn the_newer_link_of_two_connections_lives_and_takes_up_what_the_older_one_held() {
    let broker = Broker::start(config());
    let (mut a, mut b) = (Client::open_as(&broker, "c").await, Client::open_as(&broker, "c").await);
    let first = sender(&mut a, "s", "q").await;
    a.send_all(first, ["0", "1"]).await;
    let (mut older, _) = a.attach_as("r", Source::at("q")).await.expect("attached");
    a.grant(older, 2).await;
    a.receive(older).await;
    for _ in 0..3 {
        let (newer, _) = b.attach_as("r", Source::at("q")).await.expect("attached");
        b.grant(newer, 2).await;
        let error = a.detached(older).await.expect("a reason");
        assert_eq!(error.condition, *"amqp:link:stolen");
        assert_eq!(crate::support::body(&b.receive(newer).await), "0");
        assert_eq!(crate::support::body(&b.receive(newer).await), "1");
        (a, b, older) = (b, a, newer);
    }
}

#[tokio::test]
async fn a_publishers_link_is_stolen_too() {
    let broker = Broker::start(config());
    let (mut a, mut b) = (Client::open_as(&broker, "c").await, Client::open_as(&broker, "c").await);
    let older = sender(&mut a, "s", "q").await;
    let newer = sender(&mut b, "s", "q").await;
    assert_eq!(a.detached(older).await.expect("a reason").condition, *"amqp:link:stolen");
    b.send_all(newer, ["m"]).await;
    // The connection that was stolen from goes on.
    let other = sender(&mut a, "t", "q").await;
    a.send_all(other, ["n"]).await;
}

#[tokio::test]
async fn directions_prefixes_and_containers_are_told_apart() {
    let broker = Broker::start(config());
    let mut links = Vec::new();
    for container in ["c", "cc", "C", ""] {
        let mut client = Client::open_as(&broker, container).await;
        for name in ["l", "ll", "L", "l|", ""] {
            let link = sender(&mut client, name, "q").await;
            let (receiver, _) = client.attach_as(name, Source::at("q")).await.expect("attached");
            links.push((link, receiver));
        }
        client.idle(50).await;
        for (link, receiver) in links.drain(..) {
            let gone = client.find(std::time::Duration::ZERO, |event| {
                matches!(event, hopline_driver::engine::Event::Detached { link: gone, .. }
                    if *gone == link || *gone == receiver)
                .then_some(())
            });
            assert!(gone.await.is_none());
        }
        tokio::spawn(async move { client.idle(5000).await });
    }
}

#[tokio::test]
async fn another_user_steals_nothing() {
    let users = ["ann", "bob"].map(|name| User { name: name.into(), password: "x".into() });
    let broker = Broker::start(Config { users: users.to_vec(), ..config() });
    let open = async |sasl| {
        let config = hopline_driver::engine::Config {
            container_id: "c".into(),
            ..hopline_driver::engine::Config::default()
        };
        Client::open_with(broker.address(), config, sasl).await.expect("let in")
    };
    let login = |user: &str| ClientSasl::Password {
        user: user.into(),
        password: "x".into(),
        nonce: "once".into(),
    };
    let source = || Source {
        durable: 2,
        expiry_policy: Symbol::from_static("never"),
        ..Source::at("topic/t")
    };
    let (mut ann, mut bob) = (open(login("ann")).await, open(login("bob")).await);
    let mut anybody = open(ClientSasl::Anonymous).await;
    let (hers, _) = ann.attach_as("s", source()).await.expect("attached");
    ann.grant(hers, 10).await;
    ann.idle(20).await;
    for stranger in [&mut bob, &mut anybody] {
        let publisher = sender(stranger, "p", "topic/t").await;
        let (theirs, _) = stranger.attach_as("s", source()).await.expect("attached");
        stranger.detach(theirs).await;
        stranger.send_all(publisher, ["m"]).await;
        assert_eq!(ann.take(hers, 1).await, ["m"]);
    }
    let mut again = open(login("ann")).await;
    again.attach_as("s", source()).await.expect("attached");
    assert_eq!(ann.detached(hers).await.expect("a reason").condition, *"amqp:link:stolen");
}

/// Whoever wants to be the only connection of its container is not told that it is (sole
/// connection is not offered).
#[test]
fn two_connections_of_one_container_live_side_by_side() {
    let broker = Broker::start(config());
    let wanted = || Symbol::from_static("sole-connection-for-container");
    let mut connections: Vec<_> = (0..2)
        .map(|_| {
            let mut raw = Raw::connect(&broker);
            raw.write(crate::support::AMQP);
            raw.put(&Open { desired_capabilities: vec![wanted()], ..crate::support::open("c") });
            raw.skip_header();
            let Some(Performative::Open(answer)) = raw.frame() else { panic!("no open") };
            assert!(!answer.offered_capabilities.contains(&wanted()));
            raw
        })
        .collect();
    for (raw, name) in connections.iter_mut().zip(["a", "b"]) {
        raw.put_all(&[&begin(), &attach(name, 0, Role::Sender, "q")]);
        assert!(raw.attached().target.is_some());
    }
}
