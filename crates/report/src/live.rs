//! What passed in the last seconds: figures that follow the records while they arrive.
//!
//! Time is an argument here: seconds since the beginning, by the clock of who reads.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::{CreationError, Histogram};

use crate::cause::{Cause, Judged, Late};
use crate::distribution::LONGEST_NS;
use crate::report::Report;
use crate::table::Key;
use crate::units::Short;
use crate::way::LegKind;

/// The seconds that percentiles and rates are of.
pub const WINDOW_S: usize = 10;

/// The seconds that the line beside them shows.
pub const LINE_S: usize = 60;

/// How many hops and stays are followed; further ones are in the report only. Each takes some 20
/// KiB for every second of the window.
pub const LEG_LIMIT: usize = 32;

/// Significant decimal digits of a percentile.
const DIGITS: u8 = 2;

/// The last seconds of each leg.
#[derive(Debug)]
pub(crate) struct Live {
    second: u64,
    is_late: Late,
    legs: Vec<(Key, Leg)>,
    /// Of whole messages that were late: how many for each cause, second by second.
    late: VecDeque<BTreeMap<Cause, u64>>,
    scratch: Histogram<u32>,
}

/// The last seconds of a leg, the present one at the end.
#[derive(Debug)]
struct Leg {
    slices: VecDeque<Histogram<u32>>,
    /// The 99th percentile of each second; 0 where nothing came.
    line: VecDeque<u64>,
    /// From when on it is late, in ns.
    limit_ns: i64,
}

/// What to show now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Seconds since the beginning.
    pub second: u64,
    /// Messages with a timeline so far.
    pub messages: u64,
    /// Lines that could not be read so far.
    pub malformed: u64,
    /// The whole way, then its parts in order.
    pub legs: Vec<ViewLeg>,
    /// Why whole messages of the window were late, most frequent first.
    pub causes: Vec<(&'static str, u64)>,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewLeg {
    /// Which leg.
    pub name: String,
    /// Messages in the window.
    pub messages: u64,
    /// Seconds of the window that have passed, at least 1.
    pub seconds: u64,
    /// The 50th, 90th and 99th percentile and the greatest delay of the window, for people; empty
    /// where nothing came.
    pub delays: [String; 4],
    /// The 99th percentile in ns of each of the last [`LINE_S`] seconds, the present one last.
    pub line: Vec<u64>,
}

impl Live {
    pub(crate) fn new(is_late: Late) -> Result<Self, CreationError> {
        let scratch = Histogram::new_with_bounds(1, LONGEST_NS.unsigned_abs(), DIGITS)?;
        let late = VecDeque::from([BTreeMap::new()]);
        Ok(Self { second: 0, is_late, legs: Vec::new(), late, scratch })
    }

    /// It is that second now: what is older than the window is forgotten.
    pub(crate) fn advance(&mut self, second: u64) {
        while self.second < second {
            // Beyond the longer of both there is nothing to be forgotten.
            self.second = (self.second + 1).max(second.saturating_sub(LINE_S as u64));
            for (_, leg) in &mut self.legs {
                leg.turn(&mut self.scratch, self.is_late);
            }
            self.late.push_back(BTreeMap::new());
            while self.late.len() > WINDOW_S {
                self.late.pop_front();
            }
        }
    }

    /// A message has come.
    pub(crate) fn add(&mut self, judged: &[Judged]) {
        for judged in judged {
            let Some(leg) = self.leg(judged.key) else { continue };
            let delay_ns = judged.delay.delay_ns;
            if let Some(slice) = leg.slices.back_mut() {
                slice.saturating_record(delay_ns.clamp(0, LONGEST_NS).unsigned_abs());
            }
            let is_late = delay_ns > leg.limit_ns;
            if judged.key.kind == LegKind::EndToEnd
                && is_late
                && let Some(late) = self.late.back_mut()
            {
                *late.entry(judged.cause).or_default() += 1;
            }
        }
    }

    fn leg(&mut self, key: Key) -> Option<&mut Leg> {
        let at = match self.legs.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None if self.legs.len() < LEG_LIMIT => {
                let slices = VecDeque::from([Histogram::new_from(&self.scratch)]);
                let limit_ns = match self.is_late {
                    Late::Over(ns) => ns,
                    // Until there is a median.
                    Late::Times(_) => i64::MAX,
                };
                let leg = Leg { slices, line: VecDeque::new(), limit_ns };
                self.legs.push((key, leg));
                self.legs.len() - 1
            }
            None => return None,
        };
        self.legs.get_mut(at).map(|(_, leg)| leg)
    }

    /// What to show, in the order of the report's table.
    pub(crate) fn view(&mut self, report: &Report) -> View {
        let lines = report.lines();
        let mut legs = Vec::new();
        for row in lines.iter().map(|line| line.row) {
            let leg = self.legs.iter().find(|(key, _)| *key == row.key);
            if let Some((_, leg)) = leg {
                legs.push(leg.view(report.leg_name(row), &mut self.scratch));
            }
        }
        let mut causes = BTreeMap::new();
        for (cause, count) in self.late.iter().flatten() {
            *causes.entry(*cause).or_insert(0) += count;
        }
        let mut causes: Vec<_> = causes.into_iter().map(|(c, n)| (c.name(), n)).collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let counts = report.counts();
        let (messages, malformed) = (counts.messages, counts.malformed);
        View { second: self.second, messages, malformed, legs, causes }
    }
}

