//! The figures of the page.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::Escaped;
use crate::distribution::Distribution;
use crate::output::REFUSED;
use crate::report::Report;
use crate::table::Row;
use crate::units::{Percent, Short};

/// What a reader should know before trusting the figures.
pub(super) fn notes(report: &Report, page: &mut String) -> fmt::Result {
    report
        .notes()
        .iter()
        .try_for_each(|note| writeln!(page, "<p class=\"note\">{}</p>", Escaped(note)))
}

pub(super) fn causes(report: &Report, page: &mut String) -> fmt::Result {
    let rows = report.late_rows();
    if rows.is_empty() {
        return writeln!(page, "<p>No message was late.</p>");
    }
    // In one column, so that a phone shows both beside the first figures.
    head(page, &["cause, where", "messages", "of late", "of all", "mean", "max", "late is over"])?;
    for row in &rows {
        let share = |share: Option<i64>| {
            share.map_or(String::new(), |share| format!("{} %", Percent(share)))
        };
        let (of_late, of_all) = (share(row.share_of_late()), share(row.share_of_messages()));
        let leg = report.leg_name(row.leg);
        let (cause, leg) = (row.cause.name(), Escaped(&leg));
        write!(page, "<tr><td>{cause}<br><span class=\"dim\">{leg}</span></td>")?;
        write!(page, "<td>{}</td><td>{of_late}</td><td>{of_all}</td>", row.count)?;
        write!(page, "<td>{}</td><td>{}</td>", short(row.mean_ns()), short(row.max_ns))?;
        writeln!(page, "<td>{}</td></tr>", Short(row.limit_ns))?;
    }
    writeln!(page, "</table></div><dl>")?;
    let causes: BTreeSet<_> = rows.iter().map(|row| row.cause).collect();
    for cause in causes {
        writeln!(page, "<dt>{}</dt><dd>{}</dd>", cause.name(), cause.explanation())?;
    }
    writeln!(page, "</dl>")
}

/// The table of the report for people, with shorter numbers.
pub(super) fn legs(report: &Report, page: &mut String) -> fmt::Result {
    head(page, &["", "messages", "min", "p50", "p90", "p99", "p99.9", "max", "mean", "share"])?;
    for line in report.lines() {
        let Row { delays, .. } = line.row;
        let short = |ns: Option<i64>| match ns {
            Some(ns) if !line.row.is_significant(ns) => REFUSED.to_owned(),
            ns => short(ns),
        };
        let class = if line.inside_stay { " class=\"in\"" } else { "" };
        let name = report.leg_name(line.row);
        write!(page, "<tr><td{class}>{}</td><td>{}</td>", Escaped(&name), delays.count())?;
        write!(page, "<td>{}</td>", short(delays.min_ns()))?;
        for per_mille in [500, 900, 990, 999] {
            write!(page, "<td>{}</td>", short(delays.percentile_ns(per_mille)))?;
        }
        write!(
            page,
            "<td>{}</td><td>{}</td>",
            short(delays.max_ns()),
            short(Distribution::mean_ns(delays))
        )?;
        let share =
            report.share(line.row).map_or(String::new(), |share| format!("{} %", Percent(share)));
        writeln!(page, "<td>{share}</td></tr>")?;
    }
    writeln!(page, "</table></div>")
}

/// Who recorded, over which sockets, on which clocks; then what was counted.
pub(super) fn settings(report: &Report, page: &mut String) -> fmt::Result {
    writeln!(page, "<ul>")?;
    report.sources().iter().try_for_each(|text| source(page, text))?;
    writeln!(page, "</ul>")?;
    let counts = report.counts().named();
    let counted = counts.iter().filter(|(_, count)| *count > 0);
    let counted = counted.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    writeln!(page, "<p class=\"dim\">{}</p>", counted.collect::<Vec<_>>().join(", "))
}

/// A line, and below it those that belong to it.
fn source(page: &mut String, text: &str) -> fmt::Result {
    let mut lines = text.lines();
    write!(page, "<li>{}", Escaped(lines.next().unwrap_or_default()))?;
    let below: Vec<_> = lines.map(|line| Escaped(line.trim_start())).collect();
    if !below.is_empty() {
        write!(page, "<ul>")?;
        below.iter().try_for_each(|line| write!(page, "<li>{line}</li>"))?;
        write!(page, "</ul>")?;
    }
    writeln!(page, "</li>")
}

fn head(page: &mut String, columns: &[&str]) -> fmt::Result {
    write!(page, "<div class=\"wide\"><table><tr>")?;
    columns.iter().try_for_each(|column| write!(page, "<th>{column}</th>"))?;
    writeln!(page, "</tr>")
}

fn short(ns: Option<i64>) -> String {
    ns.map_or("-".to_owned(), |ns| Short(ns).to_string())
}
