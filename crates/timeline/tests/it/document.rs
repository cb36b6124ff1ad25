//! `docs/timeline.md` says what the code does: its examples are read here, and its excerpts of the
//! readers are compared with the programs.

use crate::support::{checkout_file, document, example, fenced, shown};
use hopline_timeline::record::{MessageRecord, Record};
use hopline_timeline::{ANNOTATION, MAX_NAME_OCTETS, Stage, Stamp, Timeline, Wait};
use hopline_timeline::{ClockDomain, ClockKind, Instant, MAX_OCTETS, MAX_STAMPS, Node, Reserved};

fn stamp(node: usize, stage: Stage, wait: Wait, ns: Option<i64>) -> Stamp {
    Stamp { node, stage: stage.code(), detail: wait.code(), at: ns.map(Instant::from_nanos) }
}

/// What the document says that its example says.
fn stated() -> Timeline {
    let host = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes();
    let publisher = ClockDomain {
        kind: ClockKind::Monotonic,
        host,
        wall_offset_ns: 1_700_000_000_000_000_000,
        error_bound_ns: 500_000,
    };
    let broker = ClockDomain {
        wall_offset_ns: 1_700_000_000_000_000_250,
        error_bound_ns: ClockDomain::UNSYNCHRONISED,
        ..publisher
    };
    Timeline {
        id: "4bf92f3577b34da6a3ce929d0e0e4736".parse().unwrap(),
        overflow: false,
        dropped: 0,
        nodes: vec![Node::new("pub", publisher), Node::new("q", broker)],
        stamps: vec![
            stamp(0, Stage::Create, Wait::None, Some(2_000_000_000)),
            stamp(0, Stage::Send, Wait::None, Some(2_000_185_000)),
            stamp(1, Stage::Receive, Wait::None, Some(2_000_231_000)),
            stamp(1, Stage::Dequeue, Wait::NoCredit, Some(2_000_300_000)),
            stamp(1, Stage::Send, Wait::None, None),
        ],
        reserved: vec![Reserved {
            nodes_before: 2,
            stamps_before: 4,
            kind: 0x81,
            content: vec![0xca, 0xfe],
        }],
    }
}

#[test]
fn the_example_says_what_stands_beside_it() {
    let timeline = Timeline::parse(&example()).unwrap();
    assert_eq!(timeline, stated());
    assert_eq!(timeline.encode(), example());
    let hop = timeline.hops().next().unwrap();
    assert_eq!(timeline.delay_ns(hop.from, hop.to), Some(46_000));
    assert!(document().contains("took 46,000 ns"));
    assert!(fenced("text").contains(&shown(&timeline)), "what the readers show of it");
}

#[test]
fn the_lines_of_json_are_of_every_kind() {
    let lines = fenced("json");
    let kinds =
        ["header", "message", "untimed", "side", "kernel", "side_summary", "connection", "summary"];
    assert_eq!(lines.len(), kinds.len());
    for (line, kind) in lines.iter().zip(kinds) {
        assert!(line.starts_with(&format!(r#"{{"hopline":"{kind}","schema":1,"#)));
        let record = Record::parse_line(line.as_bytes()).unwrap();
        let mut again = Vec::new();
        record.write_line(&mut again).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), *line);
    }
}

#[test]
fn the_message_in_json_is_the_example() {
    let Ok(Record::Message(MessageRecord { nodes, stamps, id, .. })) =
        Record::parse_line(fenced("json")[1].as_bytes())
    else {
        panic!("the second line of JSON is no message");
    };
    let record = MessageRecord { nodes, stamps, id, ..MessageRecord::default() };
    assert_eq!(record.timeline(), Ok(Timeline { reserved: Vec::new(), ..stated() }));
}

#[test]
fn the_excerpts_are_parts_of_the_readers() {
    for (language, file, function) in [
        ("python", "read_timeline.py", "def read_timeline("),
        ("javascript", "read_timeline.js", "function* readTimeline("),
    ] {
        let program = checkout_file(&format!("tests/readers/{file}"));
        let excerpts = fenced(language);
        assert_eq!(excerpts.len(), 2, "{language}: the function, and where its octets come from");
        assert!(excerpts[0].contains(function));
        for excerpt in excerpts {
            assert!(program.contains(&excerpt), "{file} no longer holds:\n{excerpt}");
        }
        for stage in Stage::ALL {
            assert!(program.contains(stage.name()), "{file} does not know {}", stage.name());
        }
    }
}

#[test]
fn stages_waits_and_limits_stand_in_the_text() {
    let text = document();
    for stage in Stage::ALL {
        let row = format!("\n| {} | {} | ", stage.code(), stage.name());
        assert!(text.contains(&row), "no row for {stage:?}");
    }
    for wait in &Wait::ALL[1..] {
        assert!(text.contains(&format!("{} `{}`", wait.code(), wait.name())), "{wait:?}");
    }
    assert!(text.contains(&format!("`{ANNOTATION}`")));
    assert_eq!((MAX_OCTETS, MAX_STAMPS, MAX_NAME_OCTETS), (4_096, 256, 64));
    assert!(text.contains("- 4,096 octets and 256 stamps.") && text.contains("- 64 octets of a"));
    assert_eq!(hopline_timeline::record::MAX_LINE_OCTETS, 262_144);
    assert!(text.contains("262,144 octets"));
}
