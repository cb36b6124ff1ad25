//! Two runs side by side.

use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::output::{Entry, Grid, Ns};
use crate::report::Report;
use crate::table::Row;
use crate::units::{Micros, Printable, millionths};
use crate::way::LegKind;

/// The percentiles that are compared, in thousandths.
const PERCENTILES: [u64; 3] = [500, 990, 999];

/// A leg in both runs, or in one of them.
struct Pair<'a> {
    name: String,
    rows: [Option<&'a Row>; 2],
}

/// The legs in the order of the first run, then those that only the second has.
///
/// Names of nodes tell which legs are the same, so both runs have to use the same ones.
fn pairs<'a>(a: &'a Report, b: &'a Report) -> Vec<Pair<'a>> {
    let legs = |report: &'a Report| {
        let is_told = |row: &&Row| {
            let kind = row.key.kind;
            kind != LegKind::Stage && kind != LegKind::Wait && row.delays.count() > 0
        };
        let rows = report.lines().into_iter().map(|line| line.row).filter(is_told);
        rows.map(|row| (report.leg_name(row), row)).collect::<Vec<_>>()
    };
    let mut others = legs(b);
    let mut pairs: Vec<_> = legs(a)
        .into_iter()
        .map(|(name, row)| {
            let same = others.iter().position(|(other, _)| *other == name);
            let other = same.map(|at| others.remove(at).1);
            Pair { name, rows: [Some(row), other] }
        })
        .collect();
    pairs.extend(others.into_iter().map(|(name, row)| Pair { name, rows: [None, Some(row)] }));
    pairs
}

impl Pair<'_> {
    fn at(&self, per_mille: u64) -> [Option<i64>; 2] {
        self.rows.map(|row| row.and_then(|row| row.delays.percentile_ns(per_mille)))
    }
}

/// The second of two figures as millionths of the first.
fn ratio(figures: [Option<i64>; 2]) -> Option<i64> {
    let [a, b] = figures;
    millionths(b?.into(), a?.into())
}

fn difference(figures: [Option<i64>; 2]) -> Option<i128> {
    let [a, b] = figures.map(|ns| ns.map(i128::from));
    Some(b? - a?)
}

/// Millionths as a factor with three decimals.
struct Factor(i64);

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = (self.0.unsigned_abs() + 500) / 1_000;
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }
}

/// A line for each percentile of each leg, in microseconds.
pub(crate) fn write_text(
    names: [&str; 2],
    a: &Report,
    b: &Report,
    out: &mut impl Write,
) -> io::Result<()> {
    for (letter, name, report) in [("a", names[0], a), ("b", names[1], b)] {
        writeln!(out, "{letter}: {}, {} messages", Printable(name), report.counts().messages)?;
    }
    let pairs = pairs(a, b);
    let width = pairs.iter().map(|pair| pair.name.chars().count()).max().unwrap_or_default();
    let mut grid = Grid::new("");
    let mut columns: [Vec<Option<String>>; 4] = Default::default();
    for pair in &pairs {
        for per_mille in PERCENTILES {
            let figures = pair.at(per_mille);
            let name = if per_mille == PERCENTILES[0] { pair.name.as_str() } else { "" };
            grid.label(format!("{name:width$}  {}", percentile_name(per_mille)));
            let micros = |ns: Option<i128>| ns.map(|ns| Micros(ns).to_string());
            let [a_ns, b_ns] = figures.map(|ns| micros(ns.map(i128::from)));
            let factor = ratio(figures).map(|factor| Factor(factor).to_string());
            let cells = [a_ns, b_ns, factor, micros(difference(figures))];
            columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        }
    }
    for (head, cells) in ["a_us", "b_us", "b/a", "b-a_us"].into_iter().zip(columns) {
        grid.column(head, cells);
    }
    writeln!(out, "\n{grid}")?;
    writeln!(out, "two runs show a difference, not that it would come again: repeat them in turn")
}

fn percentile_name(per_mille: u64) -> &'static str {
    match per_mille {
        500 => "p50",
        990 => "p99",
        _ => "p99.9",
    }
}

#[derive(Serialize)]
struct Document<'a> {
    hopline: &'static str,
    schema: u32,
    a: Run<'a>,
    b: Run<'a>,
    legs: Vec<Leg<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    name: &'a str,
    messages: u64,
}

#[derive(Serialize)]
struct Leg<'a> {
    name: &'a str,
    /// The rows as in the report of one run; null where the run hasn't this leg.
    a: Option<Entry<'a>>,
    b: Option<Entry<'a>>,
    p50: Change,
    p99: Change,
    p99_9: Change,
}

/// From the first run to the second.
struct Change([Option<i64>; 2]);

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields {
            ratio: Option<f64>,
            difference_ns: Option<Ns>,
        }
        let ratio = ratio(self.0).map(|factor| factor as f64 / 1e6);
        Fields { ratio, difference_ns: difference(self.0).map(Ns) }.serialize(serializer)
    }
}

/// One JSON object.
pub(crate) fn write_json(
    names: [&str; 2],
    a: &Report,
    b: &Report,
    out: &mut impl Write,
) -> io::Result<()> {
    let pairs = pairs(a, b);
    let run = |name, report: &Report| Run { name, messages: report.counts().messages };
    let legs = pairs.iter().map(|pair| Leg {
        name: &pair.name,
        a: pair.rows[0].map(|row| Entry::of_row(a, row)),
        b: pair.rows[1].map(|row| Entry::of_row(b, row)),
        p50: Change(pair.at(500)),
        p99: Change(pair.at(990)),
        p99_9: Change(pair.at(999)),
    });
    let (legs, a, b) = (legs.collect(), run(names[0], a), run(names[1], b));
    let document = Document { hopline: "comparison", schema: 1, a, b, legs };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
