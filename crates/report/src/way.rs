//! The way of one message, cut into legs.

use hopline_timeline::{Delay, Stage, Stamp, Timeline, UNSTAMPED_PEER, Unmeasured};

use crate::join::is_upper_bound;

/// What a leg is a part of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LegKind {
    /// From the origin, or from DUE, to the last stamp.
    EndToEnd,
    /// From DUE to the origin: how late the message was made.
    SendLag,
    /// From a node's SEND to the RECEIVE of the next one.
    Hop,
    /// A hop by way of nodes that don't stamp, or of another make, on clocks that nothing ties to
    /// those of its ends.
    Gap,
    /// Within a gap: to, in and from a node of another make that has left stamps.
    Part,
    /// From a node's RECEIVE to its SEND; at the first node from the origin, at the last node to
    /// the last stamp.
    Stay,
    /// From one stamp to the next inside a node.
    Stage,
    /// The stage that ends in a DEQUEUE or SEND stamp, told apart by what the message waited for.
    Wait,
}

/// From one stamp of a timeline to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leg<'a> {
    pub(crate) kind: LegKind,
    pub(crate) from: &'a Stamp,
    pub(crate) to: &'a Stamp,
}

/// A stamp, and the time since the filled-in stamp before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    pub(crate) stamp: &'a Stamp,
    pub(crate) delay: Result<Delay, Unmeasured>,
}

/// A timeline of at least one stamp, cut into the visits it paid to nodes.
///
/// Hops, gaps and stays together are the way from the origin to the end, each moment once.
#[derive(Clone, Debug)]
pub(crate) struct Way<'a> {
    timeline: &'a Timeline,
    origin: &'a Stamp,
    end: &'a Stamp,
    due: Option<&'a Stamp>,
    visits: Vec<Visit<'a>>,
}

/// Stamps of one node that follow each other.
///
/// Without RECEIVE or SEND, a visit begins and ends with its first and last stamp that isn't the
/// kernel's: brokers of other makes have no better ones.
#[derive(Copy, Clone, Debug)]
struct Visit<'a> {
    stamps: &'a [Stamp],
    entry: &'a Stamp,
    exit: &'a Stamp,
    /// The node is of another make: its stamps were read from annotations of its own.
    is_foreign: bool,
}

impl<'a> Way<'a> {
    /// `None` where nothing was stamped.
    pub(crate) fn new(timeline: &'a Timeline) -> Option<Self> {
        let mut visits: Vec<_> = Parts { timeline, rest: &timeline.stamps }.collect();
        let (first, due) = visits.first_mut().map(|first| (first.begin(), first.due()))?;
        let end = visits.last_mut()?.finish();
        Some(Self { timeline, origin: first, end, due, visits })
    }

