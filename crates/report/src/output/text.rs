//! The report for people.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use hopline_timeline::record::{ConnectionRecord, HeaderRecord};
use hopline_timeline::{ClockDomain, Stage};

use super::grid::Grid;
use super::late::LateRow;
use super::{Line, PERCENTILES, stage_name, trace, wait_name};
use crate::cause::Cause;
use crate::distribution::Distribution;
use crate::names::NameId;
use crate::output::REFUSED;
use crate::report::Report;
use crate::table::Row;
use crate::units::{Micros, Percent, Printable, millionths};
use crate::way::LegKind;

/// How many headers and clocks are listed; there is one for each publisher.
const LISTED: usize = 8;

pub(super) fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut text = String::new();
    for chosen in report.traces.iter() {
        // Writing to a String can't fail.
        let _ = trace::write(report, chosen, &mut text);
        text.push('\n');
        out.write_all(text.as_bytes())?;
        text.clear();
    }
    write_sources(report, out)?;
    if report.counts.messages == 0 {
        writeln!(out, "no messages: nothing to measure")?;
    } else {
        writeln!(out, "{}", legs(report))?;
    }
    if let Some(waits) = waits(report) {
        writeln!(out, "{waits}")?;
    }
    write_late(report, out)?;
    write_connections(report, out)?;
    write_counts(report, out)?;
    write_notes(report, out)
}

