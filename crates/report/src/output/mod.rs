//! The report in its three forms.

mod csv;
mod json;
mod text;
mod trace;

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
    /// For people: traces, then tables in microseconds.
    #[default]
    Text,
    /// One JSON object, its 64-bit nanoseconds as strings.
    Json,
    /// One table in nanoseconds, by RFC 4180.
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
    fn share(&self, row: &Row) -> Option<i64> {
        let is_part = !matches!(row.key.kind, LegKind::EndToEnd | LegKind::SendLag);
        let share = || units::millionths(row.shared_ns(), self.end_to_end_ns);
        is_part.then(share).flatten().filter(|_| row.delays.count() > 0)
    }

    /// The rows in reading order: the whole, then each part of the way, a stay before its stages.
    fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.table.of(LegKind::EndToEnd).collect();
        rows.extend(self.table.of(LegKind::SendLag));
        let mut stages: Vec<&Row> = self.table.of(LegKind::Stage).collect();
        for row in self.table.rows() {
            if matches!(row.key.kind, LegKind::Hop | LegKind::Stay) {
                rows.push(row);
            }
            if row.key.kind == LegKind::Stay {
                rows.extend(stages.extract_if(.., |stage| stage.is_inside(row)));
            }
        }
        rows.extend(stages);
        rows
    }
}

impl Row {
    fn is_inside(&self, stay: &Row) -> bool {
        self.key.from.node == stay.key.from.node
    }
}

/// The percentiles that are shown, in thousandths, with their names in a table.
const PERCENTILES: [(u64, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p99.9")];

fn kind_name(kind: LegKind) -> &'static str {
    match kind {
        LegKind::EndToEnd => "end_to_end",
        LegKind::SendLag => "send_lag",
        LegKind::Hop => "hop",
        LegKind::Stay => "stay",
        LegKind::Stage => "stage",
        LegKind::Wait => "wait",
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
