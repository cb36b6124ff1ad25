//! What becomes of a message by what its consumer says of it, or does not say.

use crate::support::{Broker, Client, Raw, attach, config, decoded, encoded, flow, text, transfer};
use hopline_broker::{Config, NodeConfig};
use hopline_driver::engine::wire::definitions::ReceiverSettleMode;
use hopline_driver::engine::wire::outcome::{Accepted, Declared, Received, Rejected};
use hopline_driver::engine::wire::performative::{Attach, Detach, Disposition};
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::engine::wire::{
    AmqpError, DeliveryState, Fields, Performative, Role, Symbol, Value, condition,
};

/// What a consumer says of its first delivery.
fn says(settled: bool, state: Option<DeliveryState>) -> Disposition {
    let role = Role::Receiver;
    Disposition { role, first: 0, last: None, settled, state, batchable: false }
}

/// One message in a queue.
async fn one_message(broker: &Broker, queue: &str) -> Client {
    let mut client = Client::open(broker).await;
    let sender = client.sender(queue).await;
    client.send_all(sender, ["m"]).await;
    client
}

/// Attaches to a queue and has its message, unsettled.
fn holding(broker: &Broker, queue: &str, change: impl FnOnce(&mut Attach)) -> Raw {
    let mut raw = Raw::open(broker);
    let mut receiver = attach("receiver", 0, Role::Receiver, queue);
    change(&mut receiver);
    raw.put(&receiver);
    while !matches!(raw.frame(), Some(Performative::Attach(_))) {}
    raw.put(&flow(1));
    while !matches!(raw.frame(), Some(Performative::Transfer(_))) {}
    raw
}

fn source(attach: &mut Attach) -> &mut Source {
    attach.source.as_mut().expect("a source")
}

/// Closes, so that all that was said before is done with.
fn leave(mut raw: Raw) {
    raw.put(&Detach { handle: 0, closed: true, error: None });
    while !matches!(raw.frame(), Some(Performative::Detach(_)) | None) {}
}

/// The delivery-count and first-acquirer of a queue's message, if it is there.
async fn left(client: &mut Client, queue: &str) -> Option<(u32, bool)> {
    let link = client.receiver(queue, 1).await;
    // The answer to a drain says whether there was anything, and waits for nothing.
    let sender = client.sender(queue).await;
    client.send_all(sender, ["last"]).await;
    let delivery = client.receive(link).await;
    client.settle(&delivery, DeliveryState::Accepted).await;
    let message = decoded(&delivery);
    if message.octets().expect("data") == "last" {
        client.detach(link).await;
        return None;
    }
    client.grant(link, 1).await;
    assert_eq!(client.take(link, 1).await, ["last"]);
    client.detach(link).await;
    Some((message.header.delivery_count, message.header.first_acquirer))
}

#[tokio::test]
async fn each_outcome_or_none_does_what_the_standard_says_settled_or_not() {
    let broker = Broker::start(config());
    let received = DeliveryState::Received(Received { section_number: 0, section_offset: 1 });
    let unknown = DeliveryState::Other(Box::new(Value::Described(Box::new((
        Value::Symbol("example:odd:list".into()),
        Value::List(Vec::new()),
    )))));
    let declared = DeliveryState::Declared(Declared { txn_id: vec![1].into() });
    let accepted = || Some(DeliveryState::Accepted);
    let failed = || DeliveryState::modified(true, false);
    let cases = [
        ("accepted", None, accepted(), None),
        ("released", None, Some(DeliveryState::Released), Some((0, false))),
        ("rejected", None, Some(DeliveryState::Rejected(Rejected::default())), None),
        ("failed", None, Some(failed()), Some((1, false))),
        ("not failed", None, Some(DeliveryState::modified(false, false)), Some((0, false))),
        ("nothing", None, None, Some((0, false))),
        ("nothing, by default accepted", accepted(), None, None),
        ("nothing, by default failed", Some(failed()), None, Some((1, false))),
        ("nothing, by default no outcome", Some(received.clone()), None, Some((0, false))),
        ("received", None, Some(received.clone()), Some((0, false))),
        ("received, by default accepted", accepted(), Some(received), None),
        ("an unknown state", None, Some(unknown), Some((0, false))),
        ("declared", None, Some(declared), Some((0, false))),
        (
            "released whatever the default",
            accepted(),
            Some(DeliveryState::Released),
            Some((0, false)),
        ),
    ];
    for (name, default_outcome, state, want) in cases {
        for settled in [true, false] {
            let queue = format!("{name}, {settled}");
            let mut client = one_message(&broker, &queue).await;
            let mut raw = holding(&broker, &queue, |attach| {
                source(attach).default_outcome.clone_from(&default_outcome);
            });
            raw.put(&says(settled, state.clone()));
            let is_outcome = state.as_ref().is_some_and(|state| state.symbol().is_some());
            if !settled && is_outcome {
                let Some(Performative::Disposition(answer)) = raw.frame() else { panic!() };
                assert_eq!((answer.role, answer.first, answer.settled), (Role::Sender, 0, true));
                assert_eq!(answer.state, state, "{queue}");
            }
            leave(raw);
            // What decides nothing is as if it had not been said: the link gives back.
            let want = if settled || is_outcome { want } else { Some((0, false)) };
            assert_eq!(left(&mut client, &queue).await, want, "{queue}");
        }
    }
}

