//! `hopline-lab`: short runs of each experiment, with the real programs.

use std::fs;
use std::path::Path;

use hopline_tests::{Finished, HoplineBroker, PATIENCE, Process, Program, wait_until};
use rustix::process::Signal;
use serde_json::Value;

fn lab(arguments: &[&str], json: &Path) -> Process {
    let mut command = Program::Lab.command();
    Process::start(command.args(arguments).arg("--json").arg(json))
}

/// Runs an experiment to its end; the document, and what was printed.
fn experiment(arguments: &[&str]) -> (Value, Finished) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("result.json");
    let finished = lab(arguments, &json).finish(PATIENCE).success();
    // Neither bar nor estimate where nobody looks.
    assert_eq!(finished.stderr, "");
    (read(&json), finished)
}

fn read(json: &Path) -> Value {
    let text = fs::read_to_string(json).expect("the result was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((&document["hopline"], &document["schema"]), (&"lab".into(), &1.into()));
    document
}

#[test]
fn nagle_shows_what_the_field_report_saw() {
    let (document, finished) = experiment(&["nagle", "--rounds", "2", "--count", "60"]);
    assert_eq!(document["complete"], true);
    let rounds = document["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        let mean = |half: &str| -> i64 {
            assert_eq!(round[half]["messages"], 60);
            let ns = round[half]["mean_ns"].as_str().expect("a string");
            ns.parse().expect("nanoseconds")
        };
        assert!(mean("off") > mean("on"), "{round}");
    }
    let late = document["summary"]["off"]["late"].as_u64().expect("a count");
    assert!(late > 40, "{}", document["summary"]);
    for expected in ["round", "mean", "sd", "verdict: "] {
        assert!(finished.stdout.contains(expected), "{}", finished.stdout);
    }
}

#[test]
fn nagle_flat_out_compares_the_time_that_a_throttled_consumer_takes() {
    let options = ["--flat-out", "--throttle", "100", "--throttle-window", "100ms"];
    let chosen = ["--write", "split", "--top-up", "each", "--settle", "accepted"];
    let bounded = ["--rounds", "1", "--count", "35", "--ends", "publisher,broker-in"];
    let (document, finished) =
        experiment(&[&["nagle"], &options[..], &chosen[..], &bounded[..]].concat());
    for half in ["off", "on"] {
        let took = document["rounds"][0][half]["took_ns"].as_str().expect("a string");
        // Ten at a time, so three windows have to pass.
        assert!(took.parse::<u64>().expect("nanoseconds") > 290_000_000, "{took}");
    }
    assert!(finished.stdout.contains("verdict: none: one round shows"), "{}", finished.stdout);
}

/// The processes that a process has started, by name.
fn children(id: u32) -> Vec<(String, String)> {
    let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let name = |id: &str| fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    list.split_whitespace().map(|id| (id.to_owned(), name(id))).collect()
}

