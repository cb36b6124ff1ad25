//! When dynamic nodes and subscriptions go: lifetime policies, expiry, temporary nodes.

use crate::support::{Broker, Client, PATIENCE, config};
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::value::Array;
use hopline_driver::engine::wire::{Fields, Role, Symbol, Value};
use std::time::Duration;
use tokio::time::Instant;

const NO_LINKS: u64 = 0x2c;
const NO_MESSAGES: u64 = 0x2d;
const NO_LINKS_OR_MESSAGES: u64 = 0x2e;

fn policy(code: u64) -> Value {
    Value::Described(Box::new((Value::Ulong(code), Value::List(Vec::new()))))
}

fn properties(entries: &[(&'static str, Value)]) -> Option<Fields> {
    let entries = entries.iter().map(|(key, value)| (Symbol::from_static(key), value.clone()));
    Some(Fields(entries.collect()))
}

fn dynamic(entries: &[(&'static str, Value)]) -> Target {
    let dynamic_node_properties = properties(entries);
    Target { dynamic: true, dynamic_node_properties, ..Target::default() }
}

/// A publisher's link to a node made for it; what is in force.
async fn make(client: &mut Client, target: Target) -> (LinkId, Target) {
    let options = client.options(Role::Sender, Source::default(), target);
    let (link, answer) = client.attach(options).await.expect("attached");
    match answer.target.map(|target| *target) {
        Some(TargetKind::Target(target)) => (link, target),
        other => panic!("{other:?}"),
    }
}

/// Whether a node of that address is there; it is not made.
async fn exists(client: &mut Client, address: &str) -> bool {
    let capabilities = vec![Symbol::from_static("temporary-queue")];
    let target = Target { capabilities, ..Target::at(address) };
    match client.sender_to(target).await {
        Ok(link) => {
            client.detach(link).await;
            true
        }
        Err(error) => {
            assert_eq!(error.condition, *"amqp:not-found");
            false
        }
    }
}

async fn vanishes(client: &mut Client, address: &str) {
    let until = Instant::now() + PATIENCE;
    while exists(client, address).await {
        assert!(Instant::now() < until, "{address} is there still");
        client.idle(20).await;
    }
}

#[tokio::test]
async fn delete_on_close_is_the_default_and_a_detach_is_no_close() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    for entries in [&[][..], &[("lifetime-policy", policy(0x2b))]] {
        let (link, target) = make(&mut owner, dynamic(entries)).await;
        let found = target.dynamic_node_properties.expect("what is in force");
        assert_eq!(found.get("lifetime-policy"), Some(&policy(0x2b)));
        let address = target.address.expect("an address");
        owner.send_all(link, ["kept"]).await;
        assert_eq!(owner.leave(link).await, None);
        assert!(exists(&mut other, &address).await);
        let receiver = other.receiver(&address, 10).await;
        assert_eq!(other.take(receiver, 1).await, ["kept"]);
    }
    // The session that was to end before they go ends.
    owner.close().await;
    let error = other.find(PATIENCE, |event| match event {
        hopline_driver::engine::Event::Detached { error, .. } => error.clone(),
        _ => None,
    });
    assert_eq!(error.await.expect("a detach").condition, *"amqp:resource-deleted");
}

#[tokio::test]
async fn a_dynamic_node_is_found_again_by_the_name_of_its_link() {
    let broker = Broker::start(config());
    let mut owner = Client::open(&broker).await;
    let source = || Source { dynamic: true, ..Source::default() };
    let (link, answer) = owner.attach_as("d", source()).await.expect("attached");
    let address = answer.source.expect("one").address;
    assert_eq!(owner.leave(link).await, None);
    let (link, answer) = owner.attach_as("d", source()).await.expect("attached");
    assert_eq!(answer.source.expect("one").address, address);
    owner.detach(link).await;
    let (_, answer) = owner.attach_as("d", source()).await.expect("attached");
    assert_ne!(answer.source.expect("one").address, address);
}

#[tokio::test]
async fn a_closed_link_takes_its_node_and_the_links_there_along() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let (link, target) = make(&mut owner, dynamic(&[])).await;
    let address = target.address.expect("an address");
    let (sender, receiver) = (other.sender(&address).await, other.receiver(&address, 10).await);
    owner.detach(link).await;
    for link in [sender, receiver] {
        let error = other.detached(link).await.expect("a reason");
        assert_eq!(error.condition, *"amqp:resource-deleted");
    }
    assert!(!exists(&mut other, &address).await);
}

#[tokio::test]
async fn delete_on_no_links_waits_for_the_last_link() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let target = dynamic(&[("lifetime-policy", policy(NO_LINKS))]);
    let (link, target) = make(&mut owner, target).await;
    let address = target.address.expect("an address");
    owner.send_all(link, ["0", "1"]).await;
    let receiver = other.receiver(&address, 1).await;
    owner.detach(link).await;
    assert_eq!(other.take(receiver, 1).await, ["0"]);
    other.detach(receiver).await;
    assert!(!exists(&mut owner, &address).await, "though there is a message left");
}

#[tokio::test]
async fn delete_on_no_messages_waits_for_the_last_message_only() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    for settled in [false, true] {
        let target = dynamic(&[("lifetime-policy", policy(NO_MESSAGES))]);
        let (link, target) = make(&mut owner, target).await;
        let address = target.address.expect("an address");
        assert!(exists(&mut other, &address).await, "its link is there");
        owner.send_all(link, ["0", "1"]).await;
        owner.detach(link).await;
        assert!(exists(&mut other, &address).await, "there are messages");
        let mode = hopline_driver::engine::wire::definitions::SenderSettleMode::Settled;
        let mut options = other.options(Role::Receiver, Source::at(&address), Target::default());
        if settled {
            options.snd_settle_mode = mode;
        }
        let (receiver, _) = other.attach(options).await.expect("attached");
        other.grant(receiver, 1).await;
        assert_eq!(other.take(receiver, 1).await, ["0"]);
        other.grant(receiver, 1).await;
        assert_eq!(other.take(receiver, 1).await, ["1"]);
        let error = other.detached(receiver).await.expect("a reason");
        assert_eq!(error.condition, *"amqp:resource-deleted");
    }
}

