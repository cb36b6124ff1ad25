use crate::{ClockOffset, Node, Stage, Stamp, Timeline};

/// A stamp with all that is needed to show it.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub struct Reading<'a> {
    /// The stamp.
    pub stamp: &'a Stamp,
    /// The node that stamped.
    pub node: &'a Node,
    /// The wall-clock time in ns since 1970-01-01T00:00:00Z, as good as the node's clock was;
    /// `None` if the slot was not filled in or the node's kind of clock is not known.
    pub wall_ns: Option<i64>,
}

/// From one stamp to a later one: a hop or a stay.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct Span<'a> {
    /// Where it begins.
    pub from: &'a Stamp,
    /// Where it ends.
    pub to: &'a Stamp,
}

/// The time between two stamps.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct Delay {
    /// From the one to the other in ns; negative if the clocks say so.
    pub delay_ns: i64,
    /// By how much it can be wrong, in ns: 0 if both stamps are of one clock, else the least of
    /// what the nodes have found out about one another's clocks, and the sum of what the two hosts'
    /// kernels claimed for their wall clocks.
    pub error_bound_ns: u64,
}

/// Why there is no delay between two stamps.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug, thiserror::Error)]
pub enum Unmeasured {
    /// At least one of the stamps was never filled in.
    #[error("a stamp was never filled in")]
    Missing,
    /// Two clocks, of which no nodes have found out how far they are apart, and at least one host
    /// that says nothing about how right its wall clock is.
    #[error("the stamps are of two clocks that nothing ties together; synchronise both hosts")]
    Clocks,
    /// The instants are further apart than an `i64` of ns can say: nonsense from a node.
    #[error("the instants are too far apart to be true")]
    Range,
}