impl Leg {
    /// A second has passed.
    fn turn(&mut self, scratch: &mut Histogram<u32>, late: Late) {
        self.line.push_back(self.slices.back().map_or(0, p99));
        while self.line.len() >= LINE_S {
            self.line.pop_front();
        }
        self.sum(scratch);
        self.limit_ns = match late {
            Late::Over(ns) => ns,
            Late::Times(_) if scratch.is_empty() => self.limit_ns,
            Late::Times(thousandths) => {
                let limit = u128::from(scratch.value_at_quantile(0.5)) * u128::from(thousandths);
                i64::try_from(limit / 1_000).unwrap_or(i64::MAX)
            }
        };
        // The oldest one's memory serves the new second.
        let oldest = (self.slices.len() >= WINDOW_S).then(|| self.slices.pop_front()).flatten();
        let mut fresh = oldest.unwrap_or_else(|| Histogram::new_from(scratch));
        fresh.clear();
        self.slices.push_back(fresh);
    }

    fn sum(&self, scratch: &mut Histogram<u32>) {
        scratch.clear();
        for slice in &self.slices {
            // All have one range.
            let _ = scratch.add(slice);
        }
    }

    fn view(&self, name: String, scratch: &mut Histogram<u32>) -> ViewLeg {
        self.sum(scratch);
        let short = |ns: u64| Short(i64::try_from(ns).unwrap_or(i64::MAX)).to_string();
        let delays = match scratch.is_empty() {
            true => Default::default(),
            false => {
                let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| scratch.value_at_quantile(q));
                [p50, p90, p99, scratch.max()].map(short)
            }
        };
        let mut line: Vec<u64> = self.line.iter().copied().collect();
        line.push(self.slices.back().map_or(0, p99));
        let seconds = self.slices.len() as u64;
        ViewLeg { name, messages: scratch.len(), seconds, delays, line }
    }
}

fn p99(slice: &Histogram<u32>) -> u64 {
    if slice.is_empty() { 0 } else { slice.value_at_quantile(0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Point;
    use hopline_timeline::{Delay, Stage};

    const MS: i64 = 1_000_000;

    fn judged(kind: LegKind, node: u8, delay_ns: i64, cause: Cause) -> Judged {
        let point = Point { node: None, stage: Stage::Send.code() + node };
        let key = Key { kind, from: point, to: point, why: None };
        Judged { key, delay: Delay { delay_ns, error_bound_ns: 0 }, cause, at: 0 }
    }

    fn whole(delay_ns: i64, cause: Cause) -> Judged {
        judged(LegKind::EndToEnd, 0, delay_ns, cause)
    }

    fn window(live: &mut Live) -> ViewLeg {
        let (_, leg) = &live.legs[0];
        leg.view(String::new(), &mut live.scratch)
    }

    #[test]
    fn figures_are_of_the_last_ten_seconds_and_the_line_of_the_last_sixty() {
        let mut live = Live::new(Late::default()).unwrap();
        for second in 0..100 {
            live.advance(second);
            for _ in 0..second + 1 {
                live.add(&[whole((second as i64 + 1) * MS, Cause::Hop)]);
            }
        }
        let view = window(&mut live);
        assert_eq!((view.messages, view.seconds), ((91..=100).sum(), WINDOW_S as u64));
        assert_eq!(view.line.len(), LINE_S);
        let ms: Vec<u64> = view.line.iter().map(|ns| ns.div_ceil(MS as u64)).collect();
        assert!(ms.is_sorted() && (100..=101).contains(&ms[59]) && ms[0] >= 41, "{ms:?}");
        live.advance(1_000_000_000_000);
        let view = window(&mut live);
        assert_eq!((view.messages, view.line), (0, vec![0; LINE_S]));
        assert_eq!(view.delays, [const { String::new() }; 4]);
    }

    #[test]
    fn late_messages_are_counted_by_cause_until_they_leave_the_window() {
        let mut live = Live::new(Late::default()).unwrap();
        for second in 0..3 {
            live.advance(second);
            (0..50).for_each(|_| live.add(&[whole(MS, Cause::Hop)]));
        }
        live.add(&[whole(6 * MS, Cause::Nagle)]);
        live.add(&[whole(4 * MS, Cause::Wire)]);
        let report = Report::new(crate::Wanted::default()).unwrap();
        assert_eq!(live.view(&report).causes, [("nagle", 1)]);
        live.advance(12);
        assert_eq!(live.view(&report).causes, []);
        live.advance(13);
        let mut live = Live::new(Late::Over(3 * MS)).unwrap();
        live.add(&[whole(4 * MS, Cause::Wire), whole(2 * MS, Cause::Hop)]);
        assert_eq!(live.view(&report).causes, [("wire", 1)]);
    }

    #[test]
    fn there_is_an_end_to_how_many_legs_are_followed() {
        let mut live = Live::new(Late::default()).unwrap();
        for node in 0..100 {
            live.add(&[judged(LegKind::Hop, node, MS, Cause::Hop)]);
        }
        assert_eq!(live.legs.len(), LEG_LIMIT);
        live.add(&[judged(LegKind::Hop, 0, -MS, Cause::Hop), whole(i64::MAX, Cause::Hop)]);
    }
}
