//! Selectors: which messages a consumer gets, and what becomes of the others.

use crate::support::*;
use hopline_broker::NodeConfig;
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::outcome::Modified;
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{DeliveryState, Fields, Role, Symbol, Value};
use std::time::Duration;

async fn receiver(client: &mut Client, source: Source, credit: u32) -> LinkId {
    let link = client.receiver_from(source).await.expect("attached");
    client.grant(link, credit).await;
    link
}

#[tokio::test]
async fn only_what_matches_comes_and_the_rest_stays_and_takes_no_credit() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..6).await;
    let even = receiver(&mut client, selecting("q", "n = 0 OR n = 2 OR n = 4"), 2).await;
    assert_eq!(client.take(even, 2).await, ["0", "2"]);
    client.assert_nothing(even).await;
    client.grant(even, 10).await;
    assert_eq!(client.take(even, 1).await, ["4"]);
    client.assert_nothing(even).await;
    let rest = client.receiver("q", 10).await;
    assert_eq!(client.take(rest, 3).await, ["1", "3", "5"]);
    // What comes from now on is chosen from at once.
    client.send_numbered(sender, [2]).await;
    assert_eq!(client.take(even, 1).await, ["2"]);
    client.assert_nothing(rest).await;
}

#[tokio::test]
async fn by_name_and_by_number_and_both_at_once() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..10).await;
    let filters = [
        vec![("a", by_name(SELECTOR, "n = 1"))],
        vec![("jms-selector", described(SELECTOR_CODE, "n = 2"))],
        vec![("a", by_name(SELECTOR, "n > 3")), ("b", described(SELECTOR_CODE, "n < 5"))],
    ];
    for (filters, expected) in filters.into_iter().zip(["1", "2", "4"]) {
        let source = filtered("q", filters);
        let asked = source.filter.clone();
        let options = client.options(Role::Receiver, source, Target::default());
        let (link, answer) = client.attach(options).await.expect("attached");
        assert_eq!(answer.source.expect("a source").filter, asked, "in force as it was sent");
        client.grant(link, 10).await;
        assert_eq!(client.take(link, 1).await, [expected]);
        client.assert_nothing(link).await;
        client.detach(link).await;
    }
}

#[tokio::test]
async fn unknown_filters_are_left_out_and_not_applied() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..2).await;
    let known = by_name(SELECTOR, "n = 1");
    let source = filtered(
        "q",
        [
            ("xpath", by_name("apache.org:xpath-filter:string", "false()")),
            ("other", described(0x1234_u64, "x")),
            ("properties", by_name("amqp:properties-filter", Value::Map(Vec::new()))),
            ("null", Value::Null),
            ("sel", known.clone()),
        ],
    );
    let options = client.options(Role::Receiver, source, Target::default());
    let (link, answer) = client.attach(options).await.expect("attached");
    let in_force = Fields(vec![(Symbol::from_static("sel"), known)]);
    assert_eq!(answer.source.expect("a source").filter, Some(in_force));
    client.grant(link, 10).await;
    assert_eq!(client.take(link, 1).await, ["1"]);
    client.assert_nothing(link).await;
    let source = filtered("q", [("xpath", by_name("apache.org:xpath-filter:string", "false()"))]);
    let options = client.options(Role::Receiver, source, Target::default());
    let (link, answer) = client.attach(options).await.expect("attached");
    assert_eq!(answer.source.expect("a source").filter, None);
    client.grant(link, 10).await;
    assert_eq!(client.take(link, 1).await, ["0"]);
}

#[tokio::test]
async fn what_is_no_filter_is_refused_and_makes_no_node() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let wrong = [
        by_name(SELECTOR, "n = "),
        by_name(SELECTOR, "n = 'x"),
        by_name(SELECTOR, ""),
        by_name(SELECTOR, format!("n = '{}'", "x".repeat(17_000))),
        by_name(SELECTOR, 5_u32),
        by_name(SELECTOR, Symbol::from_static("n = 1")),
        described(SELECTOR_CODE, Value::Null),
        described(SELECTOR_CODE, Value::List(vec!["n = 1".into()])),
        by_name(NO_LOCAL, 5_u32),
        described(NO_LOCAL_CODE, true),
        Value::from("n = 1"),
        Value::List(Vec::new()),
    ];
    for value in wrong {
        let source = filtered("q", [("wrong", value.clone())]);
        let error = client.receiver_from(source).await.expect_err("refused");
        assert_eq!(error.condition, "amqp:invalid-field", "{value:?}: {error}");
    }
    let many = (0..9).map(|_| ("sel", by_name(SELECTOR, "n = 1")));
    let error = client.receiver_from(filtered("q", many)).await.expect_err("refused");
    assert!(error.to_string().contains("more than 8 filters"), "{error}");
    let eight = (0..8).map(|_| ("sel", by_name(SELECTOR, "n = 1")));
    client.receiver_from(filtered("q", eight)).await.expect("attached");
    let source = filtered("topic/t", [("wrong", by_name(SELECTOR, "n ="))]);
    client.receiver_from(source).await.expect_err("refused");
    let sender = client.sender("topic/t").await;
    client.send_numbered(sender, [1]).await;
}

