//! The report as one JSON object, schema 1.
//!
//! Nanoseconds are strings, as everywhere in records; counts are numbers (they stay far below
//! 2^53). What isn't known is null. New fields may come; none changes its meaning within a schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use hopline_timeline::record::{ClockRecord, ConnectionRecord, HeaderRecord};
use hopline_timeline::{Stage, Stamp};
use serde::{Serialize, Serializer};

use super::entry::{Entry, Ns};
use super::{kind_name, wait_name};
use crate::cause::Judged;
use crate::counts::Counts;
use crate::distribution::LONGEST_NS;
use crate::report::Report;
use crate::traces::{Reason, Trace};
use crate::way::{LegKind, Way, tells_wait};

#[derive(Serialize)]
struct Document<'a> {
    hopline: &'static str,
    schema: u32,
    /// Delays above this are saturated.
    longest_ns: Ns,
    counts: Named,
    notes: Vec<String>,
    recorded_by: &'a [HeaderRecord],
    connections: &'a [ConnectionRecord],
    clocks: Vec<Clock<'a>>,
    end_to_end: Vec<Entry<'a>>,
    send_lag: Vec<Entry<'a>>,
    hops: Vec<Entry<'a>>,
    /// Hops by way of nodes that do not stamp.
    gaps: Vec<Entry<'a>>,
    /// To, in and from nodes of other makes within gaps.
    parts: Vec<Entry<'a>>,
    stays: Vec<Entry<'a>>,
    stages: Vec<Entry<'a>>,
    waits: Vec<Entry<'a>>,
    late: Late<'a>,
    traces: Vec<TraceObject<'a>>,
}

#[derive(Serialize)]
struct Late<'a> {
    /// What counts as late, in words.
    over: String,
    causes: Vec<Entry<'a>>,
    /// What each cause that was found means, and what helps.
    explanations: BTreeMap<&'static str, &'static str>,
}

/// The counts, as an object.
struct Named(Counts);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.named())
    }
}

#[derive(Serialize)]
struct Clock<'a> {
    node: &'a str,
    #[serde(flatten)]
    clock: ClockRecord,
}

#[derive(Serialize)]
struct TraceObject<'a> {
    /// `first`, `asked` (by id) or `slowest`.
    reason: &'static str,
    id: String,
    seq: u64,
    redelivered: bool,
    duplicate: bool,
    dropped: u16,
    end_to_end_ns: Option<Ns>,
    /// Of the origin, since the first message's origin.
    since_first_ns: Option<Ns>,
    stamps: Vec<StampObject<'a>>,
    late: Vec<LateLeg>,
}

/// A leg that was late.
#[derive(Serialize)]
struct LateLeg {
    /// `end_to_end`, `send_lag`, `hop` or `stay`.
    kind: &'static str,
    cause: &'static str,
    delay_ns: Ns,
    limit_ns: Ns,
    /// Which stamp shows the cause, counted from 0.
    stamp: usize,
}

#[derive(Serialize)]
struct StampObject<'a> {
    node: &'a str,
    stage: Cow<'static, str>,
    at_ns: Option<Ns>,
    /// Since the filled-in stamp before it; null at the origin and where it isn't known.
    delay_ns: Option<Ns>,
    error_bound_ns: Option<Ns>,
    wait: Option<Cow<'static, str>>,
    detail: u8,
}

pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &document(report))?;
    writeln!(out)
}

fn document(report: &Report) -> Document<'_> {
    let entries = |kind| report.table.of(kind).map(|row| Entry::of_row(report, row)).collect();
    let traces = report.traces.iter();
    Document {
        hopline: "report",
        schema: 1,
        longest_ns: LONGEST_NS.into(),
        counts: Named(report.counts()),
        notes: report.notes(),
        recorded_by: &report.headers,
        connections: &report.connections,
        clocks: clocks(report),
        end_to_end: entries(LegKind::EndToEnd),
        send_lag: entries(LegKind::SendLag),
        hops: entries(LegKind::Hop),
        gaps: entries(LegKind::Gap),
        parts: entries(LegKind::Part),
        stays: entries(LegKind::Stay),
        stages: entries(LegKind::Stage),
        waits: entries(LegKind::Wait),
        late: late(report),
        traces: traces.filter_map(|(reason, trace)| trace_object(report, reason, trace)).collect(),
    }
}

fn late(report: &Report) -> Late<'_> {
    let rows = report.late_rows();
    Late {
        over: report.late.to_string(),
        causes: rows.iter().map(|row| Entry::of_late(report, row)).collect(),
        explanations: rows.iter().map(|row| (row.cause.name(), row.cause.explanation())).collect(),
    }
}

fn clocks(report: &Report) -> Vec<Clock<'_>> {
    let clock = |(name, clock): &(_, _)| (report.name(Some(*name)), ClockRecord::from(*clock));
    report.clocks.iter().map(clock).map(|(node, clock)| Clock { node, clock }).collect()
}

fn trace_object<'a>(report: &Report, reason: Reason, trace: &'a Trace) -> Option<TraceObject<'a>> {
    let Trace { seq, redelivered, duplicate, ref timeline, .. } = *trace;
    let way = Way::new(timeline)?;
    let origin = way.origin();
    let since_first = report.since_zero(timeline, origin).ok();
    let before = way.before_origin().chain([origin]);
    let before = before.map(|stamp| stamp_object(trace, stamp));
    let after = way.steps().map(|step| StampObject {
        delay_ns: step.delay.ok().map(|delay| delay.delay_ns.into()),
        error_bound_ns: step.delay.ok().map(|delay| Ns(delay.error_bound_ns.into())),
        ..stamp_object(trace, step.stamp)
    });
    Some(TraceObject {
        reason: reason.name(),
        id: timeline.id.to_string(),
        seq,
        redelivered,
        duplicate,
        dropped: timeline.dropped,
        end_to_end_ns: way.end_to_end().ok().map(|delay| delay.delay_ns.into()),
        since_first_ns: since_first.map(|delay| delay.delay_ns.into()),
        stamps: before.chain(after).collect(),
        late: report.late_legs(trace).into_iter().map(late_leg).collect(),
    })
}

fn late_leg((judged, limit_ns): (&Judged, i64)) -> LateLeg {
    LateLeg {
        kind: kind_name(judged.key.kind),
        cause: judged.cause.name(),
        delay_ns: judged.delay.delay_ns.into(),
        limit_ns: limit_ns.into(),
        stamp: judged.at,
    }
}

fn stamp_object<'a>(trace: &'a Trace, stamp: &Stamp) -> StampObject<'a> {
    let node = trace.timeline.nodes.get(stamp.node);
    StampObject {
        node: node.map_or("", |node| &node.name),
        stage: Stage::name_of(stamp.stage),
        at_ns: stamp.at.map(|at| at.as_nanos().into()),
        delay_ns: None,
        error_bound_ns: None,
        wait: (tells_wait(stamp) && stamp.detail != 0).then(|| wait_name(stamp.detail)),
        detail: stamp.detail,
    }
}