#[tokio::test]
async fn the_first_outcome_is_settled_and_the_last_word() {
    let broker = Broker::start(config());
    let mut client = one_message(&broker, "q").await;
    let mut raw = holding(&broker, "q", |_| {});
    let received = Received { section_number: 0, section_offset: 0 };
    let mut octets = Vec::new();
    for state in [
        DeliveryState::Received(received),
        DeliveryState::Accepted,
        DeliveryState::Released,
        DeliveryState::Rejected(Rejected::default()),
    ] {
        use hopline_driver::engine::wire::performative::Frame;
        says(false, Some(state)).put(&mut octets, 0);
    }
    raw.write(&octets);
    let Some(Performative::Disposition(answer)) = raw.frame() else { panic!("no answer") };
    assert_eq!((answer.state, answer.settled), (Some(DeliveryState::Accepted), true));
    leave(raw);
    assert_eq!(left(&mut client, "q").await, None);
}

#[tokio::test]
async fn a_disposition_behind_the_detach_of_its_link_changes_nothing() {
    let broker = Broker::start(config());
    let mut client = one_message(&broker, "q").await;
    let mut raw = holding(&broker, "q", |_| {});
    raw.put(&Detach { handle: 0, closed: true, error: None });
    raw.put(&says(true, Some(DeliveryState::Accepted)));
    assert!(matches!(raw.frame(), Some(Performative::Detach(Detach { error: None, .. }))));
    // The session goes on.
    raw.put(&attach("receiver", 0, Role::Receiver, "other"));
    assert!(matches!(raw.frame(), Some(Performative::Attach(_))));
    leave(raw);
    assert_eq!(left(&mut client, "q").await, Some((0, false)));
}

#[tokio::test]
async fn a_disposition_of_the_wrong_role_is_about_the_other_direction() {
    let broker = Broker::start(config());
    let mut client = one_message(&broker, "q").await;
    let mut raw = holding(&broker, "q", |_| {});
    raw.put(&Disposition { role: Role::Sender, ..says(true, Some(DeliveryState::Accepted)) });
    leave(raw);
    assert_eq!(left(&mut client, "q").await, Some((0, false)));
}

#[tokio::test]
async fn an_outcome_that_the_source_rules_out_ends_the_link() {
    let broker = Broker::start(config());
    let only = |names: &[&'static str]| names.iter().map(|it| Symbol::from_static(it)).collect();
    let rejected = || DeliveryState::Rejected(Rejected::default());
    let cases: [(&[&str], DeliveryState, bool); 6] = [
        (&[Accepted::SYMBOL], DeliveryState::Accepted, true),
        (&[Accepted::SYMBOL], rejected(), false),
        (&[Accepted::SYMBOL], DeliveryState::Released, false),
        (&["amqp:released:list", Accepted::SYMBOL], DeliveryState::Released, true),
        // None of what is asked for is known here: all that are known may be used.
        (&["example:odd:list"], rejected(), true),
        (&[], rejected(), true),
    ];
    for (outcomes, state, is_allowed) in cases {
        for settled in [true, false] {
            let queue = format!("{outcomes:?} {} {settled}", state.symbol().unwrap_or_default());
            let mut client = one_message(&broker, &queue).await;
            let mut raw = holding(&broker, &queue, |attach| {
                source(attach).outcomes = only(outcomes);
            });
            raw.put(&says(settled, Some(state.clone())));
            if !is_allowed {
                let Some(Performative::Detach(detach)) = raw.frame() else { panic!("{queue}") };
                let error = detach.error.expect("a reason");
                assert_eq!(error.condition, condition::NOT_ALLOWED, "{queue}");
            } else {
                leave(raw);
            }
            let is_there = !is_allowed || state == DeliveryState::Released;
            assert_eq!(left(&mut client, &queue).await.is_some(), is_there, "{queue}");
        }
    }
}

#[tokio::test]
async fn a_message_that_all_consumers_have_barred_waits_for_another_one() {
    let broker = Broker::start(config());
    let mut client = one_message(&broker, "q").await;
    let links = [client.receiver("q", 5).await, client.receiver("q", 5).await];
    for _ in links {
        let (mut delivery, mut link) = (None, links[0]);
        while delivery.is_none() {
            delivery = client.try_receive(link, std::time::Duration::from_millis(20)).await;
            link = if link == links[0] { links[1] } else { links[0] };
        }
        let delivery = delivery.expect("one of them has it");
        client.settle(&delivery, DeliveryState::modified(false, true)).await;
    }
    for link in links {
        client.assert_nothing(link).await;
    }
    // Others get what comes behind it, and a new link gets it too.
    let sender = client.sender("q").await;
    client.send_all(sender, ["next"]).await;
    let third = client.receiver("q", 5).await;
    assert_eq!(client.take(third, 1).await, ["m"]);
}

#[tokio::test]
async fn a_publisher_of_mode_second_hears_the_outcome_and_settles_last() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    let second = ReceiverSettleMode::Second;
    raw.put(&Attach { rcv_settle_mode: second, ..attach("s", 0, Role::Sender, "q") });
    let mut in_force = None;
    loop {
        match raw.frame() {
            Some(Performative::Attach(attach)) => in_force = Some(attach.rcv_settle_mode),
            Some(Performative::Flow(flow)) if flow.handle.is_some() => break,
            other => assert!(other.is_some(), "no credit"),
        }
    }
    assert_eq!(in_force, Some(second));
    let good = encoded(&text("m"));
    let bodies: [(&[u8], bool); 3] = [(&good, true), (b"\xff", false), (&good, true)];
    for (id, (octets, is_good)) in (0..).zip(bodies) {
        raw.write(&transfer(id, false, octets));
        let Some(Performative::Disposition(answer)) = raw.frame() else { panic!("no outcome") };
        assert_eq!((answer.role, answer.first, answer.settled), (Role::Receiver, id, false));
        assert_eq!(matches!(answer.state, Some(DeliveryState::Accepted)), is_good);
        assert_eq!(matches!(answer.state, Some(DeliveryState::Rejected(_))), !is_good);
        let settle = Disposition { role: Role::Sender, ..says(true, answer.state) };
        raw.put(&Disposition { first: id, ..settle });
    }
    leave(raw);
    let mut client = Client::open(&broker).await;
    let receiver = client.receiver("q", 10).await;
    assert_eq!(client.take(receiver, 2).await, ["m", "m"]);
    client.assert_nothing(receiver).await;
}

