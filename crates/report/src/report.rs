//! Takes records one by one and remembers what the report will say.

use std::collections::HashSet;
use std::rc::Rc;

use hopline_timeline::record::{ConnectionRecord, HeaderRecord, MessageRecord, Record};
use hopline_timeline::{ClockDomain, ClockKind, Delay, Node, Stamp, Timeline};
use hopline_timeline::{TimelineError, TimelineId, Unmeasured};

use crate::cause::{Judge, Judged, Late};
use crate::counts::Counts;
use crate::distribution::LONGEST_NS;
use crate::duplicates::{MEMORY_LIMIT, Recent};
use crate::error::Error;
use crate::export::Intervals;
use crate::gallery::Gallery;
use crate::join::Side;
use crate::live::{Live, View};
use crate::names::{NAME_LIMIT, NameId, Names};
use crate::table::{Key, Point, Table};
use crate::traces::{Trace, Traces, Wanted};
use crate::way::{LegKind, Way};

/// How many headers are kept to be shown: one for each subscriber that wrote records.
pub const HEADER_LIMIT: usize = 64;

/// A report in the making. Its memory is bounded, however many records it takes: see
/// [`ROW_LIMIT`](crate::ROW_LIMIT), [`MEMORY_LIMIT`], [`NAME_LIMIT`] and
/// [`TRACE_LIMIT`](crate::TRACE_LIMIT).
#[derive(Debug)]
pub struct Report {
    pub(crate) counts: Counts,
    pub(crate) headers: Vec<HeaderRecord>,
    pub(crate) clocks: Clocks,
    pub(crate) names: Names,
    pub(crate) table: Table,
    /// The same legs, told apart by cause.
    pub(crate) causes: Table,
    judge: Judge,
    side: Side,
    /// For a page with pictures.
    pub(crate) gallery: Option<Gallery>,
    /// The last seconds, if somebody watches.
    pub(crate) live: Option<Live>,
    /// An interval log to be written on the way.
    pub(crate) intervals: Option<Intervals>,
    pub(crate) connections: Vec<ConnectionRecord>,
    pub(crate) late: Late,
    pub(crate) traces: Traces,
    pub(crate) recent: Recent,
    last_nodes: Vec<Node>,
    last_names: Rc<[NameId]>,
    /// The origin of the first message that has one: the zero of the traces' periods.
    pub(crate) zero: Option<(Node, Stamp)>,
    /// The sum of all delays from origin to end, of which the rows have their shares.
    pub(crate) end_to_end_ns: i128,
}

impl Report {
    /// An empty report that will keep the wanted traces.
    ///
    /// # Errors
    /// [`Error::Histogram`], never in practice.
    pub fn new(wanted: Wanted) -> Result<Self, Error> {
        Ok(Self {
            counts: Counts::default(),
            headers: Vec::new(),
            clocks: Clocks::default(),
            names: Names::default(),
            table: Table::new().map_err(Error::Histogram)?,
            causes: Table::new().map_err(Error::Histogram)?,
            judge: Judge::default(),
            side: Side::default(),
            gallery: None,
            live: None,
            intervals: None,
            connections: Vec::new(),
            late: Late::default(),
            traces: Traces::new(wanted),
            recent: Recent::new(MEMORY_LIMIT),
            last_nodes: Vec::new(),
            last_names: Rc::default(),
            zero: None,
            end_to_end_ns: 0,
        })
    }

    /// From when on a message counts as late; 5 times the median where it isn't called.
    pub fn set_late(&mut self, late: Late) {
        self.late = late;
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let kernel_unused = self.side.unused();
        Counts {
            kernel_unused,
            unlisted: self.table.unlisted() + self.causes.unlisted(),
            ..self.counts
        }
    }

    /// It is so many seconds since the beginning, for who watches.
    pub(crate) fn advance(&mut self, second: u64) {
        if let Some(live) = &mut self.live {
            live.advance(second);
        }
    }

    /// What passed in the last seconds.
    pub(crate) fn view(&mut self) -> View {
        let Some(mut live) = self.live.take() else { return View::default() };
        let view = live.view(self);
        self.live = Some(live);
        view
    }

