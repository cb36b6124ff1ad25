//! The report as one table: fields quoted by RFC 4180, lines ended by a line feed.

use std::io::{self, Write};

use super::entry::{Entry, Ns};
use crate::report::Report;
use crate::traces::Trace;
use crate::way::{LegKind, Way};

const COLUMNS: &str = "kind,name,from_node,from_stage,to_node,to_stage,count,min_ns,p50_ns,p90_ns,\
    p99_ns,p99_9_ns,max_ns,mean_ns,total_ns,share_of_end_to_end,negative,missing,saturated,\
    no_common_clock,error_bound_ns";

/// Writes the legs and waits, then the traced messages as samples of one, then the counts.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")?;
    for line in report.lines() {
        write_entry(&Entry::of_row(report, line.row), out)?;
    }
    for row in report.table.of(LegKind::Wait) {
        write_entry(&Entry::of_row(report, row), out)?;
    }
    for (_, trace) in report.traces.iter() {
        write_trace(trace, out)?;
    }
    for (name, count) in report.counts().named() {
        writeln!(out, "count,{name},,,,,{count},,,,,,,,,,,,,,")?;
    }
    Ok(())
}

fn write_trace(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let Some(way) = Way::new(&trace.timeline) else {
        return Ok(());
    };
    let ends = (way.origin(), way.end());
    write_entry(&Entry::of_sample("trace_end_to_end", trace, ends, way.end_to_end()), out)?;
    let mut from = way.origin();
    for step in way.steps() {
        write_entry(&Entry::of_sample("trace", trace, (from, step.stamp), step.delay), out)?;
        if step.stamp.at.is_some() {
            from = step.stamp;
        }
    }
    Ok(())
}

fn write_entry(entry: &Entry<'_>, out: &mut impl Write) -> io::Result<()> {
    let texts = [
        entry.kind,
        entry.name.as_deref().unwrap_or_default(),
        entry.from_node.unwrap_or_default(),
        &entry.from_stage,
        entry.to_node.unwrap_or_default(),
        &entry.to_stage,
    ];
    texts.iter().try_for_each(|text| write!(out, "{},", quoted(text)))?;
    write!(out, "{}", entry.count)?;
    let delays = [
        entry.min_ns,
        entry.p50_ns,
        entry.p90_ns,
        entry.p99_ns,
        entry.p99_9_ns,
        entry.max_ns,
        entry.mean_ns,
        entry.total_ns,
    ];
    delays.iter().try_for_each(|ns| write!(out, ",{}", digits(*ns)))?;
    let share = entry.share_of_end_to_end.map_or(String::new(), |share| format!("{share:.6}"));
    write!(out, ",{share},{},{}", entry.negative, entry.missing)?;
    write!(out, ",{},{}", entry.saturated, entry.no_common_clock)?;
    writeln!(out, ",{}", digits(entry.error_bound_ns))
}

fn digits(ns: Option<Ns>) -> String {
    ns.map_or(String::new(), |Ns(ns)| ns.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_would_be_taken_for_more() {
        assert_eq!(quoted("broker"), "broker");
        assert_eq!(quoted("a, \"b\"\n"), "\"a, \"\"b\"\"\n\"");
    }
}
