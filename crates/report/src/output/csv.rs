//! The report as one table: fields quoted by RFC 4180, lines ended by a line feed.

use std::io::{self, Write};

use super::entry::{Entry, Ns};
use crate::cause::Judged;
use crate::report::Report;
use crate::traces::Trace;
use crate::way::{LegKind, Way};

const COLUMNS: &str = "kind,name,from_node,from_stage,to_node,to_stage,count,min_ns,p50_ns,p90_ns,\
    p99_ns,p99_9_ns,max_ns,mean_ns,total_ns,share_of_end_to_end,negative,missing,saturated,\
    no_common_clock,error_bound_ns,cause,limit_ns,share_of_late,share_of_messages";

/// Writes the legs, waits and causes, then the traced messages as samples of one, then the counts.
pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")?;
    for line in report.lines() {
        write_entry(&Entry::of_row(report, line.row), out)?;
    }
    for row in report.table.of(LegKind::Wait) {
        write_entry(&Entry::of_row(report, row), out)?;
    }
    for row in report.late_rows() {
        write_entry(&Entry::of_late(report, &row), out)?;
    }
    for (_, trace) in report.traces.iter() {
        write_trace(report, trace, out)?;
    }
    for (name, count) in report.counts().named() {
        writeln!(out, "count,{name},,,,,{count},,,,,,,,,,,,,,,,,,")?;
    }
    Ok(())
}

fn write_trace(report: &Report, trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let Some(way) = Way::new(&trace.timeline) else {
        return Ok(());
    };
    let ends = (way.origin(), way.end());
    write_entry(&Entry::of_sample("trace_end_to_end", trace, ends, way.end_to_end()), out)?;
    let late = report.late_legs(trace);
    let mut from = way.origin();
    for step in way.steps() {
        let mut entry = Entry::of_sample("trace", trace, (from, step.stamp), step.delay);
        let is_it = |(judged, _): &&(&Judged, i64)| way.index(step.stamp) == Some(judged.at);
        if let Some((judged, limit_ns)) = late.iter().find(is_it) {
            entry.cause = Some(judged.cause.name());
            entry.limit_ns = Some((*limit_ns).into());
        }
        write_entry(&entry, out)?;
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
    let part = |share: Option<f64>| share.map_or(String::new(), |share| format!("{share:.6}"));
    write!(out, ",{},{},{}", part(entry.share_of_end_to_end), entry.negative, entry.missing)?;
    write!(out, ",{},{}", entry.saturated, entry.no_common_clock)?;
    write!(out, ",{},{}", digits(entry.error_bound_ns), entry.cause.unwrap_or_default())?;
    let (of_late, of_all) = (part(entry.share_of_late), part(entry.share_of_messages));
    writeln!(out, ",{},{of_late},{of_all}", digits(entry.limit_ns))
}

fn digits(ns: Option<Ns>) -> String {
    ns.map_or(String::new(), |Ns(ns)| ns.to_string())
}

/// As it is, but for control characters: a peer's name may hold commands to a terminal. And where a
/// spreadsheet would take it for a formula, it begins with an apostrophe.
fn quoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 1);
    if text.starts_with(['=', '+', '-', '@']) {
        plain.push('\'');
    }
    for c in text.chars() {
        if c.is_control() { plain.extend(c.escape_debug()) } else { plain.push(c) }
    }
    if plain.contains([',', '"']) { format!("\"{}\"", plain.replace('"', "\"\"")) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_would_be_taken_for_more() {
        assert_eq!(quoted("broker"), "broker");
        assert_eq!(quoted("a, \"b\"\n"), "\"a, \"\"b\"\"\\n\"");
        assert_eq!(quoted("\u{1b}[2J\\"), "\\u{1b}[2J\\");
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)"] {
            assert_eq!(quoted(formula), format!("'{formula}"));
        }
        assert_eq!(quoted("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(quoted("\t=1"), "\\t=1");
    }
}
