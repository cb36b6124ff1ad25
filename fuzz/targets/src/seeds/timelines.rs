use hopline_timeline::{Appender, ClockDomain, Instant, Node, Stage, TimelineId, new_timeline};

/// Timelines of one to five nodes, some of them full, one with a record of a kind to come.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let sizes = [(0, 0), (1, 2), (2, 4), (3, 7), (5, 60), (8, 31)];
    let mut seeds: Vec<_> = sizes.map(|(nodes, stamps)| seed(nodes, stamps)).into();
    let reserved = [&seed(1, 1)[..], &[0x90, 3, 1, 2, 3], &[5, 0, 0, 0, 0, 0, 0, 0, 0, 9]].concat();
    seeds.push(reserved);
    seeds
}

fn seed(nodes: usize, stamps: usize) -> Vec<u8> {
    let mut out = vec![3];
    new_timeline(TimelineId([7; 16]), &mut out);
    let mut appender = Appender::new(&mut out, 1).expect("just begun");
    for n in 0..nodes {
        appender.node(
            &Node::new(
                format!("node-{n}"),
                ClockDomain { host: [1; 16], ..ClockDomain::default() },
            )
            .record(),
        );
        for (stage, ns) in Stage::ALL.iter().cycle().zip(0..stamps) {
            appender.stamp(*stage, 1, Instant::from_nanos(ns as i64 * 1_000));
        }
    }
    out
}
