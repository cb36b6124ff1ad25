//! What peers ask for when they attach, and what they are told is in force.

use crate::support::{Broker, Client, Raw, attach, begin, config, detach, text};
use hopline_broker::{Config, Limits, NodeConfig};
use hopline_driver::engine::AttachOptions;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::outcome::Received;
use hopline_driver::engine::wire::performative::{Attach, Begin, Performative};
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{DeliveryState, Fields, Role, Symbol, Value};

fn symbols<const N: usize>(names: [&'static str; N]) -> Vec<Symbol> {
    names.map(Symbol::from_static).to_vec()
}

async fn source_in_force(client: &mut Client, source: Source) -> Source {
    let options = client.options(Role::Receiver, source, Target::default());
    let (_, answer) = client.attach(options).await.expect("attached");
    *answer.source.expect("one")
}

#[test]
fn an_answer_has_the_name_the_other_role_and_both_termini() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    for (handle, role) in [(0, Role::Sender), (1, Role::Receiver)] {
        let asked = attach("l", handle, role, "q");
        raw.put(&asked);
        let answer = raw.attached();
        assert_eq!((answer.name.as_str(), answer.role), ("l", role.peer()));
        assert_eq!(answer.initial_delivery_count.is_some(), role == Role::Receiver);
        assert_eq!(answer.source.expect("one").address.as_deref(), Some("q"));
        let Some(TargetKind::Target(target)) = answer.target.map(|target| *target) else {
            panic!("no target");
        };
        assert_eq!(target.address.as_deref(), Some("q"));
    }
}

/// The standard makes the count mandatory; clients that leave it out start at 0.
#[test]
fn a_sender_without_a_count_counts_from_0() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.put(&Attach { initial_delivery_count: None, ..attach("l", 0, Role::Sender, "q") });
    loop {
        if let Some(Performative::Flow(flow)) = raw.frame() {
            assert_eq!(flow.delivery_count, Some(0));
            break;
        }
    }
}

#[test]
fn a_refusal_is_an_attach_without_terminus_and_a_closing_detach() {
    let nodes = NodeConfig {
        auto_create: false,
        queues: vec!["q".into()],
        deny: vec!["secret".into()],
        ..NodeConfig::default()
    };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut raw = Raw::open(&broker);
    let cases = [("none", "amqp:not-found"), ("secret", "amqp:unauthorized-access")];
    for (address, condition) in cases {
        for role in [Role::Sender, Role::Receiver] {
            raw.put(&attach("l", 0, role, address));
            let answer = raw.attached();
            assert!(answer.source.is_none() && answer.target.is_none());
            assert_eq!(raw.detached(), (answer.handle, true, Some(condition.into())));
            raw.put(&detach(0, true));
        }
    }
    // Without the terminus that counts: refused alike.
    let mut receiver = attach("l", 0, Role::Receiver, "q");
    receiver.source = None;
    raw.put(&receiver);
    assert_eq!(raw.detached().2.as_deref(), Some("amqp:not-found"));
    raw.put(&detach(0, true));
    let mut sender = attach("l", 0, Role::Sender, "q");
    sender.target = None;
    raw.put(&sender);
    assert_eq!(raw.detached().2.as_deref(), Some("amqp:invalid-field"));
    raw.put(&detach(0, true));
    // The other one may be left out.
    sender = attach("l", 0, Role::Sender, "q");
    sender.source = None;
    raw.put(&sender);
    assert!(raw.attached().target.is_some());
}

