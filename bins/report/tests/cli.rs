//! The program as people and scripts run it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test reports by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flate2::{Compression, write::GzEncoder};
use rustix::process::{Pid, Signal, kill_process};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/report/tests/data").join(name)
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline-report"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

fn text(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).unwrap()
}

fn chain() -> String {
    data("chain.jsonl").into_os_string().into_string().unwrap()
}

/// The program with `input` written to its standard input, which stays open.
fn fed(arguments: &[&str], input: &[u8]) -> Child {
    let mut child = program(arguments).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(input).unwrap();
    child
}

#[test]
fn files_standard_input_and_gzip_give_the_same_report() {
    let golden = fs::read(data("chain.txt")).unwrap();
    let traces = ["--trace=1", "--slowest=1", "--id=00000000000000000000000000abc003"];
    let records = fs::read(data("chain.jsonl")).unwrap();
    let chain = chain();
    fn with<'a>(traces: &[&'a str], file: &'a str) -> Vec<&'a str> {
        [traces, &[file]].concat()
    }

    let from_file = run(&with(&traces, &chain));
    assert_eq!((from_file.status.code(), text(&from_file.stderr)), (Some(0), ""));
    assert_eq!(text(&from_file.stdout), text(&golden));

    for arguments in [&traces[..], &with(&traces, "-")] {
        let from_pipe = fed(arguments, &records).wait_with_output().unwrap();
        assert_eq!(from_pipe.stdout, golden);
    }

    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("records");
    let mut encoder = GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::fast());
    encoder.write_all(&records).unwrap();
    encoder.finish().unwrap();
    assert_eq!(run(&with(&traces, packed.to_str().unwrap())).stdout, golden);
}

#[test]
fn several_files_are_read_one_after_the_other() {
    let field_report = data("field-report.jsonl");
    let both = run(&["--json", &chain(), field_report.to_str().unwrap()]);
    assert_eq!(both.status.code(), Some(0));
    assert!(text(&both.stdout).contains("\"messages\":7,"), "{}", text(&both.stdout));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    for missing in ["/nonexistent/records", folder] {
        let told = run(&[missing, &chain()]);
        assert_eq!(told.status.code(), Some(2));
        assert!(text(&told.stderr).starts_with(&format!("hopline-report: {missing}: ")));
        assert!(text(&told.stdout).contains("messages 5, "));
    }
}

