//! Spans in the JSON of Chrome's tracing, which Perfetto reads.
//!
//! A process is a node, a thread in it is a message. Times are microseconds with three decimals
//! since the earliest stamp, since the format's readers keep them as doubles; `otherData` has that
//! stamp's time, and each span its nanoseconds, as strings.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use super::spans::{self, Span};
use crate::report::Report;
use crate::traces::Trace;
use crate::units::Micros;
use crate::way::LegKind;

pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let messages: Vec<(&Trace, Vec<Span<'_>>)> =
        report.traces.exported().map(|trace| (trace, spans::of(report, trace))).collect();
    let all = || messages.iter().flat_map(|(_, spans)| spans);
    let zero_ns = all().map(|span| span.start_ns).min().unwrap_or(0);
    let mut nodes = BTreeMap::new();
    for span in all() {
        let next = nodes.len() + 1;
        nodes.entry(span.node).or_insert(next);
    }
    let zero = json!({ "zero_unix_ns": zero_ns.to_string() });
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{zero},\"traceEvents\":[")?;
    for (name, node) in &nodes {
        let args = json!({ "name": name });
        writeln!(
            out,
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{node},\"args\":{args}}},"
        )?;
    }
    for (thread, (trace, spans)) in (1..).zip(&messages) {
        for span in spans {
            let node = nodes.get(span.node).copied().unwrap_or_default();
            write_span(out, (node, thread), trace, span, zero_ns)?;
        }
    }
    // Something has to stand behind the last comma.
    writeln!(out, "{{\"ph\":\"M\",\"name\":\"end\",\"pid\":0,\"args\":{{}}}}]}}")
}

fn write_span(
    out: &mut impl Write,
    (node, thread): (usize, u64),
    trace: &Trace,
    span: &Span<'_>,
    zero_ns: i64,
) -> io::Result<()> {
    let since_zero = i128::from(span.start_ns) - i128::from(zero_ns);
    let long = Micros(i128::from(span.end_ns) - i128::from(span.start_ns));
    let args = json!({
        "timeline": trace.timeline.id.to_string(),
        "seq": trace.seq.to_string(),
        "octets": trace.octets.to_string(),
        "start_unix_ns": span.start_ns.to_string(),
        "delay_ns": span.delay_ns.to_string(),
        "error_bound_ns": span.error_bound_ns.to_string(),
        "late": span.cause.map(|cause| cause.name()),
    });
    let is_hop = matches!(span.kind, LegKind::Hop | LegKind::Gap);
    let (name, category) = (json!(span.name), if is_hop { "hop" } else { "stay" });
    let at = Micros(since_zero);
    write!(out, "{{\"ph\":\"X\",\"name\":{name},\"cat\":\"{category}\",\"pid\":{node},")?;
    writeln!(out, "\"tid\":{thread},\"ts\":{at},\"dur\":{long},\"args\":{args}}},")
}