#[tokio::test]
async fn a_match_far_behind_is_found_while_others_are_served() {
    let broker = Broker::start(config());
    let (mut client, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..12_000).await;
    let last = receiver(&mut client, selecting("q", "n >= 11999 OR n = 5000"), 1).await;
    let (to, from) = (other.sender("p").await, other.receiver("p", 10).await);
    other.send_all(to, ["quick"]).await;
    assert_eq!(other.take(from, 1).await, ["quick"]);
    assert_eq!(client.take(last, 1).await, ["5000"]);
    client.grant(last, 10).await;
    assert_eq!(client.take(last, 1).await, ["11999"]);
    client.assert_nothing(last).await;
    client.send_numbered(sender, [1, 12_000]).await;
    assert_eq!(client.take(last, 1).await, ["12000"]);
}

#[tokio::test]
async fn drain_is_answered_after_all_were_looked_at() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..6_000).await;
    for source in [selecting("q", "n = 5999 OR n = 0"), browsing(selecting("q", "n = 5998"))] {
        let expected = if source.distribution_mode.is_some() { 1 } else { 2 };
        let link = client.receiver_from(source).await.expect("attached");
        client.grant_only(link, 10);
        client.drain(link).await;
        for _ in 0..expected {
            let delivery = client.try_receive(link, Duration::ZERO).await;
            let delivery = delivery.expect("it came before the drain was answered");
            client.settle(&delivery, DeliveryState::Accepted).await;
        }
        assert!(client.try_receive(link, Duration::ZERO).await.is_none());
        // New credit is good for what comes later.
        client.grant(link, 1).await;
        client.assert_nothing(link).await;
    }
}

#[tokio::test]
async fn a_browser_sees_what_matches_and_leaves_it() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..4).await;
    for _ in 0..2 {
        let browser = receiver(&mut client, browsing(selecting("q", "n > 1")), 10).await;
        for expected in ["2", "3"] {
            let delivery = client.receive(browser).await;
            assert_eq!(body(&delivery), expected);
            assert_eq!(decoded(&delivery).header.delivery_count, 0);
            client.settle(&delivery, DeliveryState::Accepted).await;
        }
        client.assert_nothing(browser).await;
        client.detach(browser).await;
    }
    let all = client.receiver("q", 10).await;
    let delivery = client.receive(all).await;
    assert_eq!((body(&delivery).as_str(), decoded(&delivery).header.delivery_count), ("0", 0));
    assert_eq!(client.take(all, 3).await, ["1", "2", "3"]);
}

