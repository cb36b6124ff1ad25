//! What kernels tell of messages, from the programs' side records into a report.
#![cfg(target_os = "linux")]

use std::path::Path;

use hopline_tests::{HoplineBroker, PATIENCE, Process, Program, publish};
use serde_json::Value;

const COUNT: usize = 150;

/// A chain whose kernels are asked for all they know; the report of what it recorded.
fn report(nodelay: &str, publisher: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (broker_side, publisher_side) = (file("broker"), file("publisher"));
    let records = file("subscriber");
    let stamped = ["--kernel-timestamps", "all", "--nodelay", nodelay];
    let broker = HoplineBroker::start(&[&stamped[..], &["--side-records", &broker_side]].concat());
    let count = COUNT.to_string();
    let mut subscriber = Program::Subscribe.command();
    subscriber.args(stamped).args(["--count", &count, "--timeline", &records]);
    let subscriber = Process::start(subscriber.arg(broker.url("q")));
    let side = ["--side-records", &publisher_side];
    let told =
        publish(&broker.url("q"), &[&stamped[..], &side, &["--count", &count], publisher].concat());
    assert!(told.stdout.contains("dropped for want of room 0"), "{}", told.stdout);
    subscriber.finish(PATIENCE).success();
    broker.terminate();
    read(&[&records, &broker_side, &publisher_side])
}

fn read(files: &[&str]) -> Value {
    for file in files {
        assert!(Path::new(file).exists(), "{file}");
    }
    let mut report = Program::Report.command();
    let arguments = ["--json", "--late", "5ms"];
    let finished = Process::start(report.args(arguments).args(files)).finish(PATIENCE).success();
    assert_eq!(finished.stderr, "");
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// How many of the late messages between these two had which cause.
fn causes<'a>(report: &'a Value, from: &str) -> Vec<(&'a str, u64)> {
    let rows = report["late"]["causes"].as_array().into_iter().flatten();
    let hop = rows.filter(|row| row["kind"] == "late_hop" && row["from_node"] == *from);
    hop.filter_map(|row| Some((row["cause"].as_str()?, row["count"].as_u64()?))).collect()
}

#[test]
fn each_message_is_followed_through_both_kernels_of_both_hops() {
    let report = report("on", &["--rate", "500"]);
    let counts = &report["counts"];
    let all = (COUNT as u64).into();
    assert_eq!((&counts["messages"], &counts["kernel"]), (&all, &(2 * COUNT as u64).into()));
    assert_eq!((&counts["kernel_unused"], &counts["kernel_dropped"]), (&0.into(), &0.into()));
    let stages = report["stages"].as_array().expect("rows");
    for node in ["publisher", "hopline-broker"] {
        for (from, to) in [
            ("SEND", "KERNEL_SCHED"),
            ("KERNEL_SCHED", "KERNEL_SEND"),
            ("KERNEL_SEND", "KERNEL_ACK"),
        ] {
            let row = stages.iter().find(|row| {
                (&row["from_node"], &row["from_stage"], &row["to_stage"])
                    == (&node.into(), &from.into(), &to.into())
            });
            let row = row.unwrap_or_else(|| panic!("no {from} -> {to} of {node}"));
            assert_eq!((&row["count"], &row["negative"]), (&all, &0.into()), "{row}");
        }
    }
    let accounts = report["connections"].as_array().expect("accounts");
    let nodelay = accounts.iter().filter(|account| account["nodelay"] == true).count();
    // The publisher's and the broker's ends, and the subscriber's from its own file.
    assert_eq!(nodelay, 4, "{accounts:?}");
    assert!(causes(&report, "publisher").iter().all(|(cause, _)| *cause != "nagle"));
}

#[test]
fn nagle_is_named_as_the_cause_where_it_is() {
    let report = report("off", &["--rate", "100", "--settle-second"]);
    let causes = causes(&report, "publisher");
    let late: u64 = causes.iter().map(|(_, count)| count).sum();
    let nagle: u64 = causes.iter().filter(|(cause, _)| *cause == "nagle").map(|(_, n)| n).sum();
    assert!(late > COUNT as u64 / 3, "{causes:?}");
    assert!(nagle * 10 >= late * 9, "{causes:?}");
}
