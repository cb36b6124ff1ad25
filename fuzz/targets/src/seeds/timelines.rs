use hopline_timeline::{Appender, ClockDomain, Instant, Node, Stage, TimelineId, new_timeline};

/// Timelines of some nodes, near the limit of octets or of stamps or far from both, to which few or
/// many stamps are appended; one with a record of a kind to come.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let sizes =
        [(0, 0, 3), (1, 2, 3), (2, 4, 3), (3, 7, 0), (5, 51, 3), (8, 31, 255), (70, 2, 255)];
    let mut seeds: Vec<_> = sizes.map(|(nodes, stamps, more)| seed(nodes, stamps, more)).into();
    let reserved =
        [&seed(1, 1, 1)[..], &[0x90, 3, 1, 2, 3], &[5, 0, 0, 0, 0, 0, 0, 0, 0, 9]].concat();
    seeds.push(reserved);
    seeds
}

fn seed(nodes: usize, stamps: usize, more: u8) -> Vec<u8> {
    let clock = ClockDomain { host: [1; 16], ..ClockDomain::default() };
    let mut out = vec![more];
    new_timeline(TimelineId([7; 16]), &mut out);
    let mut appender = Appender::new(&mut out, 1).expect("just begun");
    for n in 0..nodes {
        appender.node(&Node::new(format!("node-{n}"), clock).record());
        for (stage, ns) in Stage::ALL.iter().cycle().zip(0..stamps) {
            appender.stamp(*stage, 1, Instant::from_nanos(ns as i64 * 1_000));
        }
    }
    out
}
