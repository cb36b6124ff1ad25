//! Which messages are kept whole, to be printed as traces.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use hopline_timeline::{Timeline, TimelineId};

use crate::cause::Judged;

/// How many messages can be asked for, first ones and slowest ones each. One takes a few KiB.
pub const TRACE_LIMIT: usize = 1_000;

/// How many records of one timeline id are kept: copies, redeliveries and duplicates.
pub const COPY_LIMIT: usize = 16;

/// Which traces are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// How many from the start of the input; [`TRACE_LIMIT`] at most.
    pub first: usize,
    /// How many of those that took longest from end to end; [`TRACE_LIMIT`] at most.
    pub slowest: usize,
    /// Those with these ids, [`COPY_LIMIT`] of each at most.
    pub ids: Vec<TimelineId>,
    /// Whether the [`TRACE_LIMIT`] slowest are kept for exports, beyond those that are shown.
    pub exported: bool,
}

/// Why a trace is shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    First,
    Asked,
    Slowest,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::First => "first",
            Reason::Asked => "asked",
            Reason::Slowest => "slowest",
        }
    }
}

/// A message with its whole timeline.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) seq: u64,
    pub(crate) redelivered: bool,
    pub(crate) duplicate: bool,
    /// Of the message, all sections.
    pub(crate) octets: u64,
    pub(crate) timeline: Timeline,
    /// The cause of each of its legs, late or not.
    pub(crate) judged: Vec<Judged>,
}

/// The traces kept so far.
#[derive(Debug)]
pub(crate) struct Traces {
    wanted: Wanted,
    first: Vec<Trace>,
    asked: Vec<Trace>,
    /// By delay, then the earlier of equals last.
    slowest: BTreeMap<(i64, Reverse<u64>), Trace>,
    arrivals: u64,
}

impl Traces {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let (first, asked, slowest) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { wanted, first, asked, slowest, arrivals: 0 }
    }

    /// Keeps the message if it is wanted; `end_to_end_ns` where its delay is known.
    pub(crate) fn offer(&mut self, trace: &Trace, end_to_end_ns: Option<i64>) {
        let id = trace.timeline.id;
        if self.wanted.ids.contains(&id) && self.copies(id).count() < COPY_LIMIT {
            self.asked.push(trace.clone());
        }
        if trace.duplicate {
            return;
        }
        if self.first.len() < self.wanted.first.min(TRACE_LIMIT) {
            self.first.push(trace.clone());
        }
        if let Some(delay_ns) = end_to_end_ns {
            self.offer_slowest(trace, delay_ns);
        }
    }

    fn offer_slowest(&mut self, trace: &Trace, delay_ns: i64) {
        self.arrivals += 1;
        let key = (delay_ns, Reverse(self.arrivals));
        let kept = if self.wanted.exported { TRACE_LIMIT } else { self.wanted.slowest };
        let room = self.slowest.len() < kept.min(TRACE_LIMIT);
        let beaten = self.slowest.first_key_value().is_some_and(|(least, _)| *least < key);
        if !room && beaten {
            self.slowest.pop_first();
        }
        if room || beaten {
            self.slowest.insert(key, trace.clone());
        }
    }

    fn copies(&self, id: TimelineId) -> impl Iterator<Item = &Trace> {
        self.asked.iter().filter(move |trace| trace.timeline.id == id)
    }

    /// The first ones, then those asked for by id, then the slowest, slowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Reason, &Trace)> {
        let first = self.first.iter().map(|trace| (Reason::First, trace));
        let asked = self.asked.iter().map(|trace| (Reason::Asked, trace));
        let slowest = self
            .slowest
            .values()
            .rev()
            .take(self.wanted.slowest)
            .map(|trace| (Reason::Slowest, trace));
        first.chain(asked).chain(slowest)
    }

    /// All that are kept, each once, the slowest first.
    pub(crate) fn exported(&self) -> impl Iterator<Item = &Trace> {
        let mut seen = HashSet::new();
        let all = self.slowest.values().rev().chain(&self.first).chain(&self.asked);
        // The node that wrote the record: the sequence begins anew with each.
        let key = |trace: &Trace| {
            let end = trace.timeline.nodes.last().map(|node| node.name.clone());
            (trace.timeline.id, trace.seq, end)
        };
        all.filter(move |trace| seen.insert(key(trace)))
    }

    /// The ids that were asked for and didn't come.
    pub(crate) fn not_found(&self) -> impl Iterator<Item = TimelineId> {
        let missed = |id: &&TimelineId| self.copies(**id).next().is_none();
        self.wanted.ids.iter().filter(missed).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(n: u8) -> Trace {
        let timeline = Timeline { id: TimelineId([n; 16]), ..Timeline::default() };
        Trace {
            seq: n.into(),
            redelivered: false,
            duplicate: false,
            octets: 0,
            timeline,
            judged: Vec::new(),
        }
    }

    fn kept(wanted: Wanted, delays: &[i64]) -> Vec<(Reason, u64)> {
        let mut traces = Traces::new(wanted);
        for (n, delay_ns) in (0..).zip(delays) {
            traces.offer(&trace(n), Some(*delay_ns));
        }
        traces.iter().map(|(reason, trace)| (reason, trace.seq)).collect()
    }

    #[test]
    fn only_as_many_as_asked_for_are_kept_and_the_slowest_come_slowest_first() {
        let ids = vec![TimelineId([4; 16])];
        let wanted = Wanted { first: 2, slowest: 3, ids, ..Wanted::default() };
        let seqs = kept(wanted, &[-1, 9, 5, 9, 7, 1]);
        use Reason::{Asked, First, Slowest};
        let all = [(First, 0), (First, 1), (Asked, 4), (Slowest, 1), (Slowest, 3), (Slowest, 4)];
        assert_eq!(seqs, all);
        assert!(kept(Wanted::default(), &[1, 2]).is_empty());
    }

    #[test]
    fn exports_get_more_than_is_shown_and_nothing_twice() {
        let wanted = Wanted { first: 2, slowest: 1, exported: true, ..Wanted::default() };
        let mut traces = Traces::new(wanted);
        for n in 0..5 {
            traces.offer(&trace(n), (n != 1).then_some(n.into()));
        }
        assert_eq!(traces.iter().count(), 3);
        let exported: Vec<_> = traces.exported().map(|trace| trace.seq).collect();
        assert_eq!(exported, [4, 3, 2, 0, 1]);
    }

    #[test]
    fn a_duplicate_is_shown_only_to_who_asks_for_its_id() {
        let id = TimelineId([1; 16]);
        let mut traces =
            Traces::new(Wanted { first: 5, slowest: 5, ids: vec![id], ..Wanted::default() });
        traces.offer(&Trace { duplicate: true, ..trace(1) }, Some(1));
        assert_eq!(traces.iter().map(|(reason, _)| reason).collect::<Vec<_>>(), [Reason::Asked]);
    }

    #[test]
    fn copies_of_one_id_are_bounded_and_missing_ids_are_told() {
        let (id, absent) = (TimelineId([1; 16]), TimelineId([2; 16]));
        let mut traces = Traces::new(Wanted { ids: vec![id, absent], ..Wanted::default() });
        (0..COPY_LIMIT + 3).for_each(|_| traces.offer(&trace(1), None));
        assert_eq!(traces.iter().count(), COPY_LIMIT);
        assert_eq!(traces.not_found().collect::<Vec<_>>(), [absent]);
    }
}
