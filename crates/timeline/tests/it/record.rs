//! The JSON-lines schema, and what becomes of lines that do not keep to it.

use hopline_timeline::record::{
    ConnectionRecord, HeaderRecord, Held, HeldRecord, KernelRecord, KernelStamp, MAX_LINE_OCTETS,
    MessageInfo, MessageRecord, Record, Schema, SocketRecord, SummaryRecord, TcpRecord,
    UntimedRecord,
};
use hopline_timeline::{
    ClockDomain, ClockKind, Instant, Node, Stamp, Timeline, TimelineError, TimelineId,
};

const CLOCK: ClockDomain = ClockDomain {
    kind: ClockKind::Monotonic,
    host: [0xab; 16],
    wall_offset_ns: i64::MIN,
    error_bound_ns: u64::MAX,
};

fn stamp(stage: u8, detail: u8, ns: Option<i64>) -> Stamp {
    Stamp { node: 0, stage, detail, at: ns.map(Instant::from_nanos) }
}

fn message(stamps: Vec<Stamp>) -> MessageRecord {
    let nodes = vec![Node::new("pub", CLOCK)];
    let timeline = Timeline { id: TimelineId([1; 16]), nodes, stamps, ..Timeline::default() };
    let info = MessageInfo { seq: 17, address: "q".into(), octets: 100, ..MessageInfo::default() };
    MessageRecord::new(info, &timeline)
}

