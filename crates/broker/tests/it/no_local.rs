//! The no-local filter: a consumer does not get what came over its own connection.

use crate::support::*;
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::message::{Message, Properties};
use hopline_driver::engine::wire::terminus::{Source, Target};
use hopline_driver::engine::wire::{DeliveryState, Role, Value};

fn no_local(address: &str) -> Source {
    filtered(address, [("no-local", by_name(NO_LOCAL, Vec::new()))])
}

async fn receiver(client: &mut Client, source: Source) -> LinkId {
    let link = client.receiver_from(source).await.expect("attached");
    client.grant(link, 100).await;
    link
}

#[tokio::test]
async fn by_name_and_by_number_list_or_text() {
    let broker = Broker::start(config());
    let (mut own, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let (own_sender, other_sender) = (own.sender("q").await, other.sender("q").await);
    let values = [
        by_name(NO_LOCAL, Vec::new()),
        described(NO_LOCAL_CODE, Vec::new()),
        // As Qpid JMS sends it.
        described(NO_LOCAL_CODE, "NoLocalFilter{}"),
        by_name(NO_LOCAL, vec![Value::from("anything")]),
    ];
    for value in values {
        let source = filtered("q", [("no-local", value)]);
        let asked = source.filter.clone();
        let options = own.options(Role::Receiver, source, Target::default());
        let (link, answer) = own.attach(options).await.expect("attached");
        assert_eq!(answer.source.expect("a source").filter, asked);
        own.grant(link, 10).await;
        own.send_all(own_sender, ["own"]).await;
        other.send_all(other_sender, ["other"]).await;
        assert_eq!(own.take(link, 1).await, ["other"]);
        own.assert_nothing(link).await;
        own.detach(link).await;
    }
    let all = own.receiver("q", 10).await;
    assert_eq!(own.take(all, 4).await, ["own"; 4], "on a queue they stay for others");
}

#[tokio::test]
async fn what_the_relay_took_in_counts_too() {
    let broker = Broker::start(config());
    let (mut own, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let link = receiver(&mut own, no_local("q")).await;
    for (client, name) in [(&mut own, "own"), (&mut other, "other")] {
        let relay = client.sender_to(Target::default()).await.expect("attached");
        let properties = Properties { to: Some("q".into()), ..Properties::default() };
        let message = Message { properties, ..text(name) };
        assert_eq!(client.send(relay, &message).await, DeliveryState::Accepted);
    }
    assert_eq!(own.take(link, 1).await, ["other"]);
    own.assert_nothing(link).await;
}

#[tokio::test]
async fn a_subscription_on_a_topic_leaves_own_ones_out() {
    let broker = Broker::start(config());
    let (mut own, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let (link, all) =
        (receiver(&mut own, no_local("topic/t")).await, own.receiver("topic/t", 10).await);
    let (own_sender, other_sender) = (own.sender("topic/t").await, other.sender("topic/t").await);
    own.send_all(own_sender, ["own"]).await;
    other.send_all(other_sender, ["other"]).await;
    assert_eq!(own.take(link, 1).await, ["other"]);
    own.assert_nothing(link).await;
    assert_eq!(own.take(all, 2).await, ["own", "other"]);
}

#[tokio::test]
async fn together_with_a_selector_both_count() {
    let broker = Broker::start(config());
    let (mut own, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let (own_sender, other_sender) = (own.sender("q").await, other.sender("q").await);
    own.send_numbered(own_sender, 0..4).await;
    other.send_numbered(other_sender, 10..14).await;
    let both = [
        ("no-local", described(NO_LOCAL_CODE, Vec::new())),
        ("selector", by_name(SELECTOR, "n IN (1, 2, 12)")),
    ];
    let link = receiver(&mut own, filtered("q", both)).await;
    assert_eq!(own.take(link, 1).await, ["12"]);
    own.assert_nothing(link).await;
}

#[tokio::test]
async fn a_browser_does_not_see_own_ones() {
    let broker = Broker::start(config());
    let (mut own, mut other) = (Client::open(&broker).await, Client::open(&broker).await);
    let (own_sender, other_sender) = (own.sender("q").await, other.sender("q").await);
    own.send_all(own_sender, ["own"]).await;
    other.send_all(other_sender, ["other"]).await;
    let link = receiver(&mut own, browsing(no_local("q"))).await;
    assert_eq!(own.take(link, 1).await, ["other"]);
    own.assert_nothing(link).await;
}

/// The connection is what counts, not the container-id: nobody can tell whose it is.
#[tokio::test]
async fn a_connection_anew_gets_what_the_former_one_sent() {
    let broker = Broker::start(config());
    let mut first = Client::open(&broker).await;
    let sender = first.sender("q").await;
    first.send_all(sender, ["before"]).await;
    let link = receiver(&mut first, no_local("q")).await;
    first.assert_nothing(link).await;
    first.close().await;
    let mut second = Client::open(&broker).await;
    let link = receiver(&mut second, no_local("q")).await;
    assert_eq!(second.take(link, 1).await, ["before"]);
}