#[tokio::test]
async fn settle_modes_are_answered_as_they_are_in_force() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    for snd_settle_mode in
        [SenderSettleMode::Unsettled, SenderSettleMode::Settled, SenderSettleMode::Mixed]
    {
        for rcv_settle_mode in [ReceiverSettleMode::First, ReceiverSettleMode::Second] {
            for role in [Role::Sender, Role::Receiver] {
                let options = client.options(role, Source::at("q"), Target::at("p"));
                let options = AttachOptions { snd_settle_mode, rcv_settle_mode, ..options };
                let (link, answer) = client.attach(options).await.expect("attached");
                assert_eq!(answer.snd_settle_mode, snd_settle_mode);
                assert_eq!(answer.rcv_settle_mode, rcv_settle_mode);
                if role == Role::Receiver {
                    client.send_all(sender, ["m"]).await;
                    client.grant(link, 1).await;
                    let delivery = client.receive(link).await;
                    assert_eq!(delivery.settled, snd_settle_mode == SenderSettleMode::Settled);
                    if !delivery.settled {
                        client.settle(&delivery, DeliveryState::Accepted).await;
                        client.idle(10).await;
                    }
                }
                client.detach(link).await;
            }
        }
    }
}

#[tokio::test]
async fn the_outcomes_that_there_are_hold() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let all =
        ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];
    let cases = [
        (symbols([]), symbols(all)),
        (symbols(["x:eaten"]), symbols(all)),
        (symbols(["x:eaten", "amqp:accepted:list"]), symbols(["amqp:accepted:list"])),
        (symbols(all), symbols(all)),
    ];
    for (outcomes, in_force) in cases {
        let source = Source { outcomes, ..Source::at("q") };
        assert_eq!(source_in_force(&mut client, source).await.outcomes, in_force);
    }
    // What is no outcome can't be the default: what is settled without one is not lost.
    let default_outcome =
        Some(DeliveryState::Received(Received { section_number: 0, section_offset: 0 }));
    let source = Source { default_outcome, ..Source::at("other") };
    assert_eq!(source_in_force(&mut client, source).await.default_outcome, None);
}

#[tokio::test]
async fn distribution_modes_that_are_unknown_are_answered_by_move() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let cases = [
        ("q", None, "move"),
        ("q", Some("move"), "move"),
        ("q", Some("copy"), "copy"),
        ("q", Some("throw"), "move"),
        // Each subscriber of a topic has its own copies, and takes them.
        ("topic/t", Some("copy"), "move"),
    ];
    for (address, mode, in_force) in cases {
        let distribution_mode = mode.map(Symbol::from_static);
        let source = Source { distribution_mode, ..Source::at(address) };
        let found = source_in_force(&mut client, source).await.distribution_mode;
        assert_eq!(found, Some(Symbol::from_static(in_force)), "{address} {mode:?}");
    }
}

#[tokio::test]
async fn durability_and_expiry_are_answered_by_what_is_in_force() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    for (policy, in_force) in [
        ("link-detach", "link-detach"),
        ("session-end", "session-end"),
        ("connection-close", "connection-close"),
        ("never", "never"),
        ("whenever", "session-end"),
    ] {
        for durable in [0, 1, 2, 3, u32::MAX] {
            let expiry_policy = Symbol::from_static(policy);
            let source = Source { durable, expiry_policy, timeout: 3, ..Source::at("q") };
            let found = source_in_force(&mut client, source.clone()).await;
            assert_eq!((found.durable, found.timeout), (0, 0), "a queue keeps nothing of a link");
            assert_eq!(found.expiry_policy.as_str(), in_force);
            let source = Source { address: Some("topic/t".into()), ..source };
            let found = source_in_force(&mut client, source).await;
            assert_eq!(found.durable, 0);
            assert_eq!(found.timeout, if policy == "never" { 0 } else { 3 });
        }
    }
}