fn line(record: &Record) -> String {
    let mut out = Vec::new();
    record.write_line(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The record's line is this text, and the text is read as the record.
fn assert_both_ways(record: Record, text: &str) {
    assert_eq!(line(&record), format!("{text}\n"));
    assert_eq!(Record::parse_line(text.as_bytes()), Ok(record.clone()));
    assert_eq!(Record::parse_line(format!("{text}\r\n").as_bytes()), Ok(record));
}

fn why_not(text: &str) -> String {
    match Record::parse_line(text.as_bytes()) {
        Err(TimelineError::Line { cause }) => cause,
        other => panic!("{text} is read as {other:?}"),
    }
}

#[test]
fn a_header() {
    let socket = SocketRecord {
        nodelay: true,
        send_buffer: 1,
        receive_buffer: 2,
        notsent_lowat: u32::MAX,
        local: "[::1]:9".into(),
        peer: "[::1]:5672".into(),
    };
    let record = HeaderRecord {
        resolution_ns: Some(1),
        schema: Schema,
        node: "sub".into(),
        clock: CLOCK.into(),
        socket: Some(socket),
        address: "q".into(),
    };
    assert_both_ways(
        Record::Header(record),
        concat!(
            r#"{"hopline":"header","schema":1,"node":"sub","clock":{"kind":"monotonic","#,
            r#""host":"abababababababababababababababab","#,
            r#""wall_offset_ns":"-9223372036854775808","error_bound_ns":"18446744073709551615"},"#,
            r#""resolution_ns":1,"socket":{"nodelay":true,"send_buffer":1,"receive_buffer":2,"#,
            r#""notsent_lowat":4294967295,"local":"[::1]:9","peer":"[::1]:5672"},"address":"q"}"#,
        ),
    );
}

#[test]
fn a_message() {
    let stamps = vec![
        stamp(2, 0, Some(-123)),
        stamp(5, 0, None),
        stamp(9, 2, Some(i64::MAX)),
        stamp(9, 77, Some(1)),
        stamp(77, 3, Some(0)),
    ];
    assert_both_ways(
        Record::Message(message(stamps)),
        concat!(
            r#"{"hopline":"message","schema":1,"seq":17,"id":"01010101010101010101010101010101","#,
            r#""address":"q","octets":100,"message_id":null,"redelivered":false,"#,
            r#""overflow":false,"dropped":0,"nodes":[{"name":"pub","kind":"monotonic","#,
            r#""host":"abababababababababababababababab","#,
            r#""wall_offset_ns":"-9223372036854775808","error_bound_ns":"18446744073709551615"}],"#,
            r#""stamps":[{"node":0,"stage":"CREATE","at_ns":"-123"},"#,
            r#"{"node":0,"stage":"SEND","at_ns":null},"#,
            r#"{"node":0,"stage":"DEQUEUE","at_ns":"9223372036854775807","wait":"no-credit"},"#,
            r##"{"node":0,"stage":"DEQUEUE","at_ns":"1","detail":77},"##,
            r##"{"node":0,"stage":"#77","at_ns":"0","detail":3}]}"##,
        ),
    );
}

#[test]
fn an_untimed_message_and_a_summary() {
    let untimed = UntimedRecord { seq: 18, address: "q".into(), octets: 9, ..Default::default() };
    let why = UntimedRecord { why: Some("a \"cut\"\n".into()), ..untimed.clone() };
    let text = r#"{"hopline":"untimed","schema":1,"seq":18,"address":"q","octets":9"#;
    assert_both_ways(Record::Untimed(untimed), &format!("{text}}}"));
    assert_both_ways(Record::Untimed(why), &format!(r#"{text},"why":"a \"cut\"\n"}}"#));

    let summary = SummaryRecord {
        received: 3,
        timelines: 2,
        malformed: 1,
        duration_ns: u64::MAX,
        ..Default::default()
    };
    assert_both_ways(
        Record::Summary(summary),
        concat!(
            r#"{"hopline":"summary","schema":1,"received":3,"timelines":2,"malformed":1,"#,
            r#""duration_ns":"18446744073709551615"}"#,
        ),
    );
}

#[test]
fn what_the_kernel_did() {
    let at = Instant::from_nanos;
    let record = KernelRecord {
        node: "pub".into(),
        id: [1; 16],
        send: Some(at(-5)),
        held: Some(Held::Nagle),
        stamps: vec![
            KernelStamp { stage: 13, at: Some(at(7)), upper_bound: true, retransmitted: false },
            KernelStamp { stage: 14, at: Some(at(8)), upper_bound: false, retransmitted: true },
        ],
        ..Default::default()
    };
    let text = concat!(
        r#"{"hopline":"kernel","schema":1,"node":"pub","id":"01010101010101010101010101010101","#,
        r#""send_ns":"-5","held":"nagle","#,
        r#""stamps":[{"stage":"KERNEL_SCHED","at_ns":"7","upper_bound":true},"#,
        r#"{"stage":"KERNEL_SEND","at_ns":"8","retransmitted":true}]}"#,
    );
    assert_both_ways(Record::Kernel(record.clone()), text);
    let later = Record::parse_line(text.replace("nagle", "dusk").as_bytes());
    let unknown = KernelRecord { held: Some(Held::Unknown), ..record };
    assert_eq!(later, Ok(Record::Kernel(unknown)));
    for &held in Held::ALL {
        assert_eq!(Held::from_name(held.name()), Some(held));
    }
}

#[test]
fn what_passed_over_a_connection() {
    let tcp = TcpRecord { busy_us: Some(u64::MAX), retransmits: 2, ..TcpRecord::default() };
    let record = ConnectionRecord {
        node: "pub".into(),
        held: HeldRecord { nagle: u64::MAX, ..HeldRecord::default() },
        tcp: Some(tcp),
        ..Default::default()
    };
    let record = Record::Connection(record);
    let text = line(&record);
    assert!(text.contains(r#""nagle":"18446744073709551615""#), "{text}");
    assert!(text.contains(r#""busy_us":"18446744073709551615""#), "{text}");
    assert_eq!(Record::parse_line(text.as_bytes()), Ok(record));
    // An old kernel tells less.
    let text = text.replace(r#""busy_us":"18446744073709551615","#, "");
    let Ok(Record::Connection(read)) = Record::parse_line(text.as_bytes()) else {
        panic!("{text}")
    };
    assert_eq!(read.tcp.and_then(|tcp| tcp.busy_us), None);
}

#[test]
fn what_a_later_version_adds_is_passed_over() {
    let unknown = r#"{"hopline":"weather","schema":1,"deep":[{"a":[[]]}],"at_ns":"7"}"#;
    assert_eq!(Record::parse_line(unknown.as_bytes()), Ok(Record::Other));

    let known = message(vec![stamp(9, 2, Some(1))]);
    let text = line(&Record::Message(known.clone()))
        .replace(r#""seq""#, r#""colour":{"red":[1,2]},"seq""#)
        .replace(r#""name""#, r#""zone":null,"name""#)
        .replace(r#""at_ns""#, r#""cpu":3,"at_ns""#);
    assert_eq!(Record::parse_line(text.as_bytes()), Ok(Record::Message(known)));

    let text = text.replace("no-credit", "no-such-reason");
    let Ok(Record::Message(read)) = Record::parse_line(text.as_bytes()) else { panic!("{text}") };
    assert_eq!(read.stamps[0].wait, None);
}

#[test]
fn what_is_not_known_is_not_written() {
    let mut out = b"before".to_vec();
    assert!(matches!(Record::Other.write_line(&mut out), Err(TimelineError::Line { .. })));
    assert_eq!(out, b"before");
}

#[test]
fn fields_that_were_left_out_have_their_usual_values() {
    let text = concat!(
        r#"{"stamps":[],"nodes":[],"octets":1,"address":"q","#,
        r#""id":"01010101010101010101010101010101","seq":1,"hopline":"message"}"#
    );
    let Ok(Record::Message(read)) = Record::parse_line(text.as_bytes()) else { panic!("{text}") };
    assert_eq!(
        (read.message_id, read.redelivered, read.overflow, read.dropped),
        Default::default()
    );
}

#[test]
fn another_schema_is_refused() {
    for schema in ["0", "2", "1e3", "-1", "\"1\"", "null", "18446744073709551616"] {
        let text = format!(
            r#"{{"hopline":"untimed","schema":{schema},"seq":1,"address":"q","octets":9}}"#
        );
        assert!(!why_not(&text).is_empty());
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let good = line(&Record::Message(message(vec![stamp(2, 0, Some(1))])));
    for (from, to) in [
        (r#""at_ns":"1""#, r#""at_ns":"9223372036854775808""#),
        (r#""at_ns":"1""#, r#""at_ns":"-9223372036854775809""#),
        (r#""at_ns":"1""#, r#""at_ns":"1.5""#),
        (r#""at_ns":"1""#, r#""at_ns":"""#),
        (r#""at_ns":"1""#, r#""at_ns":1"#),
        (r#""error_bound_ns":"1"#, r#""error_bound_ns":"-1"#),
        (r#""stage":"CREATE""#, r#""stage":"create""#),
        (r#""stage":"CREATE""#, r##""stage":"#256""##),
        (r#""node":0"#, r#""node":-1"#),
        (r#""dropped":0"#, r#""dropped":65536"#),
        (r#""host":"ab"#, r#""host":"a"#),
        (r#""host":"ab"#, r#""host":"zz"#),
        (r#""kind":"monotonic""#, r#""kind":"tai""#),
        (r#""nodes":["#, r#""nodes":7,"x":["#),
    ] {
        assert!(good.contains(from));
        assert!(!why_not(&good.replacen(from, to, 1)).is_empty());
    }
}

#[test]
fn the_least_instant_is_one_that_was_not_filled_in() {
    let text = line(&Record::Message(message(vec![stamp(2, 0, Some(1))])));
    let text = text.replace(r#""at_ns":"1""#, r#""at_ns":"-9223372036854775808""#);
    let Ok(Record::Message(read)) = Record::parse_line(text.as_bytes()) else { panic!("{text}") };
    assert_eq!(read.stamps[0].at, None);
}

#[test]
fn a_stamp_of_a_node_that_is_not_listed_gives_no_timeline() {
    let mut record = message(vec![stamp(2, 0, Some(1))]);
    record.stamps[0].node = 1;
    assert_eq!(record.timeline(), Err(TimelineError::NodeIndex { node: 1, nodes: 1 }));
}

#[test]
fn what_is_no_record_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "{}",
        r#"{"hopline":7}"#,
        r#"{"hopline":"message"}"#,
        r#"{"hopline":"summary","schema":1,"received":3"#,
        "{\"hopline\":\"\u{0}\"}",
        &"[".repeat(100_000),
        &format!(r#"{{"hopline":"x","deep":{}}}"#, "[".repeat(100_000)),
    ] {
        why_not(text);
    }
    assert!(Record::parse_line(b"\xff\xfe").is_err());
}

#[test]
fn a_line_has_a_limit_both_ways() {
    let untimed = |octets| UntimedRecord { address: "x".repeat(octets), ..Default::default() };
    let rest = line(&Record::Untimed(untimed(0))).len() - 1;
    let longest = line(&Record::Untimed(untimed(MAX_LINE_OCTETS - rest)));
    assert!(Record::parse_line(longest.as_bytes()).is_ok());

    let octets = MAX_LINE_OCTETS + 1;
    let too_long = Err(TimelineError::LineTooLong { octets, max: MAX_LINE_OCTETS });
    let longer = longest.replacen('x', "xx", 1);
    assert_eq!(Record::parse_line(longer.as_bytes()).map(drop), too_long);
    let mut out = b"before".to_vec();
    let record = Record::Untimed(untimed(MAX_LINE_OCTETS - rest + 1));
    assert_eq!(record.write_line(&mut out), too_long);
    assert_eq!(out, b"before");
}

#[test]
fn the_fullest_timeline_fits_a_line() {
    let timelines = [(1, 256), (41, 0), (116, 0)];
    for (nodes, stamps) in timelines {
        let name = "\u{fffd}".repeat(if nodes > 41 { 0 } else { 21 });
        let timeline = Timeline {
            nodes: vec![Node::new(name, CLOCK); nodes],
            stamps: vec![stamp(9, 2, Some(i64::MIN + 1)); stamps],
            ..Timeline::default()
        };
        let read = Timeline::parse(&timeline.encode()).unwrap();
        assert_eq!((read.nodes.len(), read.stamps.len(), read.overflow), (nodes, stamps, false));
        let record = Record::Message(MessageRecord::new(MessageInfo::default(), &read));
        assert!(line(&record).len() < MAX_LINE_OCTETS / 8);
    }
}
