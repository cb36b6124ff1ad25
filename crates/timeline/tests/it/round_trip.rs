//! What is written can be read again, and nothing that is read can do harm.

use hopline_timeline::record::{MessageInfo, MessageRecord, Record};
use hopline_timeline::{
    Appender, ClockDomain, ClockKind, Instant, Node, Reserved, Stage, Stamp, Timeline, TimelineId,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a writer puts next.
#[derive(Clone, Debug)]
enum Step {
    Node(Node),
    Stamp(u8, u8, Option<i64>),
    Reserved(u8, Vec<u8>),
}

fn clock() -> impl Strategy<Value = ClockDomain> {
    (any::<u8>(), any::<[u8; 16]>(), any::<i64>(), any::<u64>()).prop_map(
        |(kind, host, wall_offset_ns, error_bound_ns)| ClockDomain {
            kind: ClockKind::from_code(kind),
            host,
            wall_offset_ns,
            error_bound_ns,
        },
    )
}

fn node() -> impl Strategy<Value = Node> {
    ("[^\\p{Cc}]{0,16}", clock()).prop_map(|(name, clock)| Node { name, clock })
}

fn step() -> impl Strategy<Value = Step> {
    let instant = proptest::option::of((i64::MIN + 1)..=i64::MAX);
    prop_oneof![
        2 => node().prop_map(Step::Node),
        8 => (1..0x80_u8, any::<u8>(), instant).prop_map(|(s, d, at)| Step::Stamp(s, d, at)),
        1 => (0x81_u8.., vec(any::<u8>(), 0..16)).prop_map(|(kind, c)| Step::Reserved(kind, c)),
    ]
}

/// A timeline within the limits, as some writers may have left it.
fn timeline() -> impl Strategy<Value = Timeline> {
    let marks = prop_oneof![Just((false, 0)), any::<u16>().prop_map(|dropped| (true, dropped))];
    (any::<[u8; 16]>(), marks, node(), vec(step(), 0..25)).prop_map(
        |(id, (overflow, dropped), first, steps)| {
            let id = TimelineId(id);
            let nodes = vec![first];
            let mut timeline = Timeline { id, overflow, dropped, nodes, ..Timeline::default() };
            steps.into_iter().for_each(|step| put(&mut timeline, step));
            timeline
        },
    )
}

fn put(timeline: &mut Timeline, step: Step) {
    let (nodes_before, stamps_before) = (timeline.nodes.len(), timeline.stamps.len());
    match step {
        Step::Node(node) => timeline.nodes.push(node),
        Step::Stamp(stage, detail, ns) => timeline.stamps.push(Stamp {
            node: nodes_before - 1,
            stage,
            detail,
            at: ns.map(Instant::from_nanos),
        }),
        Step::Reserved(kind, content) => {
            timeline.reserved.push(Reserved { nodes_before, stamps_before, kind, content });
        }
    }
}

/// A changed header may count dropped stamps without the flag that says so.
fn with_clear_marks(timeline: Timeline) -> Timeline {
    Timeline { overflow: timeline.overflow || timeline.dropped > 0, ..timeline }
}

proptest! {
    #[test]
    fn encode_then_parse(timeline in timeline()) {
        prop_assert_eq!(Timeline::parse(&timeline.encode()), Ok(timeline));
    }

    #[test]
    fn any_octets_do_no_harm(mut octets in vec(any::<u8>(), 0..200)) {
        if let Some(first) = octets.first_mut() {
            *first = 1;
        }
        if let Ok(timeline) = Timeline::parse(&octets) {
            prop_assert_eq!(Timeline::parse(&timeline.encode()), Ok(with_clear_marks(timeline)));
        }
    }

    #[test]
    fn changed_octets_do_no_harm(
        timeline in timeline(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut octets = timeline.encode();
        for (at, value) in changes {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        if let Ok(timeline) = Timeline::parse(&octets) {
            timeline.readings().for_each(drop);
            for span in timeline.hops().chain(timeline.stays()) {
                let _ = timeline.delay(span.from, span.to);
            }
            prop_assert_eq!(Timeline::parse(&timeline.encode()), Ok(with_clear_marks(timeline)));
        }
        if let Some(mut appender) = Appender::new(&mut octets, 0) {
            appender.stamp(Stage::Send, 0, Instant::UNFILLED);
        }
    }

    #[test]
    fn a_record_leads_back_to_its_timeline(mut timeline in timeline(), seq: u64, address: String) {
        timeline.reserved.clear();
        let info = MessageInfo { seq, address, ..MessageInfo::default() };
        let record = Record::Message(MessageRecord::new(info, &timeline));
        let mut line = Vec::new();
        record.write_line(&mut line).unwrap();
        let read = Record::parse_line(&line).unwrap();
        prop_assert_eq!(&read, &record);
        let Record::Message(message) = read else { unreachable!() };
        prop_assert_eq!(message.timeline(), Ok(timeline));
    }

    #[test]
    fn no_line_does_harm(line in vec(any::<u8>(), 0..200), text: String) {
        let _ = Record::parse_line(&line);
        let quoted = serde_json::to_string(&text).unwrap();
        let _ = Record::parse_line(format!(r#"{{"hopline":{quoted}}}"#).as_bytes());
    }
}
