//! The readers in Python and JavaScript, run on octets in hexadecimal: what they show is what this
//! crate reads, and what it refuses they refuse.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::support::{checkout_path, example, shown};
use hopline_timeline::{ClockDomain, ClockKind, Instant, Node, Stamp, Timeline, TimelineId};

const READERS: [(&str, &str); 2] =
    [("python3", "tests/readers/read_timeline.py"), ("node", "tests/readers/read_timeline.js")];

/// Runs every reader whose interpreter is installed on timelines, one a line.
fn read(timelines: &[Vec<u8>]) -> Vec<Output> {
    let hex = |octets: &Vec<u8>| octets.iter().map(|o| format!("{o:02x}")).collect::<String>();
    let lines: String = timelines.iter().map(|octets| hex(octets) + "\n").collect();
    READERS.iter().filter_map(|(program, path)| run(program, path, &lines)).collect()
}

fn run(program: &str, path: &str, input: &str) -> Option<Output> {
    let mut command = Command::new(program);
    command.arg(checkout_path(path)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {path} is not tested, since {program} is not installed");
            return None;
        }
        Err(error) => panic!("{program}: {error}"),
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

/// A timeline with a stamp of every code, every kind of instant, and marks.
fn everything() -> Timeline {
    let instants = [Some(i64::MAX), Some(i64::MIN + 1), Some(-1), Some(0), None];
    let clock = ClockDomain { kind: ClockKind::Other(200), host: [0xfe; 16], ..Default::default() };
    let stamp = |code: u8| Stamp {
        node: usize::from(code / 64),
        stage: code,
        detail: 255 - code,
        at: instants[usize::from(code) % instants.len()].map(Instant::from_nanos),
    };
    Timeline {
        id: TimelineId([0xa5; 16]),
        overflow: true,
        dropped: 40_000,
        nodes: vec![Node::new("", clock), Node::new("knöten \u{1f980} 2", clock)],
        stamps: (1..0x80).map(stamp).collect(),
        ..Timeline::default()
    }
}

#[test]
fn the_readers_show_what_is_read_here() {
    let header_alone = Timeline { id: TimelineId([1; 16]), ..Timeline::default() };
    let timelines = [example(), everything().encode(), header_alone.encode()];
    let expected: String =
        timelines.iter().map(|octets| shown(&Timeline::parse(octets).unwrap())).collect();
    for output in read(&timelines) {
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn the_readers_refuse_what_is_refused_here() {
    let whole = example();
    let header = &whole[..20];
    let hostile = [
        whole[..19].to_vec(),
        [&[2], &whole[1..]].concat(),
        whole[..21].to_vec(),
        whole[..57].to_vec(),
        whole[..60].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        [header, &[0; 10]].concat(),
        [header, &[5; 10]].concat(),
        [header, &[0x80, 32], &[1; 32]].concat(),
        [header, &[0x81, 1]].concat(),
    ];
    for octets in hostile {
        assert!(Timeline::parse(&octets).is_err(), "{octets:02x?}");
        for output in read(std::slice::from_ref(&octets)) {
            assert_eq!(output.status.code(), Some(1), "{octets:02x?}");
            assert!(output.stdout.is_empty());
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.starts_with("read_timeline.") && said.lines().count() == 1, "{said}");
        }
    }
}
