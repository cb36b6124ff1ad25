//! Programs whose monotonic clocks differ by hours, as those of different hosts do: the truth is
//! known, since a time namespace shifts a clock by exactly what it is told.
#![cfg(target_os = "linux")]

use std::process::Command;

use hopline_tests::{HoplineBroker, PATIENCE, Process, Program};
use hopline_timeline::record::{MessageRecord, Record, TieRecord};
use hopline_timeline::{ClockDomain, Stage, Timeline};
use rustix::process::geteuid;
use serde_json::Value;

const COUNT: usize = 300;
const HOUR_NS: i64 = 3_600_000_000_000;

/// The program with a clock that is so many hours ahead, and on a host that nobody can tell.
fn shifted(program: Program, hours: i64) -> Command {
    let plain = program.command();
    let mut command = Command::new("unshare");
    let seconds = (hours * 3_600).to_string();
    command.args(["--time", "--monotonic", &seconds, "--fork", "--kill-child"]);
    command.arg(plain.get_program()).args(plain.get_args());
    command
}

/// Publisher, broker and subscriber on three clocks; what the subscriber recorded.
fn records(folder: &std::path::Path) -> (String, Vec<MessageRecord>) {
    let broker = HoplineBroker::start(&[]);
    let path = folder.join("records").to_string_lossy().into_owned();
    let count = COUNT.to_string();
    let mut subscriber = shifted(Program::Subscribe, 2);
    subscriber.args(["--count", &count, "--timeline", &path]).arg(broker.url("q"));
    let subscriber = Process::start(&mut subscriber);
    let mut publisher = shifted(Program::Publish, 1);
    publisher.args(["--count", &count, "--rate", "200"]).arg(broker.url("q"));
    Process::start(&mut publisher).finish(PATIENCE).success();
    subscriber.finish(PATIENCE).success();
    let text = std::fs::read_to_string(&path).expect("records");
    let messages = text.lines().filter_map(|line| match Record::parse_line(line.as_bytes()) {
        Ok(Record::Message(message)) => Some(message),
        Ok(_) => None,
        Err(error) => panic!("{error}: {line}"),
    });
    (path, messages.collect())
}

/// How often the truth lay within what a node said of the clock before it, and its bounds.
fn judge(messages: &[MessageRecord], node: usize, truth_ns: i64) -> (usize, Vec<u64>) {
    let ties = messages.iter().filter_map(|message| message.nodes[node].before);
    let (mut within, mut bounds) = (0, Vec::new());
    for TieRecord { ahead_ns, error_bound_ns } in ties {
        within += usize::from((ahead_ns - truth_ns).unsigned_abs() <= error_bound_ns);
        bounds.push(error_bound_ns);
    }
    bounds.sort_unstable();
    (within, bounds)
}

/// The hop by the namespaces' own account, without any estimate.
fn true_hop_ns(timeline: &Timeline, hop: usize, ahead_ns: i64) -> i64 {
    let span = timeline.hops().nth(hop).expect("a hop");
    let at = |stamp: &hopline_timeline::Stamp| stamp.at.expect("filled in").as_nanos();
    assert_eq!(span.from.known_stage(), Some(Stage::Send));
    at(span.to) - (at(span.from) - ahead_ns)
}

#[test]
fn three_clocks_hours_apart_are_tied_together_within_bounds_that_hold() {
    if !geteuid().is_root() {
        return eprintln!("skipped: time namespaces need root");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, messages) = records(folder.path());
    assert_eq!(messages.len(), COUNT);
    for message in &messages {
        assert_eq!(message.nodes[0].clock.host, ClockDomain::UNKNOWN_HOST);
    }
    // Publisher's ahead of broker's, and broker's ahead of subscriber's.
    let truths = [HOUR_NS, -2 * HOUR_NS];
    for (node, truth_ns) in [(1, truths[0]), (2, truths[1])] {
        let (within, bounds) = judge(&messages, node, truth_ns);
        assert!(bounds.len() * 100 >= COUNT * 95, "{} of {COUNT} tied", bounds.len());
        assert!(within * 100 >= bounds.len() * 99, "{within} of {}", bounds.len());
        let median = bounds[bounds.len() / 2];
        assert!(median < 5_000_000, "{median} ns");
    }
    for message in messages.iter().filter(|message| message.nodes[2].before.is_some()) {
        let timeline = message.timeline().expect("a timeline");
        for (hop, truth_ns) in [0, 1].into_iter().zip(truths) {
            let span = timeline.hops().nth(hop).expect("a hop");
            let Ok(delay) = timeline.delay(span.from, span.to) else { continue };
            let error = (delay.delay_ns - true_hop_ns(&timeline, hop, truth_ns)).unsigned_abs();
            assert!(error <= delay.error_bound_ns, "{error} ns of {delay:?}");
        }
    }
    let report = Process::start(Program::Report.command().arg("--json").arg(&path));
    let report: Value = serde_json::from_str(&report.finish(PATIENCE).success().stdout).unwrap();
    for hop in report["hops"].as_array().expect("hops") {
        let bound: u64 = hop["error_bound_ns"].as_str().expect("a string").parse().unwrap();
        assert!(bound > 0 && hop["count"].as_u64() > Some(COUNT as u64 * 9 / 10), "{hop}");
    }
}
