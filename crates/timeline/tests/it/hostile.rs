//! Octets that a peer may send as a timeline: each ends in an error that names the place, or is
//! kept; none in a panic.

use hopline_timeline::{
    ClockDomain, ClockKind, Instant, MAX_OCTETS, Node, Reserved, Stamp, Timeline, TimelineError,
    TimelineId,
};

const HEADER: [u8; 20] = [1, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7];

fn node(name: &str) -> Node {
    Node::new(name, ClockDomain { host: [1; 16], ..ClockDomain::default() })
}

fn stamp(code: u8, ns: i64) -> Vec<u8> {
    [&[code, 0], &ns.to_be_bytes()[..]].concat()
}

fn timeline(records: &[Vec<u8>]) -> Vec<u8> {
    [HEADER.to_vec(), records.concat()].concat()
}

#[test]
fn other_versions_are_refused_by_number() {
    for version in [0, 2, 0x80, 0xff] {
        let mut octets = HEADER;
        octets[0] = version;
        assert_eq!(Timeline::parse(&octets), Err(TimelineError::Version(version)));
        let alone = Timeline::parse(&octets[..1]);
        assert_eq!(alone, Err(TimelineError::Version(version)), "its header may be shorter");
    }
}

#[test]
fn a_cut_is_found_at_every_octet() {
    let reserved = vec![0x90, 3, 1, 2, 3];
    let records = [node("p").record(), stamp(2, 1), reserved, stamp(5, 2), node("q").record()];
    let whole = timeline(&records);
    let ends: Vec<usize> = (0..=records.len()).map(|n| timeline(&records[..n]).len()).collect();
    for length in 0..=whole.len() {
        let parsed = Timeline::parse(&whole[..length]);
        if length < HEADER.len() {
            assert_eq!(parsed, Err(TimelineError::TooShort { octets: length }));
        } else if ends.contains(&length) {
            assert_eq!(parsed.map(|timeline| timeline.encode()), Ok(whole[..length].to_vec()));
        } else {
            let offset = *ends.iter().rfind(|end| **end < length).unwrap();
            assert_eq!(parsed, Err(TimelineError::Truncated { offset }), "at {length}");
        }
    }
}

#[test]
fn the_ends_of_the_range_of_instants_are_read() {
    let instants = [i64::MAX, i64::MIN + 1, -1, 0, i64::MIN];
    let stamps = instants.map(|ns| stamp(5, ns)).concat();
    let parsed = Timeline::parse(&timeline(&[node("p").record(), stamps])).unwrap();
    let read: Vec<_> = parsed.stamps.iter().map(|stamp| stamp.at.map(Instant::as_nanos)).collect();
    assert_eq!(read, [Some(i64::MAX), Some(i64::MIN + 1), Some(-1), Some(0), None]);
    for from in &parsed.stamps {
        for to in &parsed.stamps {
            let _ = (parsed.delay(from, to), parsed.delay_ns(from, to));
        }
    }
}

#[test]
fn a_million_stamps_are_refused_at_once() {
    let stamps = stamp(5, 1).repeat(1_000_000);
    let octets = timeline(&[node("p").record(), stamps]);
    let length = octets.len();
    assert_eq!(Timeline::parse(&octets), Err(TimelineError::TooLong { octets: length }));
}

#[test]
fn the_257th_stamp_is_refused() {
    let with = |stamps: usize| timeline(&[node("p").record(), stamp(5, 1).repeat(stamps)]);
    assert_eq!(Timeline::parse(&with(256)).unwrap().stamps.len(), 256);
    assert!(with(257).len() < MAX_OCTETS);
    assert_eq!(Timeline::parse(&with(257)), Err(TimelineError::TooManyStamps));
}

#[test]
fn the_greatest_number_of_nodes_is_bounded_by_the_octets() {
    let nodes = node("").record().repeat((MAX_OCTETS - HEADER.len()) / 35);
    assert_eq!(Timeline::parse(&timeline(&[nodes])).unwrap().nodes.len(), 116);
}

#[test]
fn a_type_octet_of_zero_is_refused() {
    let octets = timeline(&[node("p").record(), stamp(0, 1)]);
    assert_eq!(Timeline::parse(&octets), Err(TimelineError::RecordType { offset: 56 }));
}

#[test]
fn a_stamp_needs_a_node() {
    let octets = timeline(&[vec![0x85, 0], stamp(5, 1), node("p").record()]);
    assert_eq!(Timeline::parse(&octets), Err(TimelineError::StampWithoutNode { offset: 22 }));
}

