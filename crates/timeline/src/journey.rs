use crate::{ClockDomain, Node, Stage, Stamp, Timeline};

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
    /// By how much it can be wrong, in ns: 0 if both stamps are of one clock, else the sum of what
    /// the two hosts' kernels claimed for their wall clocks.
    pub error_bound_ns: u64,
}

/// Why there is no delay between two stamps.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug, thiserror::Error)]
pub enum Unmeasured {
    /// At least one of the stamps was never filled in.
    #[error("a stamp was never filled in")]
    Missing,
    /// Two clocks, and at least one host that says nothing about how right its wall clock is.
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
    /// Exact if both are of one clock; by way of the wall clocks if those are known to be right
    /// within a bound.
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
        let error_bound_ns = sum_of_bounds(&from_clock, &to_clock).ok_or(Unmeasured::Clocks)?;
        let walls = from_clock.wall_ns(from_at).zip(to_clock.wall_ns(to_at));
        let delay_ns = walls.and_then(|(from, to)| to.checked_sub(from));
        Ok(Delay { delay_ns: delay_ns.ok_or(Unmeasured::Range)?, error_bound_ns })
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

/// How far a difference of both clocks' wall times can be off.
fn sum_of_bounds(a: &ClockDomain, b: &ClockDomain) -> Option<u64> {
    [a, b].iter().try_fold(0, |sum: u64, clock| {
        let bound = Some(clock.error_bound_ns).filter(|ns| *ns != ClockDomain::UNSYNCHRONISED);
        sum.checked_add(bound?)
    })
}
