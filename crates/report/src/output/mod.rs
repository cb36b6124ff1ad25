//! The report in its three forms.

mod csv;
mod entry;
mod grid;
mod json;
mod late;
mod notes;
mod text;
mod trace;

pub(crate) use entry::{Entry, Ns};
pub(crate) use grid::Grid;

use std::borrow::Cow;
use std::io::{self, Write};

use hopline_timeline::{Stage, Wait};

use crate::names::NameId;
use crate::report::Report;
use crate::table::{Point, Row};
use crate::units;
use crate::way::LegKind;

/// The form of the report.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people: traces in milliseconds, then tables in microseconds, then counts and notes.
    #[default]
    Text,
    /// One JSON object on one line, schema 1: `counts`, `notes`, `recorded_by`, `clocks`, the rows
    /// in `end_to_end`, `send_lag`, `hops`, `stays`, `stages` and `waits`, `late` with the causes
    /// of late messages, and `traces`.
    ///
    /// Nanoseconds are strings, counts are numbers, what isn't known is null. Fields may be added;
    /// none changes its meaning within a schema.
    Json,
    /// One table with the names of JSON's rows as its head: nanoseconds in full, '.' as the
    /// decimal point, fields quoted by RFC 4180, control characters in names as escapes, lines
    /// ended by a line feed, unknown cells empty.
    ///
    /// `kind` tells the rows apart: those of the legs, `wait`, `late_...` (late messages of a
    /// leg that had the same `cause`), `trace` and `trace_end_to_end` (one sample of the message
    /// that `name` gives) and `count` (of what `name` gives).
    Csv,
}

impl Report {
    /// Writes all that was asked for.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Text => text::write(self, out),
            Format::Json => json::write(self, out),
            Format::Csv => csv::write(self, out),
        }
    }

    fn name(&self, node: Option<NameId>) -> &str {
        node.map_or("", |node| self.names.text(node))
    }

    /// The row's share of the delay from end to end, in millionths; none for what isn't part of it.
    pub(crate) fn share(&self, row: &Row) -> Option<i64> {
        let is_part = !matches!(row.key.kind, LegKind::EndToEnd | LegKind::SendLag | LegKind::Part);
        let share = || units::millionths(row.shared_ns(), self.end_to_end_ns);
        is_part.then(share).flatten().filter(|_| row.delays.count() > 0)
    }

    /// How often the leg of a wait was met, whatever the reason.
    fn passed(&self, wait: &Row) -> u64 {
        let same = |row: &&Row| (row.key.from, row.key.to) == (wait.key.from, wait.key.to);
        self.table.of(LegKind::Wait).filter(same).map(Row::met).sum()
    }

    /// The rows in reading order: the whole, then each part of the way, a stay before its stages.
    pub(crate) fn lines(&self) -> Vec<Line<'_>> {
        let whole = self.table.of(LegKind::EndToEnd).chain(self.table.of(LegKind::SendLag));
        let mut lines: Vec<Line<'_>> = whole.map(Line::of).collect();
        let mut stages: Vec<&Row> = self.table.of(LegKind::Stage).collect();
        for row in self.table.rows() {
            let is_of_way =
                matches!(row.key.kind, LegKind::Hop | LegKind::Gap | LegKind::Part | LegKind::Stay);
            if is_of_way {
                lines.push(Line::of(row));
            }
            if row.key.kind == LegKind::Stay {
                let same_node = |stage: &mut &Row| stage.key.from.node == row.key.from.node;
                let inside = stages.extract_if(.., same_node);
                lines.extend(inside.map(|row| Line { row, inside_stay: true }));
            }
        }
        lines.extend(stages.into_iter().map(Line::of));
        lines
    }
}

/// A row in its place.
pub(crate) struct Line<'a> {
    pub(crate) row: &'a Row,
    /// Whether it is a stage that follows the stay at its node.
    pub(crate) inside_stay: bool,
}

impl<'a> Line<'a> {
    fn of(row: &'a Row) -> Self {
        Self { row, inside_stay: false }
    }
}

/// In place of a figure that is smaller than what the clocks may be wrong by.
pub(crate) const REFUSED: &str = "?";

/// The percentiles that are shown, in thousandths, with their names in a table.
const PERCENTILES: [(u64, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p99.9")];

fn kind_name(kind: LegKind) -> &'static str {
    match kind {
        LegKind::EndToEnd => "end_to_end",
        LegKind::SendLag => "send_lag",
        LegKind::Hop => "hop",
        LegKind::Gap => "gap",
        LegKind::Part => "part",
        LegKind::Stay => "stay",
        LegKind::Stage => "stage",
        LegKind::Wait => "wait",
    }
}

fn late_kind_name(kind: LegKind) -> &'static str {
    match kind {
        LegKind::EndToEnd => "late_end_to_end",
        LegKind::SendLag => "late_send_lag",
        LegKind::Hop => "late_hop",
        LegKind::Gap => "late_gap",
        // Parts, stages and waits aren't judged.
        LegKind::Stay | LegKind::Part | LegKind::Stage | LegKind::Wait => "late_stay",
    }
}

fn stage_name(point: Point) -> Cow<'static, str> {
    Stage::name_of(point.stage)
}

/// The name of a wait's detail octet, or `#9` where this version knows none.
fn wait_name(detail: u8) -> Cow<'static, str> {
    match Wait::from_code(detail) {
        Some(wait) => Cow::Borrowed(wait.name()),
        None => Cow::Owned(format!("#{detail}")),
    }
}
