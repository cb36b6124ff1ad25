//! Forwards between broker processes that are killed and stopped while messages are on their way.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::ops::Range;

use hopline_tests::{HoplineBroker, PATIENCE, Process, Program, wait_until};
use rustix::process::Signal;
use tempfile::TempDir;

/// A configuration: these forwards, and what is to stand before them.
fn configured(head: &str, forwards: &[(&str, &str)]) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broker.toml");
    let forward = |(from, to)| {
        let pauses = "first_pause = '10ms'\nlongest_pause = '50ms'\n";
        format!("[[forward]]\nfrom = {from:?}\nto = {to:?}\n{pauses}")
    };
    let forwards: String = forwards.iter().copied().map(forward).collect();
    std::fs::write(&file, format!("{head}{forwards}")).expect("written");
    let file = file.to_str().expect("a path in UTF-8").to_owned();
    (folder, file)
}

/// Starts to publish the numbers.
fn publisher(url: &str, numbers: Range<u32>, options: &[&str]) -> Process {
    let mut command = Program::Publish.command();
    let mut publisher = Process::start(command.args(["--body-file", "-"]).args(options).arg(url));
    publisher.write(lines(numbers).as_bytes());
    publisher.close_input();
    publisher
}

/// Publishes the numbers: all are accepted.
fn publish(url: &str, numbers: Range<u32>) {
    publisher(url, numbers, &[]).finish(PATIENCE).success();
}

fn lines(numbers: Range<u32>) -> String {
    numbers.map(|n| format!("{n}\n")).collect()
}

/// Takes as many bodies as that, a line each.
fn take(url: &str, count: usize) -> String {
    let mut command = Program::Subscribe.command();
    command.args(["--print", "--quiet", "--count", &count.to_string()]).arg(url);
    Process::start(&mut command).finish(PATIENCE).success().stdout
}

fn port(broker: &HoplineBroker) -> u16 {
    let (_, port) = broker.host().rsplit_once(':').expect("HOST:PORT");
    port.parse().expect("a port")
}

/// Octets that have come to connections of these local and remote ports and were not read yet.
fn unread(is_meant: impl Fn(u16, u16) -> bool) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel's sockets");
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let octets = table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let mut port = || {
            let (_, port) = columns.next()?.rsplit_once(':')?;
            u16::try_from(hex(port)?).ok()
        };
        let (local, remote) = (port()?, port()?);
        let is_established = columns.next()? == "01";
        let (_, unread) = columns.next()?.split_once(':')?;
        (is_established && is_meant(local, remote)).then(|| hex(unread))?
    });
    octets.sum()
}

/// Waits until messages wait in the sockets of a process that is halted: there are hundreds on
/// their way, none of which it can have read.
fn wait_for_unread(is_meant: impl Fn(u16, u16) -> bool) {
    wait_until(PATIENCE, "octets that nobody reads", || (unread(&is_meant) > 10_000).then_some(()));
}

#[test]
fn what_is_on_its_way_to_a_broker_that_is_killed_comes_to_its_successor() {
    let mut there = HoplineBroker::start(&[]);
    let (host, there_port) = (there.host().to_owned(), port(&there));
    let (_folder, file) = configured("", &[("q", &there.url("r"))]);
    let here = HoplineBroker::start(&["--config", &file]);
    publish(&here.url("q"), 0..300);
    assert_eq!(take(&there.url("r"), 300), lines(0..300));
    there.process.signal(Signal::STOP);
    publish(&here.url("q"), 300..600);
    wait_for_unread(|local, _| local == there_port);
    drop(there);
    publish(&here.url("q"), 600..900);
    let there = HoplineBroker::start_at(&host, &[]);
    assert_eq!(take(&there.url("r"), 600), lines(300..900), "in order, each once");
}

#[test]
fn what_is_on_its_way_to_a_broker_that_takes_it_in_and_is_killed_stays_there() {
    let there = HoplineBroker::start(&[]);
    let there_port = port(&there);
    let (_folder, file) = configured("", &[(&there.url("r"), "q")]);
    let mut here = HoplineBroker::start(&["--config", &file]);
    publish(&there.url("r"), 0..300);
    assert_eq!(take(&here.url("q"), 300), lines(0..300));
    here.process.signal(Signal::STOP);
    publish(&there.url("r"), 300..600);
    wait_for_unread(|_, remote| remote == there_port);
    drop(here);
    publish(&there.url("r"), 600..900);
    let here = HoplineBroker::start(&["--config", &file]);
    assert_eq!(take(&here.url("q"), 600), lines(300..900), "in order, each once");
}

/// What a broker that stops says of the messages in its queues, which are gone with it.
fn left_in_queues(stopped: HoplineBroker) -> usize {
    let said = stopped.terminate().success().stderr;
    let Some((_, rest)) = said.split_once("the queues were not empty") else { return 0 };
    let (_, count) = rest.split_once("messages=").expect("it says how many");
    let digits = count.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("a number")
}

/// Numbers in the order in which each came first.
fn first_times(printed: &str) -> Vec<u32> {
    // The last line may be there by half.
    let whole = &printed[..printed.rfind('\n').map_or(0, |end| end + 1)];
    let mut seen = BTreeSet::new();
    let numbers = whole.lines().map(|line| line.parse().expect("a number"));
    numbers.filter(|number| seen.insert(*number)).collect()
}

/// From here to there, and on to the last broker. The one in the middle is stopped again and again;
/// nothing is missing but what it says that it had in its queue, and no more than its queue holds.
#[test]
fn a_stream_outlives_a_broker_that_is_restarted_again_and_again() {
    const ALL: usize = 3_000;
    const RESTARTS: usize = 3;
    const MOST: usize = 50;
    let head = format!("limits.producer_credit = {MOST}\nnodes.max_messages = {MOST}\n");
    let (_small, small) = configured(&head, &[]);
    let mut there = HoplineBroker::start(&["--config", &small]);
    let host = there.host().to_owned();
    let (_out, out) = configured("", &[("q", &there.url("r"))]);
    let (_on, on) = configured("", &[(&there.url("r"), "s")]);
    let here = HoplineBroker::start(&["--config", &out]);
    let last = HoplineBroker::start(&["--config", &on]);
    let mut subscriber = Program::Subscribe.command();
    let subscriber = Process::start(subscriber.args(["--print", "--quiet"]).arg(last.url("s")));
    let came = || first_times(&subscriber.stdout());
    let publisher = publisher(&here.url("q"), 0..ALL as u32, &["--rate", "2000"]);
    let mut lost = 0;
    for restart in 0..RESTARTS {
        let enough = 300 + 600 * restart;
        wait_until(PATIENCE, "the stream", || (came().len() >= enough).then_some(()));
        lost += left_in_queues(there);
        assert!(came().len() < ALL, "it was over before the broker was stopped");
        there = HoplineBroker::start_at(&host, &["--config", &small]);
    }
    publisher.finish(PATIENCE).success();
    let all = |numbers: &Vec<u32>| numbers.len() + lost >= ALL;
    let numbers = wait_until(PATIENCE, "all that was not lost", || Some(came()).filter(all));
    assert!(numbers.is_sorted(), "in order");
    assert!(lost <= RESTARTS * MOST, "{lost} were in a queue of {MOST}");
}