#[test]
fn an_interruption_leaves_a_valid_result_and_no_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("result.json");
    let mut process = lab(&["nagle", "--rounds", "1000"], &json);
    let started = wait_until(PATIENCE, "a publisher", || {
        let started = children(process.id());
        started.iter().any(|(_, name)| name.starts_with("hopline-publish")).then_some(started)
    });
    process.signal(Signal::INT);
    let finished = process.finish(PATIENCE);
    assert_eq!(finished.status.code(), Some(130), "{}", finished.stderr);
    assert!(finished.stdout.contains("interrupted"), "{}", finished.stdout);
    let document = read(&json);
    assert_eq!(document["complete"], false);
    assert_eq!(document["experiment"], "nagle");
    for (id, name) in started {
        wait_until(PATIENCE, "the end of a child", || {
            let now = fs::read_to_string(format!("/proc/{id}/comm")).ok();
            let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            (now.as_ref() != Some(&name) || state.contains(") Z")).then_some(())
        });
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("result.json");
    for (arguments, said) in [
        (&["nagle", "--rounds", "0"][..], "--rounds: from 1 to 1000"),
        (&["nagle", "--rate", "0"], "--rate: from 0.1 to 100000"),
        (&["nagle", "--count", "100000"], "--count: a run would take 1000 s"),
        (&["nagle", "--kernel-timestamps", "some"], "--kernel-timestamps: write off"),
        (&["nagle", "--ends", "middle"], "invalid value 'middle'"),
        (&["pairs", "--pairs", "0"], "--pairs: from 1 to 1000"),
        (&["pairs", "--a", "listener.address=x"], "listener.address can't be set here"),
        (&["hops", "--brokers", "17"], "--brokers: from 1 to 16"),
        (&["bench", "--scenarios", "warp"], "write one of 1k-settled"),
        (&["bench", "--growth", "1"], "--growth"),
        (&["bench", "--peer", "x=http://y"], "the URL's scheme is neither amqp nor amqps"),
        (&["buffers", "--receive-buffers", "7"], "a buffer: from 1024"),
    ] {
        let finished = lab(arguments, &json).finish(PATIENCE);
        assert_eq!(finished.status.code(), Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    let empty = ["nagle", "--programs", folder.path().to_str().expect("UTF-8")];
    let finished = lab(&empty, &json).finish(PATIENCE);
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("cargo build --release --bins"), "{}", finished.stderr);
    assert!(!json.exists());
}

#[test]
fn pairs_reach_what_is_offered_and_tell_what_it_costs() {
    let short = ["--rounds", "1", "--length", "1s", "--warm-up", "200ms"];
    let load = ["--pairs", "3", "--rate", "50", "--a", "client.nodelay=off", "--b", ""];
    let (document, finished) = experiment(&[&["pairs"], &short[..], &load[..]].concat());
    for half in ["a", "b"] {
        let run = &document["rounds"][0][half];
        assert_eq!((&run["offered"], &run["lost"]), (&150.into(), &0.0.into()), "{run}");
        assert!(run["arrived"].as_u64().expect("a count") > 0, "{run}");
        assert!(run["p50_us"].as_f64().expect("a figure") > 0.0, "{run}");
        assert!(run["switches"].as_f64().expect("a figure") > 0.0, "{run}");
    }
    assert!(finished.stdout.contains("150 messages/s were offered"), "{}", finished.stdout);
    assert!(finished.stdout.contains("A: client.nodelay=off\nB: the defaults"));
}

#[test]
fn a_rate_that_cannot_be_reached_is_told() {
    let short = ["--rounds", "1", "--length", "300ms", "--warm-up", "0s"];
    // One message may be under way, and there are more than its round trip lets.
    let load = ["--pairs", "1", "--rate", "200000", "--window", "1"];
    let (_, finished) = experiment(&[&["pairs"], &short[..], &load[..]].concat());
    assert!(finished.stdout.contains("did NOT reach it"), "{}", finished.stdout);
}

#[test]
fn buffers_show_what_each_size_changes() {
    let short = ["--rounds", "1", "--length", "300ms", "--rate", "200"];
    let sweep = ["--receive-buffers", "4096", "--send-buffers", "16384", "--coalesce", "1"];
    let (document, finished) = experiment(&[&["buffers"], &short[..], &sweep[..]].concat());
    let points = document["rounds"].as_array().expect("points");
    let run = |name: &str| {
        let point = points.iter().find(|it| it["point"] == name).expect("it was tried");
        point["runs"][0].clone()
    };
    let figure = |run: &Value, name: &str| run[name].as_f64().expect("a figure");
    let (defaults, single) = (run("defaults"), run("coalesce=1"));
    assert!(figure(&single, "writes") > 2.0 * figure(&defaults, "writes"), "{single} {defaults}");
    // 4 KiB hold fewer messages than a write brings.
    let narrow = run("receive_buffer=4096");
    assert!(figure(&narrow, "acks") > figure(&defaults, "acks"), "{narrow} {defaults}");
    assert!(figure(&run("send_buffer=16384"), "rate") > 0.0);
    assert!(finished.stdout.contains("verdict: "), "{}", finished.stdout);
}

#[test]
fn hops_carry_every_message_through_the_whole_chain() {
    let short = ["--rounds", "1", "--length", "500ms", "--warm-up", "500ms"];
    let (document, finished) =
        experiment(&[&["hops"], &short[..], &["--brokers", "1,3", "--rate", "100"]].concat());
    let chains = document["rounds"].as_array().expect("chains");
    assert_eq!(chains.len(), 2);
    for chain in chains {
        let run = &chain["runs"][0];
        assert_eq!(run["lost"], 0.0, "{chain}");
        assert!(run["rate"].as_f64().expect("a figure") > 50.0, "{chain}");
        assert!(run["p50_us"].as_f64().expect("a figure") > 0.0, "{chain}");
    }
    assert!(finished.stdout.contains("each further broker adds"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("LOST"), "{}", finished.stdout);
}

#[test]
fn bench_compares_with_a_relay_and_with_any_broker() {
    let other = HoplineBroker::start(&[]);
    let id = other.process.id();
    let peer = format!("other=amqp://{},{id}", other.host());
    let scenarios = ["--scenarios", "1k-accepted,flat-settled", "--peer", &peer];
    let short = ["--rounds", "1", "--length", "400ms"];
    let (document, finished) = experiment(&[&["bench"], &short[..], &scenarios[..]].concat());
    let cells = document["rounds"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    for cell in cells {
        let run = &cell["runs"][0];
        assert_eq!(run["lost"], 0.0, "{cell}");
        assert!(run["rate"].as_f64().expect("a figure") > 100.0, "{cell}");
        assert!(run["cpu_us"].as_f64().expect("a figure") >= 0.0, "{cell}");
    }
    let flat = |target: &str| {
        let wanted = |it: &&Value| it["scenario"] == "flat-settled" && it["target"] == target;
        cells.iter().find(wanted).expect("it was measured")["runs"][0]["rate"].as_f64()
    };
    assert!(flat("relay") > flat("hopline"), "{document}");
    let goals = document["summary"]["goals"].as_array().expect("goals");
    let wanted = |it: &&Value| it["goal"] == "flat-settled: msg/s / relay";
    let against_relay = goals.iter().find(wanted).expect("both were measured");
    assert!(against_relay["median"].as_f64() < Some(1.0), "{against_relay}");
    let is_met = against_relay["median"].as_f64() >= Some(0.5);
    assert_eq!(against_relay["is_met"], is_met, "{against_relay}");
    let said = format!("of {} goals are met", goals.len());
    assert!(finished.stdout.contains(&said), "{}", finished.stdout);
}

#[test]
fn bench_shows_what_much_of_a_kind_costs() {
    let scenarios = "messengers,few-links,many-links,many-queues,backlog,idle";
    let short = ["--rounds", "1", "--length", "300ms", "--growth", "20"];
    let (document, _) = experiment(&[&["bench"], &short[..], &["--scenarios", scenarios]].concat());
    let cells = document["rounds"].as_array().expect("cells");
    assert_eq!(cells.len(), 6);
    for cell in cells.iter().filter(|cell| cell["scenario"] != "idle") {
        let run = &cell["runs"][0];
        assert_eq!(run["lost"], 0.0, "{cell}");
        assert!(run["rate"].as_f64().expect("a figure") > 100.0, "{cell}");
    }
    let goals = document["summary"]["goals"].as_array().expect("goals");
    let median = |goal: &str| {
        let found = goals.iter().find(|it| it["goal"] == goal).expect("it was measured");
        found["median"].as_f64().expect("a figure")
    };
    // What a hundred pages more or less are for twenty.
    assert!((0.0..1_000.0).contains(&median("idle: KiB a connection")), "{document}");
    assert!(median("many-queues: ms to start") > 0.0, "{document}");
    assert!(median("many-links: cpu us/msg / few-links") > 0.0, "{document}");
}

/// The namespaces of a process of `hopline-lab`.
fn namespaces() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("hopline-lab-")).collect()
}

#[test]
fn a_path_delays_both_hops_and_leaves_nothing_behind() {
    let bounded = ["--rounds", "1", "--count", "20", "--rate", "50", "--settle", "presettled"];
    let arguments = [&["nagle", "--path", "delay=15ms,rate=100"], &bounded[..]].concat();
    if !rustix::process::geteuid().is_root() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let finished = lab(&arguments, &folder.path().join("no")).finish(PATIENCE);
        assert_eq!(finished.status.code(), Some(2));
        assert!(finished.stderr.contains("need root"), "{}", finished.stderr);
        eprintln!("skipped: network namespaces need root");
        return;
    }
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: this system has no TUN devices");
        return;
    }
    let (document, _) = experiment(&arguments);
    let on = &document["rounds"][0]["on"];
    assert_eq!(on["messages"], 20, "{document}");
    let p50: u64 = on["p50_ns"].as_str().and_then(|ns| ns.parse().ok()).expect("nanoseconds");
    // Publisher to broker, then broker to subscriber.
    assert!(p50 >= 30_000_000, "{on}");
    assert_eq!(namespaces(), Vec::<String>::new());
}