    /// CREATE, or else where the first visit begins.
    pub(crate) fn origin(&self) -> &'a Stamp {
        self.origin
    }

    /// Where the last visit ends, NEXT_EVENT as a rule.
    pub(crate) fn end(&self) -> &'a Stamp {
        self.end
    }

    /// The delay from the origin to the end.
    pub(crate) fn end_to_end(&self) -> Result<Delay, Unmeasured> {
        self.timeline.delay(self.origin, self.end)
    }

    /// The timeline that it is cut from.
    pub(crate) fn timeline(&self) -> &'a Timeline {
        self.timeline
    }

    /// The stamps from the one end of a leg to the other, both included.
    pub(crate) fn between(&self, leg: &Leg<'_>) -> &'a [Stamp] {
        let range = self.index(leg.from).zip(self.index(leg.to));
        range.and_then(|(from, to)| self.timeline.stamps.get(from..=to)).unwrap_or_default()
    }

    /// Where a stamp of the timeline stands in it.
    pub(crate) fn index(&self, stamp: &Stamp) -> Option<usize> {
        self.timeline.stamps.element_offset(stamp)
    }

    /// The delay of one of its legs.
    pub(crate) fn delay(&self, leg: &Leg<'_>) -> Result<Delay, Unmeasured> {
        self.timeline.delay(leg.from, leg.to)
    }

    /// When the last stamp was taken, by the wall clock.
    pub(crate) fn end_wall_ns(&self) -> Option<i64> {
        self.wall_ns(self.end)
    }

    /// The wall-clock time of a stamp in ns since 1970. Stamps of one clock are told by the offset
    /// of its first node, so that their differences stay exact.
    pub(crate) fn wall_ns(&self, stamp: &Stamp) -> Option<i64> {
        let clock = self.timeline.nodes.get(stamp.node)?.clock;
        let nodes = self.timeline.nodes.iter();
        let first = nodes.map(|node| node.clock).find(|other| other.is_same_as(&clock));
        first.unwrap_or(clock).wall_ns(stamp.at?)
    }

    /// Every leg, in the order of the way.
    pub(crate) fn legs(&self) -> impl Iterator<Item = Leg<'a>> {
        let (origin, end) = (self.origin, self.end);
        let whole = Leg { kind: LegKind::EndToEnd, from: origin, to: end };
        let due = self.due.into_iter().flat_map(move |due| {
            let from_due = Leg { kind: LegKind::EndToEnd, from: due, to: end };
            [from_due, Leg { kind: LegKind::SendLag, from: due, to: origin }]
        });
        let previous = std::iter::once(None).chain(self.visits.iter().map(Some));
        let parts = previous.zip(&self.visits).enumerate().flat_map(|(at, (previous, visit))| {
            let gap = previous.and_then(|previous| self.gap(previous, visit, at));
            let hop = previous.map(|previous| previous.hop_to(visit));
            gap.into_iter().chain(hop).chain(visit.legs())
        });
        std::iter::once(whole).chain(due).chain(parts)
    }

    /// The gap that begins before the visit `at` to a node of another make, and ends where the
    /// next node of ours received the message.
    fn gap(&self, from: &Visit<'a>, visit: &Visit<'a>, at: usize) -> Option<Leg<'a>> {
        if from.is_foreign || !visit.is_foreign {
            return None;
        }
        let next = self.visits.iter().skip(at).find(|visit| !visit.is_foreign)?;
        Some(Leg { kind: LegKind::Gap, from: from.exit, to: next.entry })
    }

    /// The stamps before the origin in the order of writing: DUE as a rule.
    pub(crate) fn before_origin(&self) -> impl Iterator<Item = &'a Stamp> {
        self.timeline.stamps.iter().take_while(|stamp| !std::ptr::eq(*stamp, self.origin))
    }

    /// The stamps after the origin in the order of writing; those of a sender's kernel behind its
    /// SEND.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Step<'a>> {
        let timeline = self.timeline;
        let mut last = self.origin;
        let after = timeline.stamps.iter().skip(self.before_origin().count() + 1);
        after.map(move |stamp| {
            let delay = timeline.delay(last, stamp);
            // The sender's kernel tells later instants than the receiver's first ones.
            if stamp.at.is_some() && !is_late_news(stamp) {
                last = stamp;
            }
            Step { stamp, delay }
        })
    }
}

impl<'a> Visit<'a> {
    fn new(stamps: &'a [Stamp]) -> Option<Self> {
        let entry = find(stamps, Stage::Receive).or_else(|| first_of_program(stamps))?;
        let last_send = stamps.iter().rfind(|stamp| is(stamp, Stage::Send));
        let exit = last_send.or_else(|| last_of_program(stamps))?;
        let is_foreign = is(entry, Stage::ForeignIngress) || is(entry, Stage::ForeignSent);
        Some(Self { stamps, entry, exit, is_foreign })
    }

    /// The first visit begins where the message was made.
    fn begin(&mut self) -> &'a Stamp {
        self.entry = find(self.stamps, Stage::Create).unwrap_or(self.entry);
        self.entry
    }

    /// The last visit ends with its last stamp, whatever that is.
    fn finish(&mut self) -> &'a Stamp {
        self.exit = last_of_program(self.stamps).unwrap_or(self.exit);
        self.exit
    }

    fn due(&self) -> Option<&'a Stamp> {
        find(self.stamps, Stage::Due).filter(|due| !std::ptr::eq(*due, self.entry))
    }

    fn hop_to(&self, next: &Visit<'a>) -> Leg<'a> {
        let kind = if self.is_foreign || next.is_foreign {
            LegKind::Part
        } else if comes_by_others(next.entry) {
            LegKind::Gap
        } else {
            LegKind::Hop
        };
        Leg { kind, from: self.exit, to: next.entry }
    }

    fn legs(&self) -> impl Iterator<Item = Leg<'a>> + use<'a> {
        let Self { stamps, entry, exit, is_foreign } = *self;
        let kind = if is_foreign { LegKind::Part } else { LegKind::Stay };
        let stay = Leg { kind, from: entry, to: exit };
        let stamps = if is_foreign { &[] } else { stamps };
        let stay = (!std::ptr::eq(entry, exit)).then_some(stay);
        let pairs = stamps.iter().zip(stamps.iter().skip(1));
        let stages = pairs.filter(|(from, _)| !is(from, Stage::Due)).flat_map(|(from, to)| {
            let wait = tells_wait(to).then_some(Leg { kind: LegKind::Wait, from, to });
            std::iter::once(Leg { kind: LegKind::Stage, from, to }).chain(wait)
        });
        stay.into_iter().chain(stages)
    }
}