    /// The ids that were wanted and haven't come.
    pub fn not_found(&self) -> impl Iterator<Item = TimelineId> {
        self.traces.not_found()
    }

    /// Takes a record.
    ///
    /// # Errors
    /// A stamp of a message names a node that isn't listed; the message is counted nowhere.
    pub fn add(&mut self, record: Record) -> Result<(), TimelineError> {
        match record {
            Record::Header(header) if self.headers.len() < HEADER_LIMIT => {
                self.headers.push(header);
            }
            Record::Header(_) => {}
            Record::Message(message) => return self.add_message(&message),
            Record::Untimed(_) => self.counts.untimed += 1,
            Record::Summary(summary) => {
                self.counts.received = self.counts.received.saturating_add(summary.received);
            }
            Record::Kernel(kernel) => {
                self.counts.kernel += 1;
                let node = self.names.id(&kernel.node);
                self.side.add(node, kernel);
            }
            Record::Connection(connection) => self.add_account(connection),
            // The clock stands in the timelines too.
            Record::Side(_) => {}
            Record::SideSummary(summary) => {
                let dropped = &mut self.counts.kernel_dropped;
                *dropped = dropped.saturating_add(summary.dropped);
            }
            Record::Other => self.counts.unknown += 1,
        }
        Ok(())
    }

    /// The latest account of each end of a connection counts.
    fn add_account(&mut self, account: ConnectionRecord) {
        let is_same = |it: &&mut ConnectionRecord| {
            (&it.node, &it.local, &it.peer) == (&account.node, &account.local, &account.peer)
        };
        if let Some(before) = self.connections.iter_mut().find(is_same) {
            *before = account;
        } else if self.connections.len() < HEADER_LIMIT {
            self.connections.push(account);
        }
    }

    fn add_message(&mut self, message: &MessageRecord) -> Result<(), TimelineError> {
        let mut timeline = message.timeline()?;
        let names = self.names_of(&timeline.nodes);
        let held = self.side.join(&mut timeline, &names);
        let Some(way) = Way::new(&timeline) else {
            self.counts.untimed += 1;
            return Ok(());
        };
        let end = Point::of(&names, way.end());
        let is_new = end.node.is_none_or(|node| self.recent.is_new(timeline.id, node));
        let duplicate = !is_new && !message.redelivered;
        let judged = self.judge.judge(&way, &names, message.octets, &held);
        let end_to_end_ns = way.end_to_end().ok().map(|delay| delay.delay_ns);
        if duplicate {
            self.counts.duplicate += 1;
        } else {
            self.count(message, &way);
            self.measure(&way, &names, end_to_end_ns);
            self.count_causes(&judged, message.octets);
            if let Some(live) = &mut self.live {
                live.add(&judged);
            }
            if let Some(intervals) = &mut self.intervals {
                intervals.add(&way, |leg| Key::of(&names, leg), &self.names);
            }
            self.note_zero(&timeline, way.origin());
        }
        let MessageRecord { seq, redelivered, .. } = *message;
        let octets = message.octets;
        let trace = Trace { seq, redelivered, duplicate, octets, timeline, judged };
        self.traces.offer(&trace, end_to_end_ns);
        self.show(&trace);
        self.judge.give_back(trace.judged);
        Ok(())
    }

    /// The ids of the nodes' names; the nodes are mostly those of the message before.
    fn names_of(&mut self, nodes: &[Node]) -> Rc<[NameId]> {
        if nodes != self.last_nodes {
            self.last_nodes = nodes.to_vec();
            self.last_names = nodes.iter().map(|node| self.names.id(&node.name)).collect();
            self.clocks.note(&self.last_names, nodes);
        }
        Rc::clone(&self.last_names)
    }

    fn count(&mut self, message: &MessageRecord, way: &Way<'_>) {
        let counts = &mut self.counts;
        counts.messages += 1;
        counts.redelivered += u64::from(message.redelivered);
        counts.overflowed += u64::from(message.overflow);
        counts.dropped += u64::from(message.dropped);
        let origin = way.before_origin().chain([way.origin()]);
        counts.missing += origin.map(|stamp| u64::from(stamp.at.is_none())).sum::<u64>();
        for step in way.steps() {
            counts.missing += u64::from(step.stamp.at.is_none());
            match step.delay {
                Ok(Delay { delay_ns, .. }) => {
                    counts.negative += u64::from(delay_ns < 0);
                    counts.saturated += u64::from(is_saturated(delay_ns));
                }
                Err(Unmeasured::Missing) => {}
                Err(Unmeasured::Clocks) => counts.no_common_clock += 1,
                Err(Unmeasured::Range) => counts.saturated += 1,
            }
        }
    }

