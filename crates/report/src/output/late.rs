//! The causes of late messages, as every output shows them.

use crate::cause::{Cause, Judged, threshold_ns};
use crate::names::NameId;
use crate::report::Report;
use crate::table::Row;
use crate::traces::Trace;
use crate::units::{self, Printable};
use crate::way::LegKind;

/// The late messages of one leg that had one cause.
#[derive(Debug)]
pub(crate) struct LateRow<'a> {
    /// The leg, all its messages.
    pub(crate) leg: &'a Row,
    pub(crate) cause: Cause,
    /// Above which delay they are late.
    pub(crate) limit_ns: i64,
    pub(crate) count: u64,
    /// Late messages of the leg, whatever the cause.
    pub(crate) late: u64,
    /// The sum of their delays, to three digits.
    pub(crate) sum_ns: i128,
    pub(crate) max_ns: Option<i64>,
}

impl LateRow<'_> {
    /// Millionths of the leg's late messages.
    pub(crate) fn share_of_late(&self) -> Option<i64> {
        units::millionths(self.count.into(), self.late.into())
    }

    /// Millionths of the leg's messages.
    pub(crate) fn share_of_messages(&self) -> Option<i64> {
        units::millionths(self.count.into(), self.leg.met().into())
    }

    pub(crate) fn mean_ns(&self) -> Option<i64> {
        units::mean(self.sum_ns, self.count)
    }
}

impl Report {
    /// Late messages by leg and cause: the whole first, then the parts of the way, the commonest
    /// cause first.
    ///
    /// From end to end each message has one cause, that of its longest hop, stay or send lag. Of
    /// these, several can be late.
    pub(crate) fn late_rows(&self) -> Vec<LateRow<'_>> {
        let is_judged =
            |row: &&Row| !matches!(row.key.kind, LegKind::Part | LegKind::Stage | LegKind::Wait);
        let lines = self.lines();
        let legs = lines.iter().map(|line| line.row).filter(is_judged);
        legs.flat_map(|leg| self.late_of(leg)).collect()
    }

    fn late_of<'a>(&'a self, leg: &'a Row) -> Vec<LateRow<'a>> {
        let Some(limit_ns) = threshold_ns(self.late, leg) else {
            return Vec::new();
        };
        let mut rows: Vec<_> = Cause::ALL
            .iter()
            .filter_map(|&cause| {
                let row =
                    self.causes.get(&crate::table::Key { why: Some(cause.code()), ..leg.key });
                let delays = &row?.delays;
                let (count, sum_ns) = delays.above(limit_ns);
                let max_ns = delays.max_ns();
                let row = LateRow { leg, cause, limit_ns, count, late: 0, sum_ns, max_ns };
                (count > 0).then_some(row)
            })
            .collect();
        let late = rows.iter().map(|row| row.count).sum();
        rows.iter_mut().for_each(|row| row.late = late);
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// The legs of a traced message that were late, with the delay above which they were.
    pub(crate) fn late_legs<'a>(&self, trace: &'a Trace) -> Vec<(&'a Judged, i64)> {
        let limit = |judged: &Judged| threshold_ns(self.late, self.table.get(&judged.key)?);
        let late = trace.judged.iter().filter_map(|judged| Some((judged, limit(judged)?)));
        late.filter(|(judged, limit_ns)| judged.delay.delay_ns > *limit_ns).collect()
    }

    /// A sentence for each hop whose delays look like Nagle's algorithm and delayed ACKs.
    pub(crate) fn nagle_notes(&self) -> impl Iterator<Item = String> {
        self.table.of(LegKind::Hop).filter_map(|hop| {
            let signature = hop.plateau.signature()?;
            let (from, to) = (self.name(hop.key.from.node), self.name(hop.key.to.node));
            let setting = match self.nodelay_of(hop.key.from.node) {
                // Then something else looks the same.
                Some(true) => return None,
                Some(false) => "TCP_NODELAY is off there: set it",
                None => "make sure that TCP_NODELAY is set there",
            };
            let (sender, receiver) = (Printable(from), Printable(to));
            Some(format!(
                "{} of {} small messages took 33 to 50 ms from {sender} to {receiver} and hardly \
                 any longer, as Nagle's algorithm at {sender} does when it waits for \
                 acknowledgements that {receiver} delays; {setting} (nodelay = true)",
                signature.on, signature.messages
            ))
        })
    }

    /// Whether a node has TCP_NODELAY set, as far as the headers of the records tell.
    fn nodelay_of(&self, node: Option<NameId>) -> Option<bool> {
        let name = self.name(node);
        let of_node = self.headers.iter().filter(|header| header.node == name);
        let known: Vec<bool> =
            of_node.filter_map(|header| Some(header.socket.as_ref()?.nodelay)).collect();
        (!known.is_empty()).then(|| known.iter().all(|nodelay| *nodelay))
    }
}