#[tokio::test]
async fn delete_on_no_links_or_messages_waits_for_both() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let target = dynamic(&[("lifetime-policy", policy(NO_LINKS_OR_MESSAGES))]);
    let (link, target) = make(&mut owner, target).await;
    let address = target.address.expect("an address");
    owner.send_all(link, ["0"]).await;
    owner.close().await;
    assert!(exists(&mut other, &address).await, "there is a message");
    let receiver = other.receiver(&address, 10).await;
    assert_eq!(other.take(receiver, 1).await, ["0"]);
    other.assert_nothing(receiver).await;
    other.detach(receiver).await;
    assert!(!exists(&mut other, &address).await);
}

#[tokio::test]
async fn properties_are_answered_by_what_is_in_force_and_bad_ones_refused() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let symbols = |names: &[&'static str]| {
        let names: Vec<_> = names.iter().map(|name| Symbol::from_static(name)).collect();
        Value::Array(Array::symbols(&names))
    };
    let by_name = Value::Symbol(Symbol::from_static("amqp:delete-on-no-links:list"));
    let by_name = Value::Described(Box::new((by_name, Value::List(Vec::new()))));
    let asked = [
        ("lifetime-policy", by_name),
        ("supported-dist-modes", Value::Symbol(Symbol::from_static("move"))),
        ("x-unknown", Value::Uint(1)),
    ];
    let (_, target) = make(&mut client, dynamic(&asked)).await;
    let wanted = [
        ("lifetime-policy", policy(NO_LINKS)),
        ("supported-dist-modes", symbols(&["move", "copy"])),
    ];
    assert_eq!(target.dynamic_node_properties, properties(&wanted));
    let with_fields = Value::List(vec![Value::Uint(1)]);
    let bad = [
        ("lifetime-policy", Value::Uint(0x2b)),
        ("lifetime-policy", Value::Null),
        ("lifetime-policy", Value::Symbol(Symbol::from_static("delete-on-close"))),
        ("lifetime-policy", policy(0x2f)),
        ("lifetime-policy", policy(0x23)),
        ("lifetime-policy", Value::Described(Box::new((Value::Ulong(0x2b), with_fields)))),
        ("lifetime-policy", Value::Described(Box::new((Value::Ulong(0x2b), Value::Null)))),
        ("supported-dist-modes", Value::Uint(1)),
        ("supported-dist-modes", Value::String("move".into())),
        ("supported-dist-modes", Value::Symbol(Symbol::from_static("throw"))),
        ("supported-dist-modes", symbols(&["move", "throw"])),
    ];
    for (key, value) in bad {
        let error = client.sender_to(dynamic(&[(key, value.clone())])).await.expect_err("refused");
        assert_eq!(error.condition, *"amqp:invalid-field", "{value:?}");
        let dynamic_node_properties = properties(&[(key, value.clone())]);
        let source = Source { dynamic: true, dynamic_node_properties, ..Source::default() };
        let error = client.receiver_from(source).await.expect_err("refused");
        assert_eq!(error.condition, *"amqp:invalid-field", "{value:?}");
    }
}

