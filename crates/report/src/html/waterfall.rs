//! One message: where it was when.

use std::fmt::{self, Write};

use hopline_timeline::{Stage, Stamp};

use super::{COLOURS, Escaped};
use crate::report::Report;
use crate::traces::Trace;
use crate::units::Short;
use crate::way::{Leg, LegKind, Way};

/// A bar for each hop and stay, a thinner one for each stage; each as long as it took.
pub(super) fn write(report: &Report, title: &str, trace: &Trace, page: &mut String) -> fmt::Result {
    let Some(way) = Way::new(&trace.timeline) else {
        return Ok(());
    };
    let whole = way.end_to_end().map_or(0, |delay| delay.delay_ns);
    let total = if whole > 0 { Short(whole).to_string() } else { "not measured".to_owned() };
    writeln!(
        page,
        "<h3>{title}: {total}</h3><p class=\"dim\">seq {}, id {}",
        trace.seq, trace.timeline.id
    )?;
    let late = report.late_legs(trace);
    let parts = late.iter().filter(|(judged, _)| judged.key.kind != LegKind::EndToEnd);
    for (judged, limit_ns) in parts {
        let (cause, took, limit) = (judged.cause, Short(judged.delay.delay_ns), Short(*limit_ns));
        let stage = trace.timeline.stamps.get(judged.at).map(|stamp| Stage::name_of(stamp.stage));
        let stage = stage.unwrap_or_default();
        let kind = match judged.key.kind {
            LegKind::Hop => "hop",
            LegKind::Gap => "gap",
            LegKind::SendLag => "send lag",
            _ => "stay",
        };
        write!(
            page,
            "<br><span class=\"late-tag\">late: {}</span> ({kind} of {took}, \
             late is over {limit}, seen at {stage}): {}",
            cause.name(),
            cause.explanation()
        )?;
    }
    writeln!(page, "</p><div class=\"fall\">")?;
    let mut colour = 0;
    for leg in way.legs() {
        match leg.kind {
            LegKind::Hop | LegKind::Gap | LegKind::Stay => {
                write_step(&way, &leg, whole, colour % COLOURS, page)?;
                colour += 1;
            }
            LegKind::Stage | LegKind::Part => {
                write_step(&way, &leg, whole, colour.saturating_sub(1) % COLOURS, page)?
            }
            LegKind::EndToEnd | LegKind::SendLag | LegKind::Wait => {}
        }
    }
    writeln!(page, "</div>")
}

fn write_step(
    way: &Way<'_>,
    leg: &Leg<'_>,
    whole: i64,
    colour: usize,
    page: &mut String,
) -> fmt::Result {
    let node =
        |stamp: &Stamp| way.timeline().nodes.get(stamp.node).map_or("", |node| node.name.as_str());
    let stage = |stamp: &Stamp| Stage::name_of(stamp.stage);
    let (from, to) = (Escaped(node(leg.from)), Escaped(node(leg.to)));
    let (class, name) = match leg.kind {
        LegKind::Hop => ("step", format!("{from} → {to}")),
        LegKind::Gap => ("step", format!("{from} → unknown node → {to}")),
        LegKind::Part => ("step part", format!("{from} → {to}")),
        LegKind::Stay => ("step", format!("in {from}")),
        _ => ("step part", format!("{} → {}", stage(leg.from), stage(leg.to))),
    };
    let since = way.timeline().delay(way.origin(), leg.from);
    let (bar, took) = match (since, way.delay(leg)) {
        (Ok(since), Ok(delay)) => {
            let part = |ns: i64| (ns as f64 / whole.max(1) as f64 * 100.0).clamp(0.0, 100.0);
            let left = part(since.delay_ns);
            let width = part(delay.delay_ns).min(100.0 - left);
            let bar = format!("<i style=\"left:{left:.2}%;width:{width:.2}%\"></i>");
            let bound = match delay.error_bound_ns {
                0 => String::new(),
                ns => format!(" ±{}", Short(i64::try_from(ns).unwrap_or(i64::MAX))),
            };
            (bar, format!("{}{bound}", Short(delay.delay_ns)))
        }
        _ => (String::new(), "unknown".to_owned()),
    };
    writeln!(
        page,
        "<div class=\"{class} k{colour}\" title=\"{name}: {took}\"><b>{name}</b>\
         <span class=\"track\">{bar}</span><em>{took}</em></div>"
    )
}