#[test]
fn a_node_record_may_be_too_short() {
    let octets = timeline(&[[&[0x80, 32][..], &[1; 32]].concat()]);
    assert_eq!(Timeline::parse(&octets), Err(TimelineError::ShortNode { offset: 20 }));
}

#[test]
fn equal_nodes_stay_apart() {
    let records = [node("p").record(), stamp(4, 1), node("p").record(), stamp(5, 2)];
    let parsed = Timeline::parse(&timeline(&records)).unwrap();
    assert_eq!(parsed.nodes, [node("p"), node("p")]);
    assert_eq!(parsed.stamps.iter().map(|stamp| stamp.node).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(parsed.encode(), timeline(&records));
}

#[test]
fn what_is_not_known_comes_out_as_it_came_in() {
    let odd_clock = ClockDomain { kind: ClockKind::Other(9), ..ClockDomain::default() };
    let octets = timeline(&[
        vec![0x81, 0],
        node("without stamps").record(),
        vec![0xff, 2, 0, 0],
        Node::new("odd", odd_clock).record(),
        vec![0x82, 1, 5],
        stamp(0x7f, 1),
        vec![0x83, 0],
        stamp(0x11, i64::MIN),
        node("last").record(),
        vec![0x84, 0],
    ]);
    let parsed = Timeline::parse(&octets).unwrap();
    assert_eq!(parsed.stamps.iter().map(|stamp| stamp.stage).collect::<Vec<_>>(), [0x7f, 0x11]);
    assert_eq!(parsed.stamps[0].known_stage(), None);
    assert_eq!(parsed.nodes[1].clock.kind, ClockKind::Other(9));
    assert_eq!(parsed.reserved.len(), 5);
    assert_eq!(parsed.encode(), octets);
}

#[test]
fn the_marks_of_the_header_come_out_as_they_came_in() {
    for dropped in [0, 1, u16::MAX] {
        let mut octets = timeline(&[node("p").record(), stamp(5, 1)]);
        octets[1] = 1;
        octets[2..4].copy_from_slice(&dropped.to_be_bytes());
        let parsed = Timeline::parse(&octets).unwrap();
        assert!(parsed.overflow);
        assert_eq!((parsed.dropped, parsed.encode()), (dropped, octets));
    }
}

#[test]
fn unknown_flags_are_ignored() {
    let mut octets = timeline(&[node("p").record()]);
    octets[1] = 0b1111_1110;
    assert!(!Timeline::parse(&octets).unwrap().overflow);
}

/// A timeline put together by hand can hold what no octets can say.
#[test]
fn nonsense_put_together_by_hand_is_dropped_and_marked() {
    let at = Some(Instant::from_nanos(1));
    let good = Stamp { node: 0, stage: 2, detail: 0, at };
    let by_hand = Timeline {
        id: TimelineId([7; 16]),
        nodes: vec![node("a"), node("b")],
        stamps: vec![
            good,
            Stamp { node: 1, ..good },
            good,
            Stamp { node: usize::MAX, ..good },
            Stamp { node: 2, ..good },
            Stamp { stage: 0, ..good },
            Stamp { stage: 0x80, ..good },
        ],
        ..Timeline::default()
    };
    let read = Timeline::parse(&by_hand.encode()).unwrap();
    assert_eq!((read.overflow, read.dropped), (true, 4));
    assert_eq!(read.nodes, [node("a"), node("b"), node("a")], "its record once more");
    assert_eq!(read.stamps, [0, 1, 2].map(|node| Stamp { node, ..good }));

    for (kind, octets) in [(0x80, 1), (0x05, 1), (0xff, 256)] {
        let odd = Reserved { nodes_before: 9, stamps_before: 9, kind, content: vec![0; octets] };
        let by_hand = Timeline { reserved: vec![odd], ..Timeline::default() };
        let read = Timeline::parse(&by_hand.encode()).unwrap();
        assert!(read.overflow && read.reserved.is_empty());
    }
}

#[test]
fn a_timeline_beyond_the_limits_is_cut_and_marked() {
    let stamps: Vec<Stamp> =
        (0..1_000).map(|node| Stamp { node, stage: 5, detail: 0, at: None }).collect();
    let by_hand = Timeline { nodes: vec![node("n"); 1_000], stamps, ..Timeline::default() };
    let octets = by_hand.encode();
    let read = Timeline::parse(&octets).unwrap();
    assert!(octets.len() <= MAX_OCTETS && read.overflow);
    assert_eq!(read.stamps.len() + usize::from(read.dropped), 1_000);
}
