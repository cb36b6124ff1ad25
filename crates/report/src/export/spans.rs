//! A message as spans: the whole, each stay, each hop.

use std::borrow::Cow;

use hopline_timeline::{Stage, Stamp};

use crate::cause::Cause;
use crate::report::Report;
use crate::traces::Trace;
use crate::way::{Leg, LegKind, Way};

/// From one stamp to another, in wall-clock time.
#[derive(Debug)]
pub(super) struct Span<'a> {
    pub(super) kind: LegKind,
    pub(super) name: String,
    /// The node at which it begins.
    pub(super) node: &'a str,
    pub(super) start_ns: i64,
    /// Never before the start, also where the clocks say so.
    pub(super) end_ns: i64,
    /// As the clocks say it.
    pub(super) delay_ns: i64,
    pub(super) error_bound_ns: u64,
    /// Why it was late, if it was.
    pub(super) cause: Option<Cause>,
    /// The stamps inside, of a stay and a hop.
    pub(super) events: Vec<(Cow<'static, str>, i64)>,
}

/// The spans of a message, the whole first; those whose wall-clock time isn't known are left out.
pub(super) fn of<'a>(report: &Report, trace: &'a Trace) -> Vec<Span<'a>> {
    let Some(way) = Way::new(&trace.timeline) else {
        return Vec::new();
    };
    let late = report.late_legs(trace);
    let mut spans = Vec::new();
    for leg in way.legs() {
        // From DUE, the second whole, says no more than the send lag.
        let is_first = leg.kind != LegKind::EndToEnd || spans.is_empty();
        let is_told = !matches!(leg.kind, LegKind::Part | LegKind::Stage | LegKind::Wait);
        if is_first && is_told {
            let is_it = |kind, at| kind == leg.kind && contains(&way, &leg, at);
            let late = late.iter().find(|(judged, _)| is_it(judged.key.kind, judged.at));
            spans.extend(span(&way, &leg, late.map(|(judged, _)| judged.cause)));
        }
    }
    spans
}

/// Whether the stamp at which a cause shows is of this leg.
fn contains(way: &Way<'_>, leg: &Leg<'_>, at: usize) -> bool {
    let (from, to) = (way.index(leg.from), way.index(leg.to));
    from.is_some_and(|from| from < at) && to.is_some_and(|to| at <= to)
}

fn span<'a>(way: &Way<'a>, leg: &Leg<'a>, cause: Option<Cause>) -> Option<Span<'a>> {
    let nodes = &way.timeline().nodes;
    let (node, to) = (nodes.get(leg.from.node)?, nodes.get(leg.to.node)?);
    let (start_ns, end_ns) = (way.wall_ns(leg.from)?, way.wall_ns(leg.to)?);
    let delay = way.delay(leg).ok()?;
    let name = match leg.kind {
        LegKind::EndToEnd => "end to end".to_owned(),
        LegKind::SendLag => "send lag".to_owned(),
        LegKind::Hop => format!("hop {} -> {}", node.name, to.name),
        LegKind::Gap => format!("gap {} -> unknown node -> {}", node.name, to.name),
        _ => format!("stay {}", node.name),
    };
    let inside = matches!(leg.kind, LegKind::Hop | LegKind::Gap | LegKind::Stay);
    let stamps: &[Stamp] = if inside { way.between(leg) } else { &[] };
    let event = |stamp: &Stamp| Some((Stage::name_of(stamp.stage), way.wall_ns(stamp)?));
    Some(Span {
        kind: leg.kind,
        name,
        node: &node.name,
        start_ns,
        end_ns: end_ns.max(start_ns),
        delay_ns: delay.delay_ns,
        error_bound_ns: delay.error_bound_ns,
        cause,
        events: stamps.iter().filter_map(event).collect(),
    })
}