impl Timeline {
    /// The stamps in order of writing, each with its node and wall-clock time.
    pub fn readings(&self) -> impl Iterator<Item = Reading<'_>> {
        self.stamps.iter().filter_map(|stamp| {
            let node = self.nodes.get(stamp.node)?;
            let wall_ns = stamp.at.and_then(|at| node.clock.wall_ns(at));
            Some(Reading { stamp, node, wall_ns })
        })
    }

    /// The ways between nodes: each from the SEND of one node to the RECEIVE of the next one that
    /// stamps. Nodes between them that do not stamp are part of the hop.
    pub fn hops(&self) -> impl Iterator<Item = Span<'_>> {
        let mut sent: Option<&Stamp> = None;
        self.stamps.iter().filter_map(move |stamp| match stamp.known_stage() {
            Some(Stage::Send) => {
                sent = Some(stamp);
                None
            }
            Some(Stage::Receive) => {
                let from = sent.take().filter(|from| from.node < stamp.node)?;
                Some(Span { from, to: stamp })
            }
            _ => None,
        })
    }

    /// The ways through nodes: each from a node's RECEIVE to its next SEND.
    pub fn stays(&self) -> impl Iterator<Item = Span<'_>> {
        let mut received: Option<&Stamp> = None;
        self.stamps.iter().filter_map(move |stamp| match stamp.known_stage() {
            Some(Stage::Receive) => {
                received = Some(stamp);
                None
            }
            Some(Stage::Send) => {
                let from = received.take().filter(|from| self.is_same_node(from, stamp))?;
                Some(Span { from, to: stamp })
            }
            _ => None,
        })
    }

    /// The time from one stamp to another, with the bound of its error.
    ///
    /// Exact if both are of one clock; else by what the nodes on the way have found out about one
    /// another's clocks ([`Timeline::tie`]), or by the wall clocks, if those are known to be right
    /// within a bound: whichever has the smaller bound.
    ///
    /// # Errors
    /// [`Unmeasured`] rather than a wrong number.
    pub fn delay(&self, from: &Stamp, to: &Stamp) -> Result<Delay, Unmeasured> {
        let (from_at, to_at) = from.at.zip(to.at).ok_or(Unmeasured::Missing)?;
        let clock = |stamp: &Stamp| self.nodes.get(stamp.node).map(|node| node.clock);
        let (from_clock, to_clock) = clock(from).zip(clock(to)).ok_or(Unmeasured::Clocks)?;
        if from.node == to.node || from_clock.is_same_as(&to_clock) {
            let delay_ns = to_at.as_nanos().checked_sub(from_at.as_nanos());
            return Ok(Delay { delay_ns: delay_ns.ok_or(Unmeasured::Range)?, error_bound_ns: 0 });
        }
        let ways = [self.ahead(from.node, to.node), from_clock.ahead_by_walls(&to_clock)];
        let best = ways.into_iter().flatten().min_by_key(|offset| offset.error_bound_ns);
        let ClockOffset { ahead_ns, error_bound_ns } = best.ok_or(Unmeasured::Clocks)?;
        let between = i128::from(to_at.as_nanos()) - i128::from(from_at.as_nanos());
        let delay_ns = i64::try_from(between + i128::from(ahead_ns));
        Ok(Delay { delay_ns: delay_ns.map_err(|_| Unmeasured::Range)?, error_bound_ns })
    }

    /// The exact time from one stamp to another in ns; `None` unless both are filled in and of one
    /// clock. [`delay`](Self::delay) also compares wall clocks and says why there is no delay.
    pub fn delay_ns(&self, from: &Stamp, to: &Stamp) -> Option<i64> {
        let exact = self.delay(from, to).ok().filter(|delay| delay.error_bound_ns == 0);
        exact.map(|delay| delay.delay_ns)
    }

    fn is_same_node(&self, a: &Stamp, b: &Stamp) -> bool {
        let nodes = self.nodes.get(a.node).zip(self.nodes.get(b.node));
        a.node == b.node || nodes.is_some_and(|(a, b)| a.is_same_as(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockDomain, ClockKind, Instant};

    fn node(name: &str, host: u8) -> Node {
        let clock = ClockDomain { host: [host; 16], ..ClockDomain::default() };
        Node::new(name, clock)
    }

    fn stamp(node: usize, stage: Stage, ns: i64) -> Stamp {
        Stamp { node, stage: stage.code(), detail: 0, at: Some(Instant::from_nanos(ns)) }
    }

    /// Publisher, broker and subscriber on one host.
    fn chain() -> Timeline {
        Timeline {
            nodes: vec![node("p", 1), node("b", 1), node("s", 1)],
            stamps: vec![
                stamp(0, Stage::Create, 5),
                stamp(0, Stage::Send, 10),
                stamp(1, Stage::Receive, 30),
                stamp(1, Stage::Dequeue, 35),
                stamp(1, Stage::Send, 70),
                stamp(2, Stage::Receive, 150),
                stamp(2, Stage::NextEvent, 160),
            ],
            ..Timeline::default()
        }
    }

    /// The spans as (from node, to node, delay in ns).
    fn told<'a>(
        timeline: &'a Timeline,
        spans: impl Iterator<Item = Span<'a>>,
    ) -> Vec<(usize, usize, Option<i64>)> {
        let delay = |span: &Span<'_>| timeline.delay_ns(span.from, span.to);
        spans.map(|span| (span.from.node, span.to.node, delay(&span))).collect()
    }

    #[test]
    fn hops_lie_between_nodes_and_stays_within() {
        let chain = chain();
        assert_eq!(told(&chain, chain.hops()), [(0, 1, Some(20)), (1, 2, Some(80))]);
        assert_eq!(told(&chain, chain.stays()), [(1, 1, Some(40))]);
    }

    #[test]
    fn a_hop_spans_nodes_that_do_not_stamp() {
        let mut chain = chain();
        chain.stamps.retain(|stamp| stamp.node != 1);
        assert_eq!(told(&chain, chain.hops()), [(0, 2, Some(140))]);
        assert_eq!(told(&chain, chain.stays()), []);
    }

    #[test]
    fn a_hop_needs_its_own_send() {
        let mut chain = chain();
        chain.stamps.retain(|stamp| (stamp.node, stamp.stage) != (1, Stage::Send.code()));
        assert_eq!(told(&chain, chain.hops()), [(0, 1, Some(20))]);
    }

    #[test]
    fn a_message_may_visit_a_node_twice() {
        let mut chain = chain();
        chain.nodes = vec![node("b", 1), node("b", 1), node("b", 1)];
        assert_eq!(told(&chain, chain.hops()), [(0, 1, Some(20)), (1, 2, Some(80))]);
        assert_eq!(told(&chain, chain.stays()), [(1, 1, Some(40))]);
    }

    #[test]
    fn a_node_may_write_its_record_anew_within_a_stay() {
        let mut chain = chain();
        chain.nodes[2] = Node { clock: chain.nodes[1].clock, ..chain.nodes[1].clone() };
        chain.nodes[2].clock.wall_offset_ns = 77;
        chain.stamps[4].node = 2;
        assert_eq!(told(&chain, chain.stays()), [(1, 2, Some(40))]);
    }

    #[test]
    fn a_stay_does_not_reach_into_another_node() {
        let mut chain = chain();
        chain.stamps[4].node = 2;
        assert_eq!(told(&chain, chain.stays()), []);
    }

    #[test]
    fn a_negative_delay_is_told_as_it_is() {
        let chain = chain();
        assert_eq!(chain.delay_ns(&chain.stamps[4], &chain.stamps[1]), Some(-60));
    }

    #[test]
    fn a_stamp_that_was_not_filled_in_has_no_delay() {
        let mut chain = chain();
        chain.stamps[1].at = None;
        let delay = chain.delay(&chain.stamps[1], &chain.stamps[2]);
        assert_eq!(delay, Err(Unmeasured::Missing));
    }

    #[test]
    fn two_clocks_give_no_delay_unless_both_know_their_error() {
        let mut chain = chain();
        chain.nodes[1] = node("b", 2);
        let delay = |chain: &Timeline| chain.delay(&chain.stamps[1], &chain.stamps[2]);
        assert_eq!(delay(&chain), Err(Unmeasured::Clocks));

        chain.nodes[0].clock.wall_offset_ns = 1_000;
        chain.nodes[0].clock.error_bound_ns = 5;
        assert_eq!(delay(&chain), Err(Unmeasured::Clocks), "one of both is not enough");
        chain.nodes[1].clock.wall_offset_ns = 2_000;
        chain.nodes[1].clock.error_bound_ns = 7;
        assert_eq!(delay(&chain), Ok(Delay { delay_ns: 1_020, error_bound_ns: 12 }));
        assert_eq!(chain.delay_ns(&chain.stamps[1], &chain.stamps[2]), None, "not exact");
    }

    #[test]
    fn another_kind_of_clock_on_the_same_host_is_another_clock() {
        let mut chain = chain();
        chain.nodes[1].clock.kind = ClockKind::Realtime;
        let delay = chain.delay(&chain.stamps[1], &chain.stamps[2]);
        assert_eq!(delay, Err(Unmeasured::Clocks));
    }

    #[test]
    fn unknown_hosts_are_never_the_same() {
        let mut chain = chain();
        chain.nodes = vec![node("p", 0), node("b", 0), node("s", 0)];
        assert_eq!(chain.delay_ns(&chain.stamps[1], &chain.stamps[2]), None);
        assert_eq!(chain.delay_ns(&chain.stamps[2], &chain.stamps[4]), Some(40), "one node");
    }

    #[test]
    fn nonsense_is_no_delay_and_no_panic() {
        let mut chain = chain();
        chain.stamps[1].at = Some(Instant::from_nanos(i64::MIN + 1));
        chain.stamps[2].at = Some(Instant::from_nanos(i64::MAX));
        let delay = |chain: &Timeline| chain.delay(&chain.stamps[1], &chain.stamps[2]);
        assert_eq!(delay(&chain), Err(Unmeasured::Range));

        chain.nodes[1].clock = ClockDomain { host: [9; 16], ..chain.nodes[1].clock };
        for node in &mut chain.nodes {
            node.clock.error_bound_ns = u64::MAX - 1;
        }
        assert_eq!(delay(&chain), Err(Unmeasured::Clocks), "the bound itself is nonsense");
        chain.stamps[2].node = 99;
        assert_eq!(delay(&chain), Err(Unmeasured::Clocks), "no such node");
        assert_eq!(chain.readings().count(), 6);
    }

    #[test]
    fn readings_carry_node_and_wall_time() {
        let mut chain = chain();
        chain.nodes[1].clock.wall_offset_ns = 1_000;
        chain.stamps[1].at = None;
        let told: Vec<_> =
            chain.readings().take(3).map(|r| (r.node.name.as_str(), r.wall_ns)).collect();
        assert_eq!(told, [("p", Some(5)), ("p", None), ("b", Some(1_030))]);
    }
}
