//! Clients on Qpid Proton, rhea and fe2o3-amqp send to and receive from `hopline-broker`, from
//! each other and from Hopline's own programs.

use hopline_tests::{
    Client, HoplineBroker, Program, assert_ids_differ, assert_intact, exchange, publish, subscribe,
};

/// More octets than a frame holds, so that the transfer takes several.
const LARGE: usize = 300_000;

fn exchanges_with_every_client(sender: Client) {
    let broker = HoplineBroker::start(&[]);
    for receiver in Client::ALL {
        let address = format!("to-{}", receiver.name());
        exchange(sender, receiver, broker.host(), &address, (200, 100), &[]);
        exchange(sender, receiver, broker.host(), &address, (200, 100), &["--settled"]);
        exchange(sender, receiver, broker.host(), &address, (3, LARGE), &["--durable"]);
        exchange(sender, receiver, broker.host(), &address, (1, 0), &[]);
    }
    assert!(broker.terminate().status.success());
}

#[test]
fn proton_sends_to_every_client() {
    exchanges_with_every_client(Client::Proton);
}

#[test]
fn rhea_sends_to_every_client() {
    exchanges_with_every_client(Client::Rhea);
}

#[test]
fn fe2o3_sends_to_every_client() {
    exchanges_with_every_client(Client::Fe2o3);
}

/// From the publisher to the broker is one hop, through the broker one stay; the receiver, which
/// knows nothing of timelines, sees both.
fn reads_the_timeline_of_hopline_publish(receiver: Client) {
    let broker = HoplineBroker::start(&[]);
    for (options, count) in [(&["--size", "100"][..], 50), (&["--size", "300000"], 3)] {
        let count_text = count.to_string();
        publish(&broker.url("q"), &[&["--count", count_text.as_str()], options].concat());
        let received = receiver.receive(broker.host(), "q", count);
        let timelines: Vec<_> =
            received.iter().map(|it| it.timeline().expect("a timeline")).collect();
        timelines.iter().for_each(|timeline| assert_intact(timeline, 1, 1));
        assert_ids_differ(&timelines);
    }
}

#[test]
fn proton_reads_the_timeline_of_hopline_publish() {
    reads_the_timeline_of_hopline_publish(Client::Proton);
}

#[test]
fn rhea_reads_the_timeline_of_hopline_publish() {
    reads_the_timeline_of_hopline_publish(Client::Rhea);
}

#[test]
fn fe2o3_reads_the_timeline_of_hopline_publish() {
    reads_the_timeline_of_hopline_publish(Client::Fe2o3);
}

#[test]
fn hopline_subscribe_receives_from_every_client() {
    let broker = HoplineBroker::start(&[]);
    for sender in Client::ALL {
        sender.send(broker.host(), sender.name(), 50, &["--size", "100"]);
        sender.send(broker.host(), sender.name(), 2, &["--size", "300000", "--durable"]);
        let subscribed = subscribe(&broker.url(sender.name()), 52, &[]);
        // Where the broker begins a timeline, it holds the hop from the broker on.
        subscribed.timelines().iter().for_each(|timeline| {
            assert_eq!(timeline.hops().count(), 1, "{timeline:?}");
        });
    }
}

/// The shortest chain that is all Hopline's, for comparison with the mixed ones.
#[test]
fn hopline_subscribe_receives_from_hopline_publish() {
    let broker = HoplineBroker::start(&[]);
    for options in [&[][..], &["--settled"]] {
        publish(&broker.url("q"), &[&["--count", "200", "--size", "100"], options].concat());
        let timelines = subscribe(&broker.url("q"), 200, &[]).timelines();
        assert_eq!(timelines.len(), 200);
        timelines.iter().for_each(|timeline| assert_intact(timeline, 2, 1));
        assert_ids_differ(&timelines);
    }
}

/// Both ask by the filter's number, and Proton and rhea name it differently.
#[test]
fn proton_and_rhea_select_what_fe2o3_sent() {
    let broker = HoplineBroker::start(&[]);
    Client::Fe2o3.send(broker.host(), "q", 10, &[]);
    let numbers = |received: Vec<hopline_tests::Received>| {
        received.iter().filter_map(|message| message.n).collect::<Vec<_>>()
    };
    let ids = "JMSMessageID IN ('ID:AMQP_NO_PREFIX:fe2o3-2', 'ID:AMQP_NO_PREFIX:fe2o3-5')";
    assert_eq!(numbers(Client::Proton.select(broker.host(), "q", 2, ids)), [2, 5]);
    assert_eq!(numbers(Client::Rhea.select(broker.host(), "q", 2, "n BETWEEN 7 AND 8")), [7, 8]);
    let rest =
        Client::Proton.select(broker.host(), "q", 3, "amqp.message_id LIKE 'fe2o3-_' AND n < 4");
    assert_eq!(numbers(rest), [0, 1, 3]);
    assert_eq!(numbers(Client::Rhea.receive(broker.host(), "q", 3)), [4, 6, 9]);
    assert!(broker.terminate().status.success());
}

#[test]
fn hopline_report_counts_what_hopline_subscribe_wrote() {
    let broker = HoplineBroker::start(&[]);
    publish(&broker.url("q"), &["--count", "100", "--rate", "1000"]);
    let lines = subscribe(&broker.url("q"), 100, &[]).finished.stdout;
    let mut report = hopline_tests::Process::start(Program::Report.command().arg("--json"));
    report.write(lines.as_bytes());
    let printed = report.finish(hopline_tests::PATIENCE).success().stdout;
    serde_json::from_str::<serde_json::Value>(&printed).expect("the report is one JSON value");
}
