//! Spans of OpenTelemetry as OTLP's JSON: an export request a line, as its file exporter writes.
//!
//! A trace's id is the timeline's id. By OTLP's rules ids are hexadecimal and integers of 64 bits
//! strings.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::spans::{self, Span};
use crate::report::Report;
use crate::traces::Trace;

pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for trace in report.traces.exported() {
        let spans = spans::of(report, trace);
        if !spans.is_empty() {
            serde_json::to_writer(&mut *out, &request(trace, &spans))?;
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The spans of a message, each with the node at which it begins as its resource.
fn request(trace: &Trace, spans: &[Span<'_>]) -> Value {
    let mut nodes: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (at, span) in (0..).zip(spans) {
        nodes.entry(span.node).or_default().push(span_object(trace, at, span));
    }
    let resource = |(node, spans)| {
        let attributes = [attribute("service.name", node)];
        let scope = json!({ "name": "hopline-report", "version": env!("CARGO_PKG_VERSION") });
        json!({
            "resource": { "attributes": attributes },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        })
    };
    json!({ "resourceSpans": nodes.into_iter().map(resource).collect::<Vec<_>>() })
}

fn span_object(trace: &Trace, at: u64, span: &Span<'_>) -> Value {
    const INTERNAL: u8 = 1;
    let mut attributes = vec![
        integer("hopline.delay_ns", span.delay_ns),
        integer("hopline.error_bound_ns", span.error_bound_ns),
        integer("messaging.message.body.size", trace.octets),
        attribute("messaging.system", "amqp"),
    ];
    attributes.extend(span.cause.map(|cause| attribute("hopline.late", cause.name())));
    let event = |(name, ns): &(_, i64)| json!({ "timeUnixNano": unix(*ns), "name": name });
    let parent = if at == 0 { String::new() } else { span_id(trace, 0) };
    json!({
        "traceId": trace.timeline.id.to_string(),
        "spanId": span_id(trace, at),
        "parentSpanId": parent,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": unix(span.start_ns),
        "endTimeUnixNano": unix(span.end_ns),
        "attributes": attributes,
        "events": span.events.iter().map(event).collect::<Vec<_>>(),
    })
}

fn attribute(key: &str, text: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": text } })
}

fn integer(key: &str, number: impl ToString) -> Value {
    json!({ "key": key, "value": { "intValue": number.to_string() } })
}

/// Times are unsigned there: before 1970 is 1970.
fn unix(ns: i64) -> String {
    ns.max(0).to_string()
}

/// Of the message's id, its number and the span's place, so that the same input gives the same ids
/// and copies of a message for two subscribers don't share them; never zero. FNV-1a.
fn span_id(trace: &Trace, at: u64) -> String {
    let end = trace.timeline.nodes.last().map_or("", |node| &node.name);
    let octets = trace.timeline.id.0.into_iter().chain(end.bytes());
    let octets = octets.chain(trace.seq.to_be_bytes()).chain(at.to_be_bytes());
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:016x}", hash.max(1))
}