/// Cuts where the node changes, and where a node receives what it has sent itself.
struct Parts<'a> {
    timeline: &'a Timeline,
    rest: &'a [Stamp],
}

impl<'a> Iterator for Parts<'a> {
    type Item = Visit<'a>;

    fn next(&mut self) -> Option<Visit<'a>> {
        let first = self.rest.first()?;
        let mut sent = false;
        let goes_on = |stamp: &&Stamp| {
            let comes_back = sent && is(stamp, Stage::Receive);
            sent |= is(stamp, Stage::Send);
            !comes_back && is_same_node(self.timeline, first, stamp)
        };
        let length = self.rest.iter().take_while(goes_on).count();
        let (visit, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Visit::new(visit)
    }
}

fn is_same_node(timeline: &Timeline, a: &Stamp, b: &Stamp) -> bool {
    let nodes = timeline.nodes.get(a.node).zip(timeline.nodes.get(b.node));
    a.node == b.node || nodes.is_some_and(|(a, b)| a.name == b.name && a.clock.is_same_as(&b.clock))
}

/// Whether the stamp's detail says what the message waited for.
pub(crate) fn tells_wait(stamp: &Stamp) -> bool {
    is(stamp, Stage::Dequeue) || is(stamp, Stage::Send)
}

/// Whether a RECEIVE says that the message came by way of a node that doesn't stamp.
pub(crate) fn comes_by_others(stamp: &Stamp) -> bool {
    is(stamp, Stage::Receive) && stamp.detail == UNSTAMPED_PEER
}

fn is(stamp: &Stamp, stage: Stage) -> bool {
    stamp.stage == stage.code()
}

fn find(stamps: &[Stamp], stage: Stage) -> Option<&Stamp> {
    stamps.iter().find(|stamp| is(stamp, stage))
}

fn first_of_program(stamps: &[Stamp]) -> Option<&Stamp> {
    stamps.iter().find(|stamp| is_of_program(stamp)).or(stamps.first())
}

fn last_of_program(stamps: &[Stamp]) -> Option<&Stamp> {
    stamps.iter().rfind(|stamp| is_of_program(stamp)).or(stamps.last())
}

/// Whether later stamps of the timeline can be of earlier instants.
fn is_late_news(stamp: &Stamp) -> bool {
    stamp.known_stage() == Some(Stage::KernelAck) || is_upper_bound(stamp)
}

