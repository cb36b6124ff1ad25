//! `hopline-publish` and `hopline-subscribe` work against brokers that are not ours: the example
//! broker of Qpid Proton, and RabbitMQ. Timelines pass through them whole.

use std::sync::OnceLock;

use hopline_tests::{Client, ForeignBroker, assert_ids_differ, assert_intact, publish, subscribe};

/// RabbitMQ takes seconds to start, so the tests share one; it stops when they have all ended.
fn rabbitmq() -> &'static ForeignBroker {
    static RABBITMQ: OnceLock<ForeignBroker> = OnceLock::new();
    RABBITMQ.get_or_init(ForeignBroker::rabbitmq)
}

/// A broker that does not stamp leaves one hop, from the publisher to the subscriber.
fn carries_timelines_whole(url: &str, large: &str) {
    let variants: [(usize, &[&str]); 4] = [
        (100, &["--size", "100"]),
        (100, &["--size", "100", "--settled"]),
        (20, &["--rate", "200"]),
        (3, &["--size", large]),
    ];
    for (count, options) in variants {
        let count_text = count.to_string();
        publish(url, &[&["--count", count_text.as_str()], options].concat());
        let timelines = subscribe(url, count, &[]).timelines();
        assert_eq!(timelines.len(), count, "{options:?}");
        timelines.iter().for_each(|timeline| assert_intact(timeline, 1, 0));
        assert_ids_differ(&timelines);
    }
}

/// No node stamped that a message was received, so there is no hop, but all that the publisher
/// knows is there.
fn shows_the_publishers_stamps_to(receiver: Client, broker: &ForeignBroker, address: &str) {
    publish(&broker.url(address), &["--count", "20", "--size", "100"]);
    for message in receiver.receive(broker.host(), address, 20) {
        assert_intact(&message.timeline().expect("a timeline"), 0, 0);
    }
}

/// What other clients send carries no timeline, and is received all the same.
fn receives_what_has_no_timeline(sender: Client, broker: &ForeignBroker, address: &str) {
    sender.send(broker.host(), address, 20, &["--size", "100"]);
    let subscribed = subscribe(&broker.url(address), 20, &[]);
    assert!(subscribed.timelines().iter().all(|timeline| timeline.hops().count() == 0));
}

#[test]
fn proton_carries_timelines_whole() {
    // In one frame: Proton's example broker writes each part of a message that comes in several
    // batches to the start of its buffer.
    carries_timelines_whole(&ForeignBroker::proton().url("q"), "30000");
}

#[test]
fn proton_between_hopline_and_every_client() {
    let broker = ForeignBroker::proton();
    for client in Client::ALL {
        shows_the_publishers_stamps_to(client, &broker, "from-hopline");
        receives_what_has_no_timeline(client, &broker, "to-hopline");
    }
}

#[test]
fn rabbitmq_carries_timelines_whole() {
    carries_timelines_whole(&rabbitmq().url("/queue/whole"), "300000");
}

#[test]
fn rabbitmq_takes_user_and_password() {
    let url = format!("amqp://guest:guest@{}//queue/plain", rabbitmq().host());
    carries_timelines_whole(&url, "300000");
}

#[test]
fn rabbitmq_between_hopline_and_other_clients() {
    // RabbitMQ answers a closing detach with one that does not close, which fe2o3-amqp refuses.
    for client in [Client::Proton, Client::Rhea] {
        shows_the_publishers_stamps_to(client, rabbitmq(), "/queue/from-hopline");
        receives_what_has_no_timeline(client, rabbitmq(), "/queue/to-hopline");
    }
}
