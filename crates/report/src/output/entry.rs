//! A row of figures as programs read it: the same names in JSON and in CSV.

use std::borrow::Cow;

use hopline_timeline::{Delay, Stage, Stamp, Unmeasured};
use serde::{Serialize, Serializer};

use super::late::LateRow;
use super::{kind_name, late_kind_name, stage_name, wait_name};
use crate::distribution::LONGEST_NS;
use crate::report::Report;
use crate::table::Row;
use crate::traces::Trace;

/// Nanoseconds. A string in JSON, whose readers may keep numbers as doubles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ns(pub(crate) i128);

impl Serialize for Ns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl From<i64> for Ns {
    fn from(ns: i64) -> Self {
        Ns(ns.into())
    }
}

/// The figures of a leg, or one sample of a trace.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: &'static str,
    /// What a wait was for; the id of a traced message.
    pub(crate) name: Option<Cow<'static, str>>,
    pub(crate) from_node: Option<&'a str>,
    pub(crate) from_stage: Cow<'static, str>,
    pub(crate) to_node: Option<&'a str>,
    pub(crate) to_stage: Cow<'static, str>,
    pub(crate) count: u64,
    pub(crate) min_ns: Option<Ns>,
    pub(crate) p50_ns: Option<Ns>,
    pub(crate) p90_ns: Option<Ns>,
    pub(crate) p99_ns: Option<Ns>,
    pub(crate) p99_9_ns: Option<Ns>,
    pub(crate) max_ns: Option<Ns>,
    pub(crate) mean_ns: Option<Ns>,
    pub(crate) total_ns: Option<Ns>,
    pub(crate) share_of_end_to_end: Option<f64>,
    pub(crate) negative: u64,
    pub(crate) missing: u64,
    pub(crate) saturated: u64,
    pub(crate) no_common_clock: u64,
    /// How wrong the delays can be; 0 where all stamps are of one clock.
    pub(crate) error_bound_ns: Option<Ns>,
    /// Of late messages: why; of a traced message's stamp: why the leg that it explains was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<&'static str>,
    /// Above which delay they are late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit_ns: Option<Ns>,
    /// Their part of all late messages of the leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share_of_late: Option<f64>,
    /// Their part of all messages of the leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share_of_messages: Option<f64>,
}

impl<'a> Entry<'a> {
    /// The figures of a row.
    pub(crate) fn of_row(report: &'a Report, row: &'a Row) -> Self {
        let node = |id| report.name(id);
        let (key, delays) = (&row.key, &row.delays);
        let is_known = delays.count() > 0;
        let percentile = |per_mille| delays.percentile_ns(per_mille).map(Ns::from);
        Self {
            kind: kind_name(key.kind),
            name: key.why.map(wait_name),
            from_node: key.from.node.map(|id| node(Some(id))),
            from_stage: stage_name(key.from),
            to_node: key.to.node.map(|id| node(Some(id))),
            to_stage: stage_name(key.to),
            count: delays.count(),
            min_ns: delays.min_ns().map(Ns::from),
            p50_ns: percentile(500),
            p90_ns: percentile(900),
            p99_ns: percentile(990),
            p99_9_ns: percentile(999),
            max_ns: delays.max_ns().map(Ns::from),
            mean_ns: delays.mean_ns().map(Ns::from),
            total_ns: is_known.then(|| Ns(delays.sum_ns())),
            share_of_end_to_end: report.share(row).map(|share| share as f64 / 1e6),
            negative: delays.negative(),
            missing: row.missing,
            saturated: row.saturated(),
            no_common_clock: row.no_common_clock,
            error_bound_ns: is_known.then(|| Ns(row.error_bound_ns.into())),
            ..Self::default()
        }
    }

    /// Late messages of one cause.
    pub(crate) fn of_late(report: &'a Report, row: &LateRow<'a>) -> Self {
        let leg = Self::of_row(report, row.leg);
        Self {
            kind: late_kind_name(row.leg.key.kind),
            from_node: leg.from_node,
            from_stage: leg.from_stage,
            to_node: leg.to_node,
            to_stage: leg.to_stage,
            count: row.count,
            max_ns: row.max_ns.map(Ns::from),
            mean_ns: row.mean_ns().map(Ns::from),
            total_ns: Some(Ns(row.sum_ns)),
            error_bound_ns: leg.error_bound_ns,
            cause: Some(row.cause.name()),
            limit_ns: Some(row.limit_ns.into()),
            share_of_late: row.share_of_late().map(|share| share as f64 / 1e6),
            share_of_messages: row.share_of_messages().map(|share| share as f64 / 1e6),
            ..Self::default()
        }
    }

    /// One difference of a traced message.
    pub(crate) fn of_sample(
        kind: &'static str,
        trace: &'a Trace,
        (from, to): (&Stamp, &Stamp),
        delay: Result<Delay, Unmeasured>,
    ) -> Self {
        let node = |stamp: &Stamp| trace.timeline.nodes.get(stamp.node);
        let ns = delay.ok().map(|delay| Ns::from(delay.delay_ns));
        let is = |lack| u64::from(delay == Err(lack));
        let exceeds = |delay: Delay| delay.delay_ns.unsigned_abs() > LONGEST_NS.unsigned_abs();
        Self {
            kind,
            name: Some(Cow::Owned(trace.timeline.id.to_string())),
            from_node: node(from).map(|node| node.name.as_str()),
            from_stage: Stage::name_of(from.stage),
            to_node: node(to).map(|node| node.name.as_str()),
            to_stage: Stage::name_of(to.stage),
            count: u64::from(ns.is_some()),
            min_ns: ns,
            p50_ns: ns,
            p90_ns: ns,
            p99_ns: ns,
            p99_9_ns: ns,
            max_ns: ns,
            mean_ns: ns,
            total_ns: ns,
            share_of_end_to_end: None,
            negative: u64::from(ns.is_some_and(|Ns(ns)| ns < 0)),
            missing: is(Unmeasured::Missing),
            saturated: is(Unmeasured::Range) + u64::from(delay.is_ok_and(exceeds)),
            no_common_clock: is(Unmeasured::Clocks),
            error_bound_ns: delay.ok().map(|delay| Ns(delay.error_bound_ns.into())),
            ..Self::default()
        }
    }
}