#[tokio::test]
async fn others_send_to_a_temporary_node_and_only_its_connection_consumes() {
    let broker = Broker::start(config());
    let (mut owner, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    for kind in ["temporary-queue", "temporary-topic"] {
        let capabilities = vec![Symbol::from_static(kind)];
        let target = Target { capabilities: capabilities.clone(), ..dynamic(&[]) };
        let (link, target) = make(&mut owner, target).await;
        assert_eq!(target.capabilities, capabilities);
        let address = target.address.expect("an address");
        let source = || Source { capabilities: capabilities.clone(), ..Source::at(&address) };
        let receiver = owner.receiver_from(source()).await.expect("attached");
        owner.grant(receiver, 10).await;
        owner.idle(20).await;
        let error = other.receiver_from(source()).await.expect_err("refused");
        assert_eq!(error.condition, *"amqp:resource-locked");
        let sender = other.sender(&address).await;
        other.send_all(sender, ["reply"]).await;
        assert_eq!(owner.take(receiver, 1).await, ["reply"]);
        owner.detach(link).await;
        for (client, link) in [(&mut owner, receiver), (&mut other, sender)] {
            let error = client.detached(link).await.expect("a reason");
            assert_eq!(error.condition, *"amqp:resource-deleted", "{kind}");
        }
        // It is not made anew by whoever still has its address.
        let error = other.receiver_from(source()).await.expect_err("refused");
        assert_eq!(error.condition, *"amqp:not-found");
    }
}

#[tokio::test]
async fn a_temporary_topic_gives_each_consumer_each_message() {
    let broker = Broker::start(config());
    let mut owner = Client::open(&broker).await;
    let capabilities = vec![Symbol::from_static("temporary-topic")];
    let (link, target) = make(&mut owner, Target { capabilities, ..dynamic(&[]) }).await;
    let address = target.address.expect("an address");
    let (a, b) = (owner.receiver(&address, 10).await, owner.receiver(&address, 10).await);
    owner.send_all(link, ["m"]).await;
    assert_eq!(owner.take(a, 1).await, ["m"]);
    assert_eq!(owner.take(b, 1).await, ["m"]);
}

/// A subscription, and what it is kept by.
struct Kept {
    broker: Broker,
    publisher: Client,
    sender: LinkId,
    client: Client,
    source: Source,
}

impl Kept {
    async fn new(policy: &'static str, timeout: u32) -> Self {
        let broker = Broker::start(config());
        let mut publisher = Client::open(&broker).await;
        let sender = publisher.sender("topic/t").await;
        let client = Client::open_as(&broker, "c").await;
        let expiry_policy = Symbol::from_static(policy);
        let source = Source { expiry_policy, timeout, ..Source::at("topic/t") };
        let mut kept = Self { broker, publisher, sender, client, source };
        kept.subscribe().await;
        kept
    }

    async fn subscribe(&mut self) -> LinkId {
        let attached = self.client.attach_as("s", self.source.clone()).await;
        let (link, answer) = attached.expect("attached");
        let source = answer.source.expect("one");
        assert_eq!(source.expiry_policy, self.source.expiry_policy);
        assert_eq!(source.timeout, self.source.timeout);
        self.client.grant(link, 10).await;
        link
    }

    async fn leave(&mut self) {
        let link = self.subscribe().await;
        let _ = self.client.leave(link).await;
    }

    async fn reconnect(&mut self) {
        let client = Client::open_as(&self.broker, "c").await;
        std::mem::replace(&mut self.client, client).close().await;
    }

    /// Whether what is published while nobody is attached is there after `pause`.
    async fn keeps(&mut self, pause: Duration) -> bool {
        self.publisher.send_all(self.sender, ["m"]).await;
        tokio::time::sleep(pause).await;
        let link = self.subscribe().await;
        self.client.try_receive(link, Duration::from_millis(150)).await.is_some()
    }
}

#[tokio::test]
async fn link_detach_starts_the_timeout_at_the_detach() {
    let mut kept = Kept::new("link-detach", 0).await;
    kept.leave().await;
    assert!(!kept.keeps(Duration::ZERO).await);
    let mut kept = Kept::new("link-detach", 1).await;
    kept.leave().await;
    assert!(kept.keeps(Duration::ZERO).await);
    kept.leave().await;
    assert!(!kept.keeps(Duration::from_millis(1500)).await);
}

#[tokio::test]
async fn a_link_that_comes_back_stops_the_timeout() {
    let mut kept = Kept::new("link-detach", 1).await;
    for _ in 0..3 {
        kept.leave().await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        kept.subscribe().await;
    }
    // It is attached for longer than the timeout, and then left for less.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    kept.leave().await;
    assert!(kept.keeps(Duration::from_millis(200)).await);
}

#[tokio::test]
async fn session_end_starts_the_timeout_at_the_end_of_the_session() {
    let mut kept = Kept::new("session-end", 0).await;
    kept.leave().await;
    assert!(kept.keeps(Duration::ZERO).await);
    kept.leave().await;
    kept.client.begin_other().await;
    assert!(!kept.keeps(Duration::ZERO).await);
    let mut kept = Kept::new("session-end", 1).await;
    kept.leave().await;
    kept.client.begin_other().await;
    assert!(kept.keeps(Duration::ZERO).await);
    kept.leave().await;
    kept.client.begin_other().await;
    assert!(!kept.keeps(Duration::from_millis(1500)).await);
}

#[tokio::test]
async fn connection_close_outlives_sessions_and_never_outlives_connections() {
    let mut kept = Kept::new("connection-close", 0).await;
    kept.leave().await;
    kept.client.begin_other().await;
    assert!(kept.keeps(Duration::ZERO).await);
    kept.reconnect().await;
    assert!(!kept.keeps(Duration::ZERO).await);
    let mut kept = Kept::new("connection-close", 1).await;
    kept.reconnect().await;
    assert!(kept.keeps(Duration::ZERO).await);
    kept.reconnect().await;
    assert!(!kept.keeps(Duration::from_millis(1500)).await);
    let mut kept = Kept::new("never", 0).await;
    kept.reconnect().await;
    assert!(kept.keeps(Duration::from_millis(600)).await);
}

#[tokio::test]
async fn a_dynamic_node_waits_for_its_link_as_its_terminus_says() {
    let broker = Broker::start(config());
    let mut other = Client::open(&broker).await;
    for (policy, timeout) in [("link-detach", 0), ("link-detach", 1), ("connection-close", 1)] {
        let mut owner = Client::open(&broker).await;
        let expiry_policy = Symbol::from_static(policy);
        let (link, target) =
            make(&mut owner, Target { expiry_policy, timeout, ..dynamic(&[]) }).await;
        assert_eq!((target.expiry_policy.as_str(), target.timeout), (policy, timeout));
        let address = target.address.expect("an address");
        owner.leave(link).await;
        assert_eq!(exists(&mut other, &address).await, timeout > 0);
        owner.close().await;
        vanishes(&mut other, &address).await;
    }
}
