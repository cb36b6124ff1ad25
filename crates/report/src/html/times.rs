//! Delays over time, late messages in the colour of their cause.

use std::fmt::{self, Write};

use super::COLOURS;
use super::chart::{Delays, LEFT, RIGHT, WIDTH, begin, write_tick};
use crate::cause::{Cause, threshold_ns};
use crate::report::Report;
use crate::units::Short;
use crate::way::LegKind;

pub(super) fn write(report: &Report, page: &mut String) -> fmt::Result {
    let Some(series) = report.gallery.as_ref().map(|gallery| &gallery.series) else {
        return Ok(());
    };
    let delays = || series.points().map(|point| point.delay_ns);
    let scale = Delays::new(delays().min().unwrap_or(1), delays().max().unwrap_or(1));
    let end_ns = series.points().map(|point| point.since_ns).max().unwrap_or(0).max(1);
    let x = |ns: i64| LEFT + ns as f64 / end_ns as f64 * (WIDTH - LEFT - RIGHT);
    // The last whole is the one that messages are judged by: from DUE where there is one.
    let whole = report.table.of(LegKind::EndToEnd).last();
    let limit_ns = whole.and_then(|row| threshold_ns(report.late, row)).unwrap_or(i64::MAX);
    let causes = colours(report);
    writeln!(page, "<section><h2>Delay over time</h2>")?;
    begin("The delay of the slowest messages over time, from end to end", page)?;
    scale.write(page)?;
    for quarter in 0..=4 {
        let at = end_ns / 4 * quarter;
        // The outer ones would leave the picture.
        let label = if quarter % 4 == 0 { String::new() } else { Short(at).to_string() };
        write_tick(x(at), &label, page)?;
    }
    for point in series.points() {
        let (cx, cy) = (x(point.since_ns), scale.y(point.delay_ns));
        let (at, delay, cause) = (Short(point.since_ns), Short(point.delay_ns), point.cause.name());
        let colour = causes.iter().position(|known| *known == point.cause).unwrap_or(0) % COLOURS;
        let (class, why) = if point.delay_ns > limit_ns {
            (format!("dot late k{colour}"), format!(", late: {cause}"))
        } else {
            ("dot".to_owned(), String::new())
        };
        writeln!(
            page,
            "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2.5\">\
             <title>{delay} at {at}{why}</title></circle>"
        )?;
    }
    writeln!(page, "</svg><ul class=\"legend\">")?;
    for (colour, cause) in causes.iter().enumerate() {
        writeln!(page, "<li class=\"k{}\"><i></i>{}</li>", colour % COLOURS, cause.name())?;
    }
    writeln!(page, "</ul><p class=\"dim\">The slowest messages of each moment.</p></section>")
}

/// The causes from end to end, the commonest first: each has a colour by its place.
fn colours(report: &Report) -> Vec<Cause> {
    let whole = report.table.of(LegKind::EndToEnd).last().map(|row| row.key);
    let rows = report.late_rows();
    rows.iter().filter(|row| Some(row.leg.key) == whole).map(|row| row.cause).collect()
}
