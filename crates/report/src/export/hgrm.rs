//! HdrHistogram's percentile tables, one file for each hop and stay.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use hdrhistogram::Histogram;

use super::intervals::tag;
use crate::report::Report;
use crate::units::Micros;
use crate::way::LegKind;

/// Lines for each halving of the distance to 100 %, as the stock tools have it.
const TICKS: u32 = 5;

/// Writes a file for each leg that was measured; its folder is made where it is missing.
pub(super) fn write_all(report: &Report, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut taken = HashSet::new();
    let is_told =
        |kind| matches!(kind, LegKind::EndToEnd | LegKind::Hop | LegKind::Gap | LegKind::Stay);
    for row in report.table.rows().filter(|row| is_told(row.key.kind)) {
        let histogram = row.delays.at_least_zero();
        if histogram.is_empty() {
            continue;
        }
        let mut name = tag(&row.key, &report.names);
        // Names that differ only in what a file name can't have.
        while !taken.insert(name.to_lowercase()) {
            name.push('_');
        }
        let mut out = BufWriter::new(File::create(folder.join(format!("{name}.hgrm")))?);
        write(histogram, &mut out)?;
        out.flush()?;
    }
    Ok(())
}

fn write(histogram: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for value in histogram.iter_quantiles(TICKS) {
        total += value.count_since_last_iteration();
        let us = Micros(value.value_iterated_to().into()).to_string();
        let quantile = value.quantile_iterated_to();
        write!(out, "{us:>12} {quantile:.12} {total:>10}")?;
        if quantile < 1.0 {
            writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?
        } else {
            writeln!(out)?
        }
    }
    let (mean, deviation) = (histogram.mean() / 1e3, histogram.stdev() / 1e3);
    let max = Micros(histogram.max().into()).to_string();
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(out, "#[Max     = {max:>12}, Total count    = {:>12}]", histogram.len())?;
    writeln!(out, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", histogram.buckets(), 2_048)
}