#[tokio::test]
async fn each_gets_its_own_and_equals_share() {
    let broker = Broker::start(config());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let low = receiver(&mut one, selecting("q", "n < 10"), 100).await;
    let high = receiver(&mut one, selecting("q", "n >= 10"), 100).await;
    let also_high = receiver(&mut two, selecting("q", "n >= 10"), 100).await;
    let sender = one.sender("q").await;
    one.send_numbered(sender, 0..30).await;
    let lows: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(one.take(low, 10).await, lows);
    let mut highs = one.take(high, 10).await;
    highs.extend(two.take(also_high, 10).await);
    highs.sort();
    assert_eq!(highs, (10..30).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_comes_back_is_offered_again_in_its_place() {
    let broker = Broker::start(config());
    let (mut one, mut two) = (Client::open(&broker).await, Client::open(&broker).await);
    let sender = one.sender("q").await;
    one.send_numbered(sender, 0..8).await;
    let first = receiver(&mut one, selecting("q", "n > 0"), 4).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(one.receive(first).await);
    }
    // It has passed the places of those that come back.
    let second = receiver(&mut two, selecting("q", "n <> 6"), 2).await;
    assert_eq!(two.take(second, 2).await, ["0", "5"]);
    for at in [3, 0, 1] {
        one.settle(&held[at], DeliveryState::Released).await;
    }
    one.idle(50).await;
    two.grant(second, 10).await;
    assert_eq!(two.take(second, 4).await, ["1", "2", "4", "7"]);
    let failed = Modified { delivery_failed: Some(true), ..Modified::default() };
    one.settle(&held[2], DeliveryState::Modified(Box::new(failed))).await;
    let again = two.receive(second).await;
    assert_eq!((body(&again).as_str(), decoded(&again).header.delivery_count), ("3", 1));
    // It can be chosen by what has become of it.
    two.settle(&again, DeliveryState::Released).await;
    drop(two);
    let source = selecting("q", "amqp.delivery_count > 0 AND NOT amqp.first_acquirer");
    let unlucky = receiver(&mut one, source, 10).await;
    assert_eq!(one.take(unlucky, 1).await, ["3"]);
    one.grant(first, 10).await;
    assert_eq!(one.take(first, 1).await, ["6"]);
}

#[tokio::test]
async fn whoever_is_barred_from_many_finds_what_is_behind() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_numbered(sender, 0..1_500).await;
    let picky = client.receiver("q", 3_000).await;
    let not_here = Modified { undeliverable_here: Some(true), ..Modified::default() };
    for _ in 0..1_500 {
        let delivery = client.receive(picky).await;
        client.settle(&delivery, DeliveryState::Modified(Box::new(not_here.clone()))).await;
    }
    client.assert_nothing(picky).await;
    client.send_numbered(sender, [1_500]).await;
    assert_eq!(client.take(picky, 1).await, ["1500"]);
    let other = client.receiver("q", 2_000).await;
    assert_eq!(client.take(other, 2).await, ["0", "1"]);
}

#[tokio::test]
async fn what_no_subscriber_wants_does_not_fill_its_queue() {
    let nodes = NodeConfig { max_messages: 10, ..NodeConfig::default() };
    let broker = Broker::start(hopline_broker::Config { nodes, ..config() });
    let mut client = Client::open(&broker).await;
    let source = selecting("topic/t", "n >= 100");
    let asked = source.filter.clone();
    let options = client.options(Role::Receiver, source, Target::default());
    let (link, answer) = client.attach(options).await.expect("attached");
    assert_eq!(answer.source.expect("a source").filter, asked);
    let sender = client.sender("topic/t").await;
    for n in 0..103 {
        assert_eq!(client.send(sender, &numbered(n)).await, DeliveryState::Accepted);
    }
    client.grant(link, 10).await;
    assert_eq!(client.take(link, 3).await, ["100", "101", "102"]);
    client.assert_nothing(link).await;
}

#[tokio::test]
async fn a_dynamic_source_may_select() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let source = Source { address: None, dynamic: true, ..selecting("", "n = 1") };
    let options = client.options(Role::Receiver, source, Target::default());
    let (link, answer) = client.attach(options).await.expect("attached");
    let source = answer.source.expect("a source");
    assert!(source.filter.is_some());
    client.grant(link, 10).await;
    let sender = client.sender(&source.address.expect("an address")).await;
    client.send_numbered(sender, 0..3).await;
    assert_eq!(client.take(link, 1).await, ["1"]);
    client.assert_nothing(link).await;
}

#[tokio::test]
async fn a_costly_selector_does_not_hold_others_up() {
    let broker = Broker::start(config());
    let (mut client, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let sender = client.sender("q").await;
    let mut message = text("long");
    message.application_properties = vec![("a".into(), Value::from("a".repeat(60_000)))];
    for _ in 0..20 {
        client.post(sender, &message, false).await;
    }
    let costly = format!("a LIKE '%{}_b%' OR a LIKE '%{}'", "a".repeat(4_000), "a_%".repeat(500));
    let link = receiver(&mut client, selecting("q", &costly), 10).await;
    let (to, from) = (other.sender("p").await, other.receiver("p", 10).await);
    other.send_all(to, ["quick"]).await;
    assert_eq!(other.take(from, 1).await, ["quick"]);
    client.assert_nothing(link).await;
    let patient = receiver(&mut client, selecting("q", "a LIKE '%a%a%a%a%a%a%a%a%a%a%'"), 1).await;
    assert_eq!(client.take(patient, 1).await, ["long"]);
}