impl Report {
    /// A leg by its kind, nodes and stages.
    pub(crate) fn leg_name(&self, row: &Row) -> String {
        let name = label(self, &Line::of(row));
        name.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Who recorded, over which socket; on which clocks the stamps are; what connections cost.
    pub(crate) fn sources(&self) -> Vec<String> {
        let sources = self.headers.iter().map(source);
        let clocks = self.clocks.iter().map(|(name, clock)| clock_line(self, *name, clock));
        sources.chain(clocks).chain(self.connections.iter().map(connection_account)).collect()
    }
}

/// Who recorded, over which socket, and on which clocks the stamps are.
fn write_sources(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for header in report.headers.iter().take(LISTED) {
        writeln!(out, "{}", source(header))?;
    }
    for (name, clock) in report.clocks.iter().take(LISTED) {
        writeln!(out, "{}", clock_line(report, *name, clock))?;
    }
    let unlisted = report.headers.len().saturating_sub(LISTED)
        + report.clocks.iter().len().saturating_sub(LISTED);
    if unlisted > 0 {
        writeln!(out, "and {unlisted} more: --json lists them")?;
    }
    if !report.headers.is_empty() || report.clocks.iter().len() > 0 {
        writeln!(out)?;
    }
    Ok(())
}

fn source(header: &HeaderRecord) -> String {
    let (node, address) = (Printable(&header.node), Printable(&header.address));
    let mut line = format!("recorded by {node} from {address}");
    if let Some(socket) = &header.socket {
        let nodelay = if socket.nodelay { "on" } else { "off" };
        let (local, peer) = (Printable(&socket.local), Printable(&socket.peer));
        let (send, receive) = (socket.send_buffer, socket.receive_buffer);
        let _ = write!(line, ", {local} to {peer}, nodelay {nodelay}");
        let _ = write!(line, ", send buffer {send}, receive buffer {receive}");
        let _ = write!(line, ", notsent lowat {}", socket.notsent_lowat);
    }
    if let Some(ns) = header.resolution_ns {
        let _ = write!(line, ", clock resolution {ns} ns");
    }
    line
}

fn clock_line(report: &Report, name: NameId, clock: &ClockDomain) -> String {
    let name = Printable(report.name(Some(name)));
    let host = match clock.host {
        ClockDomain::UNKNOWN_HOST => "unknown".to_owned(),
        host => hex(&host[..4]),
    };
    let bound = match clock.error_bound_ns {
        ClockDomain::UNSYNCHRONISED => "unsynchronised".to_owned(),
        ns => format!("within +-{} us", Micros(ns.into())),
    };
    format!("clock of {name}: {}, host {host}, wall clock {bound}", clock.kind)
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The table of legs, in microseconds; what the clocks may be wrong by stands in a column of its
/// own.
fn legs(report: &Report) -> Grid {
    let lines = report.lines();
    let rows: Vec<&Row> = lines.iter().map(|line| line.row).collect();
    let mut grid = Grid::new("");
    lines.iter().for_each(|line| grid.label(label(report, line)));
    let delay = |of: &dyn Fn(&Distribution) -> Option<i64>| {
        let cell = |row: &&Row| {
            let told = |ns: i64| match row.is_significant(ns) {
                true => Micros(ns.into()).to_string(),
                false => REFUSED.to_owned(),
            };
            of(&row.delays).map(told)
        };
        rows.iter().map(cell).collect::<Vec<_>>()
    };
    grid.column("count", rows.iter().map(|row| Some(row.delays.count().to_string())).collect());
    grid.column("min_us", delay(&Distribution::min_ns));
    for (per_mille, name) in PERCENTILES {
        grid.column(&format!("{name}_us"), delay(&|delays| delays.percentile_ns(per_mille)));
    }
    grid.column("max_us", delay(&Distribution::max_ns));
    grid.column("mean_us", delay(&Distribution::mean_ns));
    let share = |row: &&Row| report.share(row).map(|share| Percent(share).to_string());
    grid.column("share_%", rows.iter().map(share).collect());
    doubts(&rows, &mut grid);
    grid
}

fn label(report: &Report, Line { row, inside_stay }: &Line<'_>) -> String {
    let key = &row.key;
    let (from, to) = (stage_name(key.from), stage_name(key.to));
    let (here, there) = (report.name(key.from.node), report.name(key.to.node));
    let (here, there) = (Printable(here), Printable(there));
    match key.kind {
        LegKind::EndToEnd => format!("end to end  {from} -> {to}"),
        LegKind::SendLag => format!("send lag    {from} -> {to}"),
        LegKind::Hop if is_plain_hop(row) => format!("hop         {here} -> {there}"),
        LegKind::Hop => format!("hop         {here} -> {there}  {from} -> {to}"),
        LegKind::Gap if is_plain_hop(row) => {
            format!("gap         {here} -> unknown node -> {there}")
        }
        LegKind::Gap => format!("gap         {here} -> unknown node -> {there}  {from} -> {to}"),
        LegKind::Part => format!("  part      {here} -> {there}  {from} -> {to}"),
        LegKind::Stay => format!("stay        {here}  {from} -> {to}"),
        LegKind::Stage if *inside_stay => format!("              {from} -> {to}"),
        LegKind::Stage => format!("stage       {here}  {from} -> {to}"),
        LegKind::Wait => format!("{here}  {from} -> {to}"),
    }
}

/// The stages of a hop are named only where they aren't those of every hop.
fn is_plain_hop(row: &Row) -> bool {
    (row.key.from.stage, row.key.to.stage) == (Stage::Send.code(), Stage::Receive.code())
}

/// Columns for what the figures don't show, where there is any.
fn doubts(rows: &[&Row], grid: &mut Grid) {
    let mut count = |head, of: fn(&Row) -> u64| {
        let shown = |row: &&Row| Some(of(row)).filter(|n| *n > 0).map(|n| n.to_string());
        grid.column_if_any(head, rows.iter().map(shown).collect());
    };
    count("negative", |row| row.delays.negative());
    count("missing", |row| row.missing);
    count("saturated", Row::saturated);
    count("no_common_clock", |row| row.no_common_clock);
    let bound = |row: &&Row| {
        let bound_ns = Some(row.error_bound_ns).filter(|ns| *ns > 0)?;
        Some(format!("+-{}", Micros(bound_ns.into())))
    };
    grid.column_if_any("clock_error_us", rows.iter().map(bound).collect());
}

/// What messages waited for: how many, which share of those that passed, and for how long.
fn waits(report: &Report) -> Option<Grid> {
    let is_shown = |row: &&Row| row.key.to.stage == Stage::Dequeue.code() || row.key.why != Some(0);
    let rows: Vec<&Row> = report.table.of(LegKind::Wait).filter(is_shown).collect();
    let mut grid = Grid::new("waited for");
    for row in &rows {
        let reason = wait_name(row.key.why.unwrap_or_default());
        grid.label(format!("{reason:14}  {}", label(report, &Line::of(row))));
    }
    let share = |row: &&Row| {
        let part = millionths(row.met().into(), report.passed(row).into());
        part.map(|part| Percent(part).to_string())
    };
    let micros = |ns: Option<i128>| ns.map(|ns| Micros(ns).to_string());
    let known = |row: &&Row| (row.delays.count() > 0).then(|| row.delays.sum_ns());
    grid.column("count", rows.iter().map(|row| Some(row.met().to_string())).collect());
    grid.column("messages_%", rows.iter().map(share).collect());
    let mean = |row: &&Row| micros(row.delays.mean_ns().map(i128::from));
    grid.column("mean_us", rows.iter().map(mean).collect());
    let max = |row: &&Row| micros(row.delays.max_ns().map(i128::from));
    grid.column("max_us", rows.iter().map(max).collect());
    grid.column("total_us", rows.iter().map(|row| micros(known(row))).collect());
    (!rows.is_empty()).then_some(grid)
}

/// The causes of late messages, and what helps against each.
fn write_late(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let rows = report.late_rows();
    if report.counts.messages > 0 && rows.is_empty() {
        return writeln!(out, "late (over {}): none\n", report.late);
    }
    if !rows.is_empty() {
        writeln!(out, "{}", late(report, &rows))?;
        let causes: BTreeSet<Cause> = rows.iter().map(|row| row.cause).collect();
        for cause in causes {
            writeln!(out, "{}: {}", cause.name(), cause.explanation())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn late(report: &Report, rows: &[LateRow<'_>]) -> Grid {
    let mut grid = Grid::new(&format!("late (over {}) because of", report.late));
    let width = rows.iter().map(|row| row.cause.name().len()).max().unwrap_or_default();
    for row in rows {
        let leg = label(report, &Line::of(row.leg));
        grid.label(format!("{:width$}  {leg}", row.cause.name()));
    }
    let percent = |share: Option<i64>| share.map(|share| Percent(share).to_string());
    let micros = |ns: i128| Some(Micros(ns).to_string());
    let mut column = |head, cell: &dyn Fn(&LateRow<'_>) -> Option<String>| {
        grid.column(head, rows.iter().map(cell).collect());
    };
    column("count", &|row| Some(row.count.to_string()));
    column("late_%", &|row| percent(row.share_of_late()));
    column("messages_%", &|row| percent(row.share_of_messages()));
    column("limit_us", &|row| micros(row.limit_ns.into()));
    column("mean_us", &|row| micros(row.mean_ns()?.into()));
    column("max_us", &|row| micros(row.max_ns?.into()));
    column("total_us", &|row| micros(row.sum_ns));
    grid
}

/// What each connection cost, a line each.
fn write_connections(report: &Report, out: &mut impl Write) -> io::Result<()> {
    for connection in report.connections.iter().take(LISTED) {
        writeln!(out, "{}", connection_account(connection))?;
    }
    if report.connections.is_empty() { Ok(()) } else { writeln!(out) }
}

/// The account as the programs print it, with the node's name.
fn connection_account(connection: &ConnectionRecord) -> String {
    let nodelay = match connection.nodelay {
        Some(true) => ", nodelay on",
        Some(false) => ", nodelay off",
        None => "",
    };
    let account = connection.to_string();
    let mut lines = account.lines();
    let first = lines.next().unwrap_or_default();
    let mut text = format!("{}: {}{nodelay}", Printable(&connection.node), Printable(first));
    for line in lines {
        let _ = write!(text, "\n{}", Printable(line));
    }
    text
}

/// The counts that are always said, then those that are seldom more than nothing.
fn write_counts(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let c = report.counts();
    writeln!(
        out,
        "messages {}, untimed {}, duplicate {}, redelivered {}, malformed {}, truncated {}",
        c.messages, c.untimed, c.duplicate, c.redelivered, c.malformed, c.truncated
    )?;
    writeln!(
        out,
        "negative {}, missing {}, saturated {}, no common clock {}",
        c.negative, c.missing, c.saturated, c.no_common_clock
    )
}

fn write_notes(report: &Report, out: &mut impl Write) -> io::Result<()> {
    report.notes().iter().try_for_each(|note| writeln!(out, "note: {note}"))
}
