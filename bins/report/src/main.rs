//! The `hopline-report` program: see `hopline-report --help`.

#![forbid(unsafe_code)]

mod watch;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hopline_report::{
    Error, Exports, Format, Late, Options, Outcome, TRACE_LIMIT, Wanted, outlast_writer,
};
use hopline_timeline::TimelineId;

const EXIT_STATUS: &str = "\
Exit status: 0 all that was asked for happened; 1 there was no message, or none with an --id;
2 bad usage, or a file could not be read to its end.";

/// Says where each message's time went
///
/// Reads the records that `hopline-subscribe --timeline` writes, one JSON object a line, and
/// prints the delay of each hop between nodes, of each stay at a node and of each stage of a stay.
/// Traces of single messages come first, in milliseconds since the stamp before; their P... is the
/// time from the first message's CREATE to theirs.
#[derive(Parser)]
#[command(name = "hopline-report", version, verbatim_doc_comment, after_help = EXIT_STATUS)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show the traces of the first N messages
    #[arg(long, value_name = "N", value_parser = up_to_limit)]
    trace: Option<usize>,
    /// Show the traces of the N messages that took longest from end to end, slowest first
    #[arg(long, value_name = "N", value_parser = up_to_limit)]
    slowest: Option<usize>,
    /// Show the trace of the message with this timeline id (32 hexadecimal digits); repeatable
    #[arg(long, value_name = "HEX")]
    id: Vec<TimelineId>,
    /// Name the causes of what took longer than so many times its median, or than a time such as
    /// 5ms
    #[arg(long, value_name = "FACTOR", default_value = "5", value_parser = late)]
    late: Late,
    /// Show a table of the last seconds while records arrive, on a terminal; files are followed as
    /// they grow. Ctrl-C, or the end of the standard input, ends it, and the report follows
    #[arg(long)]
    watch: bool,
    /// Print one JSON object; nanoseconds are strings
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one table of comma-separated values, in nanoseconds; a name that begins like a formula
    /// gets an apostrophe
    #[arg(long)]
    csv: bool,
    /// Write one page for a browser: pictures, causes, figures; no script, nothing from the network
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    html: Option<PathBuf>,
    /// Write an interval log of HdrHistogram: a histogram for each second, hop and stay
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    hlog: Option<PathBuf>,
    /// Write percentile tables of HdrHistogram, a .hgrm file for each hop and stay
    #[arg(long, value_name = "DIRECTORY", help_heading = "Exports")]
    hgrm: Option<PathBuf>,
    /// Write the slowest 1,000 messages, and those shown, as spans for Perfetto and Chrome
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    perfetto: Option<PathBuf>,
    /// Write the same messages as spans of OpenTelemetry (OTLP JSON, one message a line)
    #[arg(long, value_name = "FILE", help_heading = "Exports")]
    otlp: Option<PathBuf>,
    /// Files of records, packed with gzip or not; - or none: the standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Show two runs side by side: percentiles of each hop and stay, their ratio and difference
    ///
    /// The runs have to use the same names of nodes.
    Compare {
        /// Print one JSON object; nanoseconds are strings
        #[arg(long)]
        json: bool,
        /// The records of the first run
        a: PathBuf,
        /// The records of the second run
        b: PathBuf,
    },
}

fn main() -> ExitCode {
    let mut arguments = Arguments::parse();
    let outcome = match arguments.command.take() {
        Some(Command::Compare { json, a, b }) => compare(&a, &b, json),
        None if arguments.watch => watch::run(&options(arguments)),
        None => run(&options(arguments)),
    };
    match outcome {
        Ok(outcome) => outcome.exit_status().into(),
        Err(error) => {
            let _ = writeln!(io::stderr(), "hopline-report: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare(a: &Path, b: &Path, json: bool) -> Result<Outcome, Error> {
    let mut out = BufWriter::new(io::stdout().lock());
    hopline_report::compare([a, b], json, &mut out, io::stderr())
}

fn run(options: &Options) -> Result<Outcome, Error> {
    if options.reads_stdin() && !io::stdin().is_terminal() {
        outlast_writer()?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    hopline_report::run(options, io::stdin().lock(), &mut out, io::stderr())
}

fn options(arguments: Arguments) -> Options {
    let Arguments { trace, slowest, id, late, json, csv, .. } = arguments;
    let Arguments { html, hlog, hgrm, perfetto, otlp, files, .. } = arguments;
    let format = match (json, csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Text,
    };
    let (first, slowest) = (trace.unwrap_or_default(), slowest.unwrap_or_default());
    let wanted = Wanted { first, slowest, ids: id, ..Wanted::default() };
    let exports = Exports { hlog, hgrm, perfetto, otlp, html };
    Options { files, wanted, format, late, exports }
}

/// A factor such as 5 or 2.5, or a time such as 5ms.
fn late(text: &str) -> Result<Late, String> {
    const WHAT: &str = "neither a number of at least 1 nor a time such as 5ms";
    if let Ok(factor) = text.parse::<f64>() {
        let thousandths = factor * 1_000.0;
        let fits = (1_000.0..=f64::from(u32::MAX)).contains(&thousandths);
        return if fits { Ok(Late::Times(thousandths as u32)) } else { Err(WHAT.to_owned()) };
    }
    let time = humantime::parse_duration(text).map_err(|_| WHAT.to_owned())?;
    i64::try_from(time.as_nanos()).map(Late::Over).map_err(|_| "too long".to_owned())
}

fn up_to_limit(text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|_| "not a number".to_owned())?;
    if number <= TRACE_LIMIT { Ok(number) } else { Err(format!("at most {TRACE_LIMIT}")) }
}