/// A stamp that a program took while it had the message: neither the schedule nor the kernel.
pub(crate) fn is_of_program(stamp: &Stamp) -> bool {
    !matches!(
        stamp.known_stage(),
        Some(
            Stage::Due
                | Stage::KernelSched
                | Stage::KernelSend
                | Stage::KernelAck
                | Stage::KernelReceive
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_timeline::{ClockDomain, Instant, Node};

    /// Stamps written as `node:STAGE`, one nanosecond apart.
    fn timeline(stamps: &str) -> Timeline {
        let mut timeline = Timeline::default();
        for (at, text) in (0..).zip(stamps.split_whitespace()) {
            let (node, stage) = text.split_once(':').unwrap();
            let clock = ClockDomain { host: [1; 16], ..ClockDomain::default() };
            if timeline.nodes.last().is_none_or(|last| last.name != node) {
                timeline.nodes.push(Node::new(node, clock));
            }
            let (node, stage) = (timeline.nodes.len() - 1, Stage::code_of(stage).unwrap());
            let at = Some(Instant::from_nanos(at));
            timeline.stamps.push(Stamp { node, stage, detail: 0, at });
        }
        timeline
    }

    fn legs(stamps: &str, kind: LegKind) -> Vec<String> {
        let timeline = timeline(stamps);
        let way = Way::new(&timeline).unwrap();
        let name = |stamp: &Stamp| {
            let node = &timeline.nodes[stamp.node].name;
            format!("{node}:{}", Stage::name_of(stamp.stage))
        };
        let legs = way.legs().filter(|leg| leg.kind == kind);
        legs.map(|leg| format!("{} {}", name(leg.from), name(leg.to))).collect()
    }

    const CHAIN: &str = "p:DUE p:CREATE p:SEND b:RECEIVE b:DEQUEUE b:SEND s:RECEIVE s:NEXT_EVENT";

    #[test]
    fn hops_and_stays_cover_the_way_from_the_origin_to_the_end_once() {
        let hops = ["p:SEND b:RECEIVE", "b:SEND s:RECEIVE"];
        let stays = ["p:CREATE p:SEND", "b:RECEIVE b:SEND", "s:RECEIVE s:NEXT_EVENT"];
        assert_eq!(legs(CHAIN, LegKind::Hop), hops);
        assert_eq!(legs(CHAIN, LegKind::Stay), stays);
        let ends = ["p:CREATE s:NEXT_EVENT", "p:DUE s:NEXT_EVENT"];
        assert_eq!(legs(CHAIN, LegKind::EndToEnd), ends);
        assert_eq!(legs(CHAIN, LegKind::SendLag), ["p:DUE p:CREATE"]);
    }

    #[test]
    fn stages_are_neighbours_inside_a_node() {
        let stages =
            "p:CREATE p:SEND, b:RECEIVE b:DEQUEUE, b:DEQUEUE b:SEND, s:RECEIVE s:NEXT_EVENT";
        assert_eq!(legs(CHAIN, LegKind::Stage).join(", "), stages);
        let waits = ["p:CREATE p:SEND", "b:RECEIVE b:DEQUEUE", "b:DEQUEUE b:SEND"];
        assert_eq!(legs(CHAIN, LegKind::Wait), waits);
    }

    #[test]
    fn without_send_a_hop_begins_at_the_last_stamp_of_the_program() {
        let old = "p:CREATE p:SERIALIZE p:KERNEL_SEND b:KERNEL_RECEIVE b:RECEIVE";
        assert_eq!(legs(old, LegKind::Hop), ["p:SERIALIZE b:RECEIVE"]);
        let foreign = "p:CREATE p:SEND r:FOREIGN_INGRESS s:RECEIVE s:NEXT_EVENT";
        assert_eq!(legs(foreign, LegKind::Gap), ["p:SEND s:RECEIVE"], "one clock, exact");
        assert_eq!(
            legs(foreign, LegKind::Part),
            ["p:SEND r:FOREIGN_INGRESS", "r:FOREIGN_INGRESS s:RECEIVE"]
        );
        assert_eq!(legs(foreign, LegKind::Stay).len(), 2);
        assert!(legs(foreign, LegKind::Hop).is_empty());
    }

    #[test]
    fn one_of_another_make_is_a_part_of_the_gap_and_adds_nothing_to_the_way() {
        let both = "p:CREATE p:SEND r:FOREIGN_INGRESS r:FOREIGN_SENT b:RECEIVE b:SEND s:RECEIVE";
        assert_eq!(legs(both, LegKind::Gap), ["p:SEND b:RECEIVE"]);
        assert_eq!(legs(both, LegKind::Part).len(), 3);
        assert_eq!(legs(both, LegKind::Hop), ["b:SEND s:RECEIVE"]);
        let open = "p:CREATE p:SEND r:FOREIGN_INGRESS";
        assert!(legs(open, LegKind::Gap).is_empty(), "it has no end");
        assert_eq!(legs(open, LegKind::Part), ["p:SEND r:FOREIGN_INGRESS"]);
    }

    #[test]
    fn a_hop_from_a_peer_that_does_not_stamp_is_a_gap() {
        let mut timeline = timeline("p:CREATE p:SEND s:RECEIVE s:NEXT_EVENT");
        timeline.stamps[2].detail = UNSTAMPED_PEER;
        let way = Way::new(&timeline).unwrap();
        let kinds: Vec<_> = way.legs().map(|leg| leg.kind).collect();
        assert!(kinds.contains(&LegKind::Gap) && !kinds.contains(&LegKind::Hop));
    }

    #[test]
    fn a_node_that_receives_what_it_sent_is_visited_twice() {
        let talk = "a:CREATE a:SEND a:RECEIVE a:NEXT_EVENT";
        assert_eq!(legs(talk, LegKind::Hop), ["a:SEND a:RECEIVE"]);
        assert_eq!(legs(talk, LegKind::Stay).len(), 2);
    }

    #[test]
    fn a_way_may_begin_anywhere_and_consist_of_one_stamp() {
        assert!(Way::new(&Timeline::default()).is_none());
        assert_eq!(legs("b:RECEIVE b:SEND", LegKind::EndToEnd), ["b:RECEIVE b:SEND"]);
        assert_eq!(legs("p:DUE", LegKind::EndToEnd), ["p:DUE p:DUE"]);
        assert!(legs("p:DUE p:CREATE", LegKind::Stay).is_empty());
        assert_eq!(legs("p:KERNEL_SEND", LegKind::EndToEnd).len(), 1);
    }

    #[test]
    fn a_step_counts_from_the_last_stamp_that_was_filled_in() {
        let mut timeline = timeline("p:DUE p:CREATE p:SEND b:RECEIVE");
        timeline.stamps[2].at = None;
        let way = Way::new(&timeline).unwrap();
        let delays: Vec<_> = way.steps().map(|step| step.delay.map(|d| d.delay_ns)).collect();
        assert_eq!(delays, [Err(Unmeasured::Missing), Ok(2)]);
        assert_eq!(way.before_origin().count(), 1);
    }
}
