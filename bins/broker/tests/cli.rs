//! The program as users run it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "so tests fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn broker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline-broker"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = broker(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A broker that serves; killed when the test ends, however that is.
struct Running {
    child: Child,
    logs: BufReader<ChildStderr>,
    address: String,
    first_line: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = broker(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut logs = BufReader::new(child.stderr.take().unwrap());
        let mut first_line = String::new();
        logs.read_line(&mut first_line).unwrap();
        let (_, rest) = first_line.split_once("listening on ").expect(&first_line);
        let address = rest.split_whitespace().next().unwrap().to_owned();
        Self { child, logs, address, first_line }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(&mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.logs.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_good_configuration_is_said_to_be_ok() {
    let (status, out, _) = run(&["--check-config", "--listen", "127.0.0.1:0"]);
    assert_eq!((status, out.trim()), (Some(0), "the configuration is ok"));
}

#[test]
fn the_configuration_in_force_is_printed() {
    let flags = ["--print-config", "--nodelay", "off", "--name", "n", "--timelines", "1/9"];
    let (status, out, _) = run(&flags);
    assert_eq!(status, Some(0));
    for line in ["name = \"n\"", "timelines = \"1/9\"", "nodelay = false", "[limits]"] {
        assert!(out.lines().any(|it| it == line), "{line} is not in {out}");
    }
    let output = broker(&["--print-config"]).env("HOPLINE_NAME", "v").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("name = \"v\""));
}

#[test]
fn a_bad_configuration_ends_before_a_port_is_opened() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "anonymous = true\nlisteners = []\n").unwrap();
    let path = file.path().to_str().unwrap();
    let (status, out, err) = run(&["--config", path, "--listen", "127.0.0.1:0"]);
    assert_eq!((status, out.as_str()), (Some(2), ""));
    let text = "2: unknown key `listeners`; did you mean `listener`?";
    assert_eq!(err, format!("hopline-broker: {path}:{text}\n"));
    for bad in [["--listen", "x"], ["--nodelay", "x"], ["--log-level", "a=b=c"], ["--x", "y"]] {
        assert_eq!(run(&bad).0, Some(2), "{bad:?}");
    }
    let (status, _, err) = run(&["--config", "/nowhere.toml"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("/nowhere.toml can't be read") && err.contains(": No such file"), "{err}");
}

#[test]
fn a_port_in_use_is_told_with_its_cause() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, _, err) = run(&["--listen", &address]);
    assert_eq!(status, Some(1));
    assert!(err.contains(&address) && err.contains("another process has this port"), "{err}");
}

#[test]
fn it_says_where_it_listens_and_stops_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut broker = Running::start(&["--listen", "127.0.0.1:0", "--nodelay", "off"]);
        assert!(broker.first_line.contains("nodelay=off"), "{}", broker.first_line);
        TcpStream::connect(&broker.address).unwrap();
        broker.signal(signal);
        assert_eq!(broker.end().0, Some(0));
    }
}

#[test]
fn logs_can_be_json() {
    let mut broker = Running::start(&["--listen", "127.0.0.1:0", "--log-format", "json"]);
    assert!(broker.first_line.starts_with('{'), "{}", broker.first_line);
    broker.signal(Signal::TERM);
    assert_eq!(broker.end().0, Some(0));
}

#[test]
fn no_peer_fills_the_log() {
    let mut broker = Running::start(&["--listen", "127.0.0.1:0"]);
    for _ in 0..200 {
        let mut peer = TcpStream::connect(&broker.address).unwrap();
        peer.write_all(b"HTTP/1.1").unwrap();
        // The broker has said what it speaks, and has closed.
        let _ = peer.read_to_end(&mut Vec::new());
    }
    broker.signal(Signal::TERM);
    let (code, logs) = broker.end();
    assert_eq!(code, Some(0));
    let complaints = logs.lines().filter(|line| line.contains("framing-error")).count();
    assert!((10..200).contains(&complaints), "{logs}");
    let told = logs.lines().find(|line| line.contains("lines were left out")).expect(&logs);
    assert!(told.contains("more than 10 of a kind a second"), "{told}");
    assert!(told.contains(&format!("lines={}", 200 - complaints)), "{complaints}: {told}");
}

#[test]
fn a_second_signal_ends_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "stop_timeout = '1h'\n[limits]\nhandshake_timeout = '1h'").unwrap();
    let path = file.path().to_str().unwrap();
    let mut broker = Running::start(&["--config", path, "--listen", "127.0.0.1:0"]);
    // A peer that says nothing keeps the stop waiting.
    let mut peer = TcpStream::connect(&broker.address).unwrap();
    peer.write_all(b"AMQP\x00\x01\x00\x00").unwrap();
    peer.read_exact(&mut [0; 8]).unwrap();
    broker.signal(Signal::TERM);
    let mut line = String::new();
    while !line.contains("stopping") {
        line.clear();
        assert_ne!(broker.logs.read_line(&mut line).unwrap(), 0, "it ended");
    }
    broker.signal(Signal::TERM);
    let (status, rest) = broker.end();
    assert_eq!(status, Some(1));
    assert!(rest.contains("ended by a second signal"), "{rest}");
}
