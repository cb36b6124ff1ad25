//! `hopline-publish` and `hopline-subscribe` work against brokers that are not ours: the example
//! broker of Qpid Proton, and RabbitMQ. Timelines pass through them whole.

use std::sync::OnceLock;

use hopline_tests::{Client, ForeignBroker, HoplineBroker, PATIENCE, Process, Program};
use hopline_tests::{assert_ids_differ, assert_intact, publish, subscribe};

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

/// A configuration with these forwards, as a file.
fn configured(forwards: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broker.toml");
    let forward = |(from, to)| format!("[[forward]]\nfrom = {from:?}\nto = {to:?}\n");
    let text: String = forwards.iter().copied().map(forward).collect();
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("a path in UTF-8").to_owned();
    (folder, file)
}

/// One broker of ours forwards to the other make, another one takes from there. The report tells
/// what lies between them from a hop, and knows what it took.
fn forwards_to_and_from(foreign: &ForeignBroker, address: &str) {
    let there = foreign.url(address);
    let (_one, out) = configured(&[("q", &there)]);
    let (_two, back) = configured(&[(&there, "q")]);
    let first = HoplineBroker::start(&["--config", &out, "--name", "first"]);
    let second = HoplineBroker::start(&["--config", &back, "--name", "second"]);
    publish(&first.url("q"), &["--count", "300", "--size", "100"]);
    let timelines = subscribe(&second.url("q"), 300, &[]).timelines();
    assert_eq!(timelines.len(), 300);
    timelines.iter().for_each(|timeline| assert_intact(timeline, 3, 2));
    assert_ids_differ(&timelines);
}

/// A broker that does not stamp is told by the report: it is no hop.
fn is_a_gap_in_the_report(url: &str) {
    publish(url, &["--count", "50", "--size", "100"]);
    let records = subscribe(url, 50, &[]).finished.stdout;
    let mut report = Process::start(&mut Program::Report.command());
    report.write(records.as_bytes());
    let said = report.finish(PATIENCE).success().stdout;
    assert!(said.contains("gap         publisher -> unknown node -> "), "{said}");
    assert!(!said.contains("\nhop "), "{said}");
}

#[test]
fn proton_is_forwarded_to_and_from_and_is_a_gap() {
    let proton = ForeignBroker::proton();
    forwards_to_and_from(&proton, "forwarded");
    is_a_gap_in_the_report(&proton.url("gap"));
}

#[test]
fn rabbitmq_is_forwarded_to_and_from_and_is_a_gap() {
    forwards_to_and_from(rabbitmq(), "/queue/forwarded");
    is_a_gap_in_the_report(&rabbitmq().url("/queue/gap"));
}
