//! Percentile curves: which part of the messages took no longer than that.

use std::fmt::{self, Write};

use super::chart::{Delays, LEFT, RIGHT, WIDTH, begin, write_tick};
use super::{COLOURS, Escaped};
use crate::report::Report;
use crate::table::Row;
use crate::units::Short;
use crate::way::LegKind;

/// The marks of the axis: each nine is as wide as the next.
const NINES: [&str; 7] = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"];

/// Points of a curve for each nine.
const STEPS: u32 = 24;

pub(super) fn write(report: &Report, page: &mut String) -> fmt::Result {
    let is_shown = |row: &&Row| {
        matches!(row.key.kind, LegKind::EndToEnd | LegKind::Hop | LegKind::Gap | LegKind::Stay)
            && row.delays.count() > 0
    };
    let lines = report.lines();
    let rows: Vec<&Row> = lines.iter().map(|line| line.row).filter(is_shown).collect();
    let rows = rows.get(..COLOURS).unwrap_or(&rows);
    let least = rows.iter().filter_map(|row| row.delays.min_ns()).min().unwrap_or(1);
    let most = rows.iter().filter_map(|row| row.delays.max_ns()).max().unwrap_or(1);
    let count = rows.iter().map(|row| row.delays.count()).max().unwrap_or(1);
    // As many nines as there are messages to show them.
    let nines = count.max(10).ilog10().min(NINES.len() as u32 - 1);
    let delays = Delays::new(least, most);
    let x = |nine: f64| LEFT + nine / f64::from(nines) * (WIDTH - LEFT - RIGHT);
    writeln!(page, "<section><h2>Percentiles</h2>")?;
    begin("Percentile curves of each hop and stay", page)?;
    delays.write(page)?;
    for (nine, label) in (0..=nines).zip(NINES) {
        // Those between two others would touch them.
        let label = if nines > 4 && nine % 2 == 1 { "" } else { label };
        write_tick(x(f64::from(nine)), label, page)?;
    }
    for (colour, row) in rows.iter().enumerate() {
        let points = (0..=nines * STEPS).filter_map(|step| {
            let nine = f64::from(step) / f64::from(STEPS);
            let ns = row.delays.quantile_ns(1.0 - 10_f64.powf(-nine))?;
            Some(format!("{:.1},{:.1}", x(nine), delays.y(ns)))
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let title = legend(report, row);
        writeln!(
            page,
            "<polyline class=\"curve k{colour}\" points=\"{points}\">\
             <title>{title}</title></polyline>"
        )?;
    }
    writeln!(page, "</svg><ul class=\"legend\">")?;
    for (colour, row) in rows.iter().enumerate() {
        writeln!(page, "<li class=\"k{colour}\"><i></i>{}</li>", legend(report, row))?;
    }
    writeln!(page, "</ul></section>")
}

fn legend(report: &Report, row: &Row) -> String {
    let name = report.leg_name(row);
    let at = |per_mille| {
        row.delays.percentile_ns(per_mille).map_or(String::new(), |ns| Short(ns).to_string())
    };
    format!("{}: median {}, p99 {}", Escaped(&name), at(500), at(990))
}
