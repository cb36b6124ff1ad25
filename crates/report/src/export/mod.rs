//! The report in files of their own: a page for a browser; histograms for HdrHistogram's tools,
//! spans for OpenTelemetry's and Perfetto's.

mod hgrm;
mod intervals;
mod otlp;
mod perfetto;
mod spans;
mod v2;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) use intervals::Intervals;

use crate::error::Error;
use crate::html;
use crate::report::Report;

/// Files to write beside the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exports {
    /// An interval log of HdrHistogram, version 1.3: for each second, and each hop and stay (the
    /// tag), a histogram in nanoseconds. Delays below zero are left out.
    pub hlog: Option<PathBuf>,
    /// A directory for a percentile table of HdrHistogram (`.hgrm`) of each hop and stay, in
    /// microseconds. Delays below zero are left out.
    pub hgrm: Option<PathBuf>,
    /// Spans for Perfetto and Chrome: the messages that [`Wanted`](crate::Wanted) keeps, among them
    /// the slowest [`TRACE_LIMIT`](crate::TRACE_LIMIT).
    pub perfetto: Option<PathBuf>,
    /// Spans of OpenTelemetry in OTLP's JSON, a line for each message; the same messages.
    pub otlp: Option<PathBuf>,
    /// One page for a browser, without script and without anything from the network.
    pub html: Option<PathBuf>,
}

impl Exports {
    /// Whether whole messages are asked for.
    pub(crate) fn want_traces(&self) -> bool {
        self.perfetto.is_some() || self.otlp.is_some() || self.html.is_some()
    }

    /// Writes all but the interval log, which is written while records are read.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Error> {
        if let Some(folder) = &self.hgrm {
            hgrm::write_all(report, folder).map_err(failed(folder))?;
        }
        to_file(self.perfetto.as_deref(), |out| perfetto::write(report, out))?;
        to_file(self.otlp.as_deref(), |out| otlp::write(report, out))?;
        to_file(self.html.as_deref(), |out| html::write(report, out))
    }
}

fn to_file(
    path: Option<&Path>,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let Some(path) = path else {
        return Ok(());
    };
    let written = File::create(path).map(BufWriter::new).and_then(|mut out| {
        write(&mut out)?;
        out.flush()
    });
    written.map_err(failed(path))
}

/// The error of a file that can't be written.
pub(crate) fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    |source| Error::Export { path: path.to_owned(), source }
}

/// A text without what ends a field or a line, or could lead a file name elsewhere.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}