#[tokio::test]
async fn a_dead_letter_says_from_where_and_why() {
    let nodes = NodeConfig {
        dead_letter: Some("dead".into()),
        max_delivery_count: Some(1),
        ..NodeConfig::default()
    };
    let broker = Broker::start(Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let receiver = client.receiver("q", 10).await;
    let long = "x".repeat(10_000);
    let error = AmqpError::new(Symbol::from_static("example:bad"), long.as_str());
    let rejected = |error| DeliveryState::Rejected(Rejected { error });
    let cases = [
        (rejected(Some(Box::new(error))), "example:bad", Some(&long[..1024])),
        (rejected(None), "rejected", None),
        (DeliveryState::modified(true, false), "max-delivery-count", None),
    ];
    for (state, reason, description) in cases {
        client.post(sender, &text("m"), false).await;
        let delivery = client.receive(receiver).await;
        client.settle(&delivery, state).await;
        let dead = client.receiver("dead", 1).await;
        let letter = client.receive(dead).await;
        client.settle(&letter, DeliveryState::Accepted).await;
        let annotations = decoded(&letter).message_annotations;
        let text = |name| annotations.get(name).and_then(Value::as_str);
        assert_eq!(text("x-opt-dead-letter-from"), Some("q"));
        assert_eq!(text("x-opt-dead-letter-reason"), Some(reason));
        assert_eq!(text("x-opt-dead-letter-description"), description);
        client.detach(dead).await;
    }
    client.post(sender, &crate::support::with_ttl("late", 0), false).await;
    let dead = client.receiver("dead", 10).await;
    loop {
        let delivery = client.receive(dead).await;
        client.settle(&delivery, DeliveryState::Accepted).await;
        if crate::support::body(&delivery) == "late" {
            let annotations = decoded(&delivery).message_annotations;
            let reason = annotations.get("x-opt-dead-letter-reason").and_then(Value::as_str);
            return assert_eq!(reason, Some("expired"));
        }
    }
}

#[tokio::test]
async fn a_message_takes_no_more_annotations_from_consumers_than_the_limit() {
    let broker = Broker::start(config());
    let mut client = one_message(&broker, "q").await;
    let receiver = client.receiver("q", 1).await;
    let added = |round: u32, count: u32| {
        let key = |n| Symbol::from(format!("x-opt-{round}-{n}"));
        let fields = (0..count).map(|n| (key(n), Value::Uint(n))).collect();
        let mut modified = DeliveryState::modified(false, false);
        if let DeliveryState::Modified(modified) = &mut modified {
            modified.message_annotations = Some(Fields(fields));
        }
        modified
    };
    for (round, count, want) in [(0, 32, 32), (1, 1, 32), (2, 1000, 32)] {
        let delivery = client.receive(receiver).await;
        client.settle(&delivery, added(round, count)).await;
        client.grant(receiver, 1).await;
        let delivery = client.receive(receiver).await;
        let annotations = decoded(&delivery).message_annotations;
        assert_eq!(annotations.0.len(), want, "round {round}");
        let newest = format!("x-opt-{round}-{}", count - 1);
        assert_eq!(annotations.get(&newest), Some(&Value::Uint(count - 1)));
        client.settle(&delivery, DeliveryState::Released).await;
        client.grant(receiver, 1).await;
    }
}