    fn measure(&mut self, way: &Way<'_>, names: &[NameId], end_to_end_ns: Option<i64>) {
        self.end_to_end_ns += i128::from(end_to_end_ns.unwrap_or(0));
        // Internal iteration: the legs are a chain of chains, which a loop would walk slowly.
        way.legs().for_each(|leg| {
            self.table.add(Key::of(names, &leg), way.delay(&leg), end_to_end_ns.is_some());
        });
    }

    /// Offers a message to the pictures, if there are to be any.
    fn show(&mut self, trace: &Trace) {
        let Some(gallery) = self.gallery.as_mut().filter(|_| !trace.duplicate) else {
            return;
        };
        let whole = trace.judged.last().filter(|whole| whole.key.kind == LegKind::EndToEnd);
        if let (Some(whole), Some(way)) = (whole, Way::new(&trace.timeline)) {
            gallery.add(trace, way.wall_ns(way.origin()), whole.delay.delay_ns, whole.cause);
        }
    }

    fn count_causes(&mut self, judged: &[Judged], octets: u64) {
        for judged in judged {
            self.causes.add(judged.cause_key(), Ok(judged.delay), false);
            if judged.key.kind == LegKind::Hop
                && let Some(hop) = self.table.get_mut(&judged.key)
            {
                hop.plateau.add(judged.cause, octets, judged.delay.delay_ns);
            }
        }
    }

    fn note_zero(&mut self, timeline: &Timeline, origin: &Stamp) {
        if self.zero.is_none() && origin.at.is_some() {
            let node = timeline.nodes.get(origin.node);
            self.zero = node.map(|node| (node.clone(), *origin));
        }
    }

    /// From the first message's origin to that of `timeline`.
    pub(crate) fn since_zero(
        &self,
        timeline: &Timeline,
        origin: &Stamp,
    ) -> Result<Delay, Unmeasured> {
        let (zero_node, zero) = self.zero.as_ref().ok_or(Unmeasured::Missing)?;
        let node = timeline.nodes.get(origin.node).ok_or(Unmeasured::Clocks)?;
        // A timeline of its own, since only stamps of one timeline can be subtracted.
        let pair = Timeline { nodes: vec![zero_node.clone(), node.clone()], ..Timeline::default() };
        pair.delay(&Stamp { node: 0, ..*zero }, &Stamp { node: 1, ..*origin })
    }
}

/// Every clock that a node's stamps were of.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    seen: HashSet<(NameId, ClockKind, [u8; 16])>,
    list: Vec<(NameId, ClockDomain)>,
}

impl Clocks {
    fn note(&mut self, names: &[NameId], nodes: &[Node]) {
        for (name, Node { clock, .. }) in names.iter().zip(nodes) {
            let is_full = self.list.len() == NAME_LIMIT;
            if !is_full && self.seen.insert((*name, clock.kind, clock.host)) {
                self.list.push((*name, *clock));
            }
        }
    }

    /// The clocks in the order in which they were met; [`NAME_LIMIT`] at most.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(NameId, ClockDomain)> {
        self.list.iter()
    }
}