#[test]
fn no_message_is_status_1_and_so_is_an_id_that_did_not_come() {
    let empty = run(&[]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(text(&empty.stdout).contains("no messages"));
    assert!(text(&empty.stderr).contains("no message with a timeline"));
    let absent = run(&["--id", "000000000000000000000000000000ff", &chain()]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(text(&absent.stderr).contains("no message with the id 00000000"));
    assert!(text(&absent.stdout).contains("messages 5, "));
}

#[test]
fn bad_usage_is_status_2_and_says_what_is_wrong() {
    let cases = [
        (&["--json", "--csv"][..], "cannot be used with"),
        (&["--trace", "1001"], "at most 1000"),
        (&["--trace=-1"], "not a number"),
        (&["--slowest", "many"], "not a number"),
        (&["--late", "0.9"], "a time such as 5ms"),
        (&["--late", "soon"], "a time such as 5ms"),
        (&["--id", "xyz"], "32 hexadecimal digits"),
        (&["--histogram"], "--histogram"),
    ];
    for (arguments, part) in cases {
        let told = run(arguments);
        assert_eq!((told.status.code(), told.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(text(&told.stderr).contains(part), "{}", text(&told.stderr));
    }
}

#[test]
fn help_names_every_option_and_the_exit_status() {
    let help = run(&["--help"]);
    for part in [
        "--trace <N>",
        "--slowest <N>",
        "--id <HEX>",
        "--late <FACTOR>",
        "--hlog <FILE>",
        "--watch",
        "--json",
        "--csv",
        "Exit status",
    ] {
        assert!(text(&help.stdout).contains(part), "{part}");
    }
    assert!(text(&run(&["--version"]).stdout).starts_with("hopline-report "));
}

#[test]
fn what_is_late_can_be_said_as_a_factor_or_a_time() {
    let counted = |late: &str| {
        let told = run(&["--late", late, &chain()]);
        let lines = text(&told.stdout).lines().skip_while(|line| !line.starts_with("late (over"));
        lines.filter(|line| line.starts_with("no-credit  ")).count()
    };
    assert_eq!((counted("5"), counted("2.5"), counted("500ms"), counted("1ms")), (2, 2, 0, 2));
}

#[test]
fn a_reader_that_has_enough_ends_the_program_quietly() {
    let messages = fs::read_to_string(data("chain.jsonl")).unwrap();
    let with_own_id = |n: u32| messages.replace("000abc", &format!("{n:03x}abc"));
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records");
    fs::write(&records, (0..200).map(with_own_id).collect::<String>()).unwrap();
    // The traces alone are more than any pipe holds.
    let slowest = ["--slowest", "1000", records.to_str().unwrap()];
    let mut child = program(&slowest).spawn().unwrap();
    let mut start = [0; 7];
    child.stdout.as_mut().unwrap().read_exact(&mut start).unwrap();
    assert_eq!(&start, b"+ e2e: ");
    drop(child.stdout.take());
    let told = child.wait_with_output().unwrap();
    assert_eq!((told.status.code(), text(&told.stderr)), (Some(0), ""));
}

#[test]
fn ctrl_c_in_a_pipe_leaves_the_report_of_what_the_writer_wrote() {
    let records = fs::read(data("chain.jsonl")).unwrap();
    let child = fed(&[], &records);
    interrupt(&child);
    let told = child.wait_with_output().unwrap();
    assert_eq!((told.status.code(), text(&told.stderr)), (Some(0), ""));
    assert!(text(&told.stdout).contains("messages 5, "));
}

#[test]
fn a_second_ctrl_c_ends_the_program() {
    let mut child = fed(&[], b"");
    interrupt(&child);
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "ended by the signal");
}

/// Sends SIGINT once it is caught, and waits until it has arrived.
fn interrupt(child: &Child) {
    wait_until(|| has_sigint(child, "SigCgt:"));
    let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    wait_until(|| !has_sigint(child, "ShdPnd:"));
}

/// Whether SIGINT is in a set of signals that the kernel tells about the process.
fn has_sigint(child: &Child, set: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix(set)).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap() & 0b10 != 0
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited for too long");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_runs_are_compared_leg_by_leg() {
    let folder = tempfile::tempdir().unwrap();
    let slower = folder.path().join("slower");
    // The first message's last stamp, 9 us after the one before, comes 69 us later.
    let records = fs::read_to_string(data("chain.jsonl")).unwrap();
    let mut lines: Vec<_> = records.lines().take(2).map(str::to_owned).collect();
    let faster = folder.path().join("faster");
    fs::write(&faster, lines.join("\n")).unwrap();
    lines[1] = lines[1].replace("50000069000", "50000138000").replace("\"broker\"", "\"b2\"");
    fs::write(&slower, lines.join("\n")).unwrap();
    let [a, b] = [faster.to_str().unwrap(), slower.to_str().unwrap()];
    let told = run(&["compare", a, b]);
    assert_eq!((told.status.code(), text(&told.stderr)), (Some(0), ""));
    let line = |start: &str| {
        let found = text(&told.stdout).lines().find(|line| line.starts_with(start)).unwrap();
        found.split_whitespace().rev().take(4).collect::<Vec<_>>()
    };
    assert_eq!(line("end to end CREATE"), ["69.000", "2.000", "138.000", "69.000"]);
    assert_eq!(line("hop publisher -> broker"), ["-", "-", "-", "20.000"]);
    assert_eq!(line("hop publisher -> b2"), ["-", "-", "20.000", "-"]);

    let json = run(&["compare", "--json", a, b]);
    assert!(text(&json.stdout).contains("\"p50\":{\"ratio\":2.0,\"difference_ns\":\"69000\"}"));
    let missing = run(&["compare", a, "/nonexistent/records"]);
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(run(&["compare", a]).status.code(), Some(2));
}

#[test]
fn a_file_of_kernel_records_is_read_first_wherever_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let side = folder.path().join("side");
    let record = "{\"hopline\":\"kernel\",\"schema\":1,\"node\":\"publisher\",\"id\":\
        \"00000000000000000000000000abc000\",\"send_ns\":\"50000006000\",\"stamps\":[\
        {\"stage\":\"KERNEL_SCHED\",\"at_ns\":\"50000007000\",\"upper_bound\":true}]}\n";
    fs::write(&side, record).unwrap();
    let told = run(&["--trace", "1", &chain(), side.to_str().unwrap()]);
    assert!(text(&told.stdout).contains("KERNEL_SCHED: 0.001  <="), "{}", text(&told.stdout));
}

/// The program on a terminal of its own, and what that shows until it ends; `meanwhile` has what
/// was shown so far, and the keyboard.
fn on_a_terminal(
    arguments: &str,
    no_color: &str,
    meanwhile: impl FnOnce(&dyn Fn() -> String, &mut dyn Write),
) -> (String, bool) {
    let program = env!("CARGO_BIN_EXE_hopline-report");
    let command = format!("stty cols 120 rows 20; exec {program} {arguments}");
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &command, "/dev/null"])
        .env("NO_COLOR", no_color)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("script, of util-linux: {error}"));
    let shown = Arc::new(Mutex::new(Vec::new()));
    let reader = std::thread::spawn({
        let (shown, mut output) = (shown.clone(), terminal.stdout.take().unwrap());
        move || {
            let mut octets = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut octets) {
                shown.lock().unwrap().extend_from_slice(&octets[..n]);
            }
        }
    });
    let so_far = || String::from_utf8_lossy(&shown.lock().unwrap()).into_owned();
    let mut keyboard = terminal.stdin.take().unwrap();
    meanwhile(&so_far, &mut keyboard);
    let status = terminal.wait().unwrap();
    drop(keyboard);
    reader.join().unwrap();
    (so_far(), status.success())
}