#[tokio::test]
async fn capabilities_and_properties_that_nobody_knows_are_left_out() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let asked = symbols(["x:unknown", "queue", "topic", "temporary-topic", "shared", "global"]);
    for (address, in_force) in [("q", symbols(["queue"])), ("topic/t", symbols(["topic"]))] {
        let capabilities = match address {
            "q" => symbols(["x:unknown", "queue", "shared", "global"]),
            _ => symbols(["x:unknown", "topic", "queue"]),
        };
        let source = Source { capabilities, ..Source::at(address) };
        assert_eq!(source_in_force(&mut client, source).await.capabilities, in_force);
    }
    let target = Target { capabilities: asked, ..Target::at("topic/u") };
    // There is no such temporary topic.
    let error = client.sender_to(target).await.expect_err("refused");
    assert_eq!(error.condition, *"amqp:not-found");
    let options = client.options(Role::Receiver, Source::at("q"), Target::default());
    let properties = Fields(vec![(Symbol::from_static("x:unknown"), Value::Uint(1))]);
    let options =
        AttachOptions { properties, desired_capabilities: symbols(["x:unknown"]), ..options };
    let (_, answer) = client.attach(options).await.expect("attached");
    assert!(answer.offered_capabilities.is_empty() && answer.properties.is_none());
}

#[tokio::test]
async fn a_capability_chooses_between_queue_and_topic() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let topic = || Source { capabilities: symbols(["topic"]), ..Source::at("news") };
    let (a, b) = (
        client.receiver_from(topic()).await.expect("attached"),
        client.receiver_from(topic()).await.expect("attached"),
    );
    let queue = Source { capabilities: symbols(["queue"]), ..Source::at("jobs") };
    let (c, d) = (
        client.receiver_from(queue.clone()).await.expect("attached"),
        client.receiver_from(queue).await.expect("attached"),
    );
    for link in [a, b, c, d] {
        client.grant(link, 10).await;
    }
    let (news, jobs) = (client.sender("news").await, client.sender("jobs").await);
    client.send_all(news, ["n"]).await;
    client.send_all(jobs, ["0", "1"]).await;
    assert_eq!(
        (client.take(a, 1).await, client.take(b, 1).await),
        (vec!["n".into()], vec!["n".into()])
    );
    let mut taken = [client.take(c, 1).await, client.take(d, 1).await].concat();
    taken.sort();
    assert_eq!(taken, ["0", "1"]);
}

#[tokio::test]
async fn message_sizes_are_limited_by_either_end_or_by_none() {
    let limits = Limits { max_message_size: 10_000, ..Limits::default() };
    let broker = Broker::start(Config { limits, ..config() });
    let mut client = Client::open(&broker).await;
    let options = client.options(Role::Sender, Source::default(), Target::at("q"));
    let (sender, answer) = client.attach(options).await.expect("attached");
    assert_eq!(answer.max_message_size, 10_000);
    let large = "l".repeat(9_000);
    assert_eq!(client.send(sender, &text(&*large)).await, DeliveryState::Accepted);
    // A receiver without a limit takes all.
    let mut raw = Raw::open(&broker);
    raw.put(&Attach { max_message_size: 0, ..attach("r", 0, Role::Receiver, "q") });
    raw.attached();
    raw.put(&crate::support::flow(1));
    while !matches!(raw.frame(), Some(Performative::Transfer(_))) {}
}

#[test]
fn a_handle_above_the_limit_closes_the_connection() {
    let limits = Limits { handle_max: 3, ..Limits::default() };
    let broker = Broker::start(Config { limits, ..config() });
    let mut raw = Raw::connect(&broker);
    raw.write(crate::support::AMQP);
    raw.put(&crate::support::open("c"));
    raw.put(&Begin { handle_max: 10, ..begin() });
    raw.skip_header();
    loop {
        if let Some(Performative::Begin(begin)) = raw.frame() {
            assert_eq!(begin.handle_max, 3);
            break;
        }
    }
    for handle in 0..4 {
        raw.put(&attach(&handle.to_string(), handle, Role::Sender, "q"));
        assert!(raw.attached().target.is_some());
    }
    raw.put(&attach("4", 4, Role::Sender, "q"));
    assert_eq!(raw.closed().as_deref(), Some("amqp:connection:framing-error"));
}