fn is_saturated(delay_ns: i64) -> bool {
    delay_ns.unsigned_abs() > LONGEST_NS.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_timeline::record::MessageInfo;
    use hopline_timeline::{Instant, Stage};

    fn node(name: &str, host: u8) -> Node {
        let clock = ClockDomain { host: [host; 16], ..ClockDomain::default() };
        Node::new(name, clock)
    }

    fn stamp(node: usize, stage: Stage, at: i64) -> Stamp {
        let at = Some(Instant::from_nanos(at));
        Stamp { node, stage: stage.code(), detail: 0, at }
    }

    fn message(id: u8, redelivered: bool, nodes: Vec<Node>, stamps: Vec<Stamp>) -> Record {
        let id = TimelineId([id; 16]);
        let timeline = Timeline { id, nodes, stamps, ..Timeline::default() };
        let info = MessageInfo { redelivered, ..MessageInfo::default() };
        Record::Message(MessageRecord::new(info, &timeline))
    }

    fn hop(id: u8, redelivered: bool, receive: i64) -> Record {
        let nodes = vec![node("pub", 1), node("sub", 1)];
        let stamps = vec![stamp(0, Stage::Send, 100), stamp(1, Stage::Receive, receive)];
        message(id, redelivered, nodes, stamps)
    }

    fn report(records: Vec<Record>) -> Report {
        let mut report = Report::new(Wanted::default()).unwrap();
        records.into_iter().for_each(|record| report.add(record).unwrap());
        report
    }

    fn counts(records: Vec<Record>) -> Counts {
        report(records).counts()
    }

    #[test]
    fn duplicates_are_left_out_and_redeliveries_are_not() {
        let got = counts(vec![hop(1, false, 150), hop(1, false, 150), hop(1, true, 190)]);
        let want = Counts { messages: 2, duplicate: 1, redelivered: 1, ..Counts::default() };
        assert_eq!(got, want);
    }

    #[test]
    fn one_negative_hop_is_one_negative_sample_and_keeps_its_sign() {
        let report = report(vec![hop(1, false, 40)]);
        assert_eq!(report.counts().negative, 1);
        let hop = report.table.of(LegKind::Hop).next().unwrap();
        assert_eq!(hop.delays.min_ns(), Some(-60));
        assert_eq!(report.end_to_end_ns, -60);
    }

    #[test]
    fn a_message_without_stamps_is_untimed() {
        let got = counts(vec![message(1, false, vec![node("pub", 1)], vec![])]);
        assert_eq!(got, Counts { untimed: 1, ..Counts::default() });
    }

    #[test]
    fn two_hosts_that_nothing_ties_together_give_no_delay() {
        let nodes = vec![node("pub", 1), node("sub", 2)];
        let stamps = vec![stamp(0, Stage::Send, 100), stamp(1, Stage::Receive, 150)];
        let report = report(vec![message(1, false, nodes, stamps)]);
        assert_eq!(report.counts().no_common_clock, 1);
        assert_eq!(report.table.of(LegKind::Hop).next().unwrap().no_common_clock, 1);
        assert_eq!(report.clocks.iter().len(), 2);
    }

    #[test]
    fn a_difference_beyond_an_hour_is_saturated() {
        assert_eq!(counts(vec![hop(1, false, 100 + LONGEST_NS)]).saturated, 0);
        assert_eq!(counts(vec![hop(1, false, 101 + LONGEST_NS)]).saturated, 1);
        let nodes = vec![node("pub", 1)];
        let stamps = vec![stamp(0, Stage::Create, -5), stamp(0, Stage::Send, i64::MAX)];
        assert_eq!(counts(vec![message(1, false, nodes, stamps)]).saturated, 1);
    }

    #[test]
    fn a_stamp_of_an_unlisted_node_is_an_error_and_counted_nowhere() {
        let mut report = Report::new(Wanted::default()).unwrap();
        let stray = message(1, false, vec![], vec![stamp(0, Stage::Send, 1)]);
        assert!(report.add(stray).is_err());
        assert_eq!(report.counts(), Counts::default());
    }

    #[test]
    fn of_several_accounts_of_one_end_of_a_connection_the_last_one_counts() {
        let mut report = Report::new(Wanted::default()).unwrap();
        let account = |node: &str, writes| {
            let mut account = ConnectionRecord { node: node.into(), ..Default::default() };
            account.io.writes = writes;
            Record::Connection(account)
        };
        for (node, writes) in [("a", 1), ("b", 2), ("a", 3)] {
            report.add(account(node, writes)).unwrap();
        }
        let kept = report.connections.iter().map(|it| (it.node.as_str(), it.io.writes));
        assert_eq!(kept.collect::<Vec<_>>(), [("a", 3), ("b", 2)]);
        for n in 0..2 * HEADER_LIMIT {
            report.add(account(&n.to_string(), 1)).unwrap();
        }
        assert_eq!(report.connections.len(), HEADER_LIMIT);
    }
}