const SCREEN_ON: &str = "\u{1b}[?1049h";
const SCREEN_OFF: &str = "\u{1b}[?1049l";

#[test]
fn a_growing_file_is_watched_until_ctrl_c_and_then_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records");
    let lines = fs::read_to_string(data("chain.jsonl")).unwrap();
    let (before, after) = lines.split_at(lines.match_indices('\n').nth(2).unwrap().0 + 1);
    fs::write(&path, before).unwrap();
    let arguments = format!("--watch --late 100us {}", path.display());
    let (shown, success) = on_a_terminal(&arguments, "", |shown, keyboard| {
        wait_until(|| shown().contains("publisher"));
        let file = fs::OpenOptions::new().append(true).open(&path);
        file.unwrap().write_all(after.as_bytes()).unwrap();
        wait_until(|| shown().contains("no-credit"));
        keyboard.write_all(b"\x03").unwrap();
    });
    assert!(success, "{shown}");
    let (screen, report) = shown.split_once(SCREEN_OFF).unwrap();
    assert!(screen.contains(SCREEN_ON) && screen.contains("p99 of each second"), "{screen:?}");
    assert!(screen.contains("\u{1b}[36m") || screen.contains("[38;5;6m"), "a colour: {screen:?}");
    assert!(report.contains("messages 5, untimed 1"), "{report}");
}

#[test]
fn a_pipe_is_watched_to_its_end_and_without_colours_if_that_is_wished() {
    let arguments = format!("--watch --slowest 1 < {}", data("chain.jsonl").display());
    let (shown, success) = on_a_terminal(&arguments, "1", |_, _| {});
    assert!(success, "{shown}");
    let (screen, report) = shown.split_once(SCREEN_OFF).unwrap();
    assert!(screen.contains(SCREEN_ON), "{screen:?}");
    assert!(!screen.contains("\u{1b}[36m") && !screen.contains("[38;5;"), "{screen:?}");
    assert!(report.contains("+ e2e: 1.567") && report.contains("messages 5"), "{report}");
}

#[test]
fn without_a_terminal_there_is_nothing_to_watch() {
    let output = run(&["--watch", data("chain.jsonl").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--watch needs a terminal"), "{output:?}");
}
