//! The trace of one message: a line for each stamp, in milliseconds since the stamp before.

use std::fmt::{self, Write};

use hopline_timeline::{Delay, Stage, Stamp, UPPER_BOUND, Unmeasured};

use super::wait_name;
use crate::cause::Judged;
use crate::join::{RETRANSMITTED, is_of_kernel, is_upper_bound};
use crate::report::Report;
use crate::traces::{Reason, Trace};
use crate::units::{Millis, Period, Printable};
use crate::way::{LegKind, Step, Way, comes_by_others, tells_wait};

/// Writes a trace. The stamps' lines end where the first line's period ends; what else there is
/// to say follows after two spaces.
///
/// ```text
/// + e2e: 2.015 TIMELINE CREATE: P00:00:17.495230  publisher  seq 7  id 0af7...319c
///                                 PUBLISH: 0.000
///                                 RECEIVE: 0.359  broker
/// ```
pub(super) fn write(
    report: &Report,
    (reason, trace): (Reason, &Trace),
    out: &mut String,
) -> fmt::Result {
    let Some(way) = Way::new(&trace.timeline) else {
        return Ok(());
    };
    let origin = way.origin();
    let period = report.since_zero(&trace.timeline, origin);
    let end_to_end = Outcome(way.end_to_end());
    let stage = Stage::name_of(origin.stage);
    let head = format!("+ e2e: {end_to_end} TIMELINE {stage}: {}", Since(period));
    let mut at = origin;
    write!(out, "{head}{}", Bound(end_to_end.0))?;
    write_node(trace, at, out)?;
    for stamp in way.before_origin() {
        let (name, before) = (Stage::name_of(stamp.stage), trace.timeline.delay(stamp, origin));
        write!(out, "  {name} {} before", Outcome(before))?;
    }
    write!(out, "{}", Particulars(reason, trace))?;
    let late = report.late_legs(trace);
    write_causes(&late, way.index(origin), out)?;
    out.push('\n');
    for step in way.steps() {
        write_step(trace, step, at, head.len(), out)?;
        write_causes(&late, way.index(step.stamp), out)?;
        out.push('\n');
        at = step.stamp;
    }
    Ok(())
}

fn write_step(
    trace: &Trace,
    Step { stamp, delay }: Step<'_>,
    previous: &Stamp,
    width: usize,
    out: &mut String,
) -> fmt::Result {
    let line = format!("{}: {}", Stage::name_of(stamp.stage), Outcome(delay));
    write!(out, "{line:>width$}{}", Bound(delay))?;
    if stamp.node != previous.node {
        write_node(trace, stamp, out)?;
    }
    match stamp.detail {
        0 => Ok(()),
        detail if is_of_kernel(stamp) => write_kernel_detail(detail, out),
        _ if is_upper_bound(stamp) => out.write_str("  <="),
        detail if tells_wait(stamp) => write!(out, "  waited for {}", wait_name(detail)),
        _ if comes_by_others(stamp) => out.write_str("  by way of an unknown node"),
        detail => write!(out, "  detail {detail}"),
    }
}

/// An upper bound, and whether octets were sent again.
fn write_kernel_detail(detail: u8, out: &mut String) -> fmt::Result {
    if detail & UPPER_BOUND != 0 {
        out.write_str("  <=")?;
    }
    if detail & RETRANSMITTED != 0 {
        out.write_str("  sent again")?;
    }
    Ok(())
}

/// Why the message was late, at the stamp that shows it. From end to end says nothing new.
fn write_causes(late: &[(&Judged, i64)], at: Option<usize>, out: &mut String) -> fmt::Result {
    let here = late.iter().map(|(judged, _)| *judged).filter(|judged| Some(judged.at) == at);
    let parts = here.filter(|judged| judged.key.kind != LegKind::EndToEnd);
    parts.into_iter().try_for_each(|judged| write!(out, "  late: {}", judged.cause.name()))
}

fn write_node(trace: &Trace, stamp: &Stamp, out: &mut String) -> fmt::Result {
    match trace.timeline.nodes.get(stamp.node) {
        Some(node) => write!(out, "  {}", Printable(&node.name)),
        None => Ok(()),
    }
}

/// A delay in milliseconds, or why there is none.
struct Outcome(Result<Delay, Unmeasured>);

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(delay) => Millis(delay.delay_ns).fmt(f),
            Err(Unmeasured::Missing) => f.write_str("missing"),
            Err(Unmeasured::Clocks) => f.write_str("no common clock"),
            Err(Unmeasured::Range) => f.write_str("out of range"),
        }
    }
}

/// By how much a delay between two clocks can be wrong.
struct Bound(Result<Delay, Unmeasured>);

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(Delay { error_bound_ns, .. }) if error_bound_ns > 0 => {
                let bound_ns = i64::try_from(error_bound_ns).unwrap_or(i64::MAX);
                write!(f, "  +-{}", Millis(bound_ns))
            }
            _ => Ok(()),
        }
    }
}

/// The time since the first message's origin.
struct Since(Result<Delay, Unmeasured>);

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ok(delay) => Period(delay.delay_ns).fmt(f),
            Err(_) => f.write_str("P?"),
        }
    }
}

/// Which message it is, and what is odd about it.
struct Particulars<'a>(Reason, &'a Trace);

impl fmt::Display for Particulars<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Particulars(reason, Trace { seq, redelivered, duplicate, timeline, .. }) = self;
        write!(f, "  {}  seq {seq}  id {}", reason.name(), timeline.id)?;
        if *redelivered {
            f.write_str("  redelivered")?;
        }
        if *duplicate {
            f.write_str("  duplicate")?;
        }
        if timeline.overflow {
            write!(f, "  {} stamps dropped", timeline.dropped)?;
        }
        Ok(())
    }
}
