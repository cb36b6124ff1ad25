//! From the command line's wishes to a report on the standard output.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use hopline_timeline::TimelineError;
use hopline_timeline::record::{MAX_LINE_OCTETS, Record};

use crate::cause::Late;
use crate::error::Error;
use crate::export::{Exports, Intervals};
use crate::gallery::Gallery;
use crate::input::{Line, Lines, STDIN_NAME};
use crate::log::Log;
use crate::output::Format;
use crate::record::Reader;
use crate::report::Report;
use crate::traces::Wanted;

/// What to report, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Files of records, in this order; `-` is the standard input, which is also read where
    /// there are none.
    pub files: Vec<PathBuf>,
    /// Which messages to show whole.
    pub wanted: Wanted,
    /// The form of the report.
    pub format: Format,
    /// From when on a message is late.
    pub late: Late,
    /// Files to write beside the report.
    pub exports: Exports,
}

impl Options {
    /// What the report has to keep for all that is asked for.
    pub(crate) fn report_wanted(&self) -> Wanted {
        let exported = self.wanted.exported || self.exports.want_traces();
        Wanted { exported, ..self.wanted.clone() }
    }

    /// Whether the standard input is among what will be read.
    pub fn reads_stdin(&self) -> bool {
        self.files.is_empty() || self.files.iter().any(|path| is_stdin(path))
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN_NAME)
}

/// Files that begin with records of a kernel before the others: what they tell has to be known
/// when its message comes.
fn side_first(files: &[PathBuf]) -> Vec<&PathBuf> {
    let (mut side, mut others) = (Vec::new(), Vec::new());
    for path in files {
        if begins_with_kernel(path) { side.push(path) } else { others.push(path) }
    }
    side.append(&mut others);
    side
}

/// Looks at the first lines of a file; never at a pipe, which can be read only once.
fn begins_with_kernel(path: &Path) -> bool {
    const LINES: usize = 3;
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let Some(mut lines) = is_file.then(|| Lines::open(path).ok()).flatten() else {
        return false;
    };
    (0..LINES).any(|_| match lines.next() {
        Some(Ok(Line::Complete(text))) => {
            matches!(Record::parse_line(text), Ok(Record::Side(_) | Record::Kernel(_)))
        }
        _ => false,
    })
}

/// How it went. The report was written in every case.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// All that was asked for happened.
    Complete,
    /// There was no message to measure, or one that was asked for by its id didn't come.
    NotFound,
    /// A file could not be read, or not to its end.
    Unread,
}

impl Outcome {
    /// The program's exit status: 0, 1 and 2, as those of grep.
    pub fn exit_status(self) -> u8 {
        match self {
            Outcome::Complete => 0,
            Outcome::NotFound => 1,
            Outcome::Unread => 2,
        }
    }
}

/// Reads the files, or `stdin`, and writes the report to `out` and complaints to `log`.
///
/// A reader of the report that leaves early, as `head` does, is no error.
///
/// # Errors
/// [`Error::Write`], [`Error::Export`] and [`Error::Histogram`]; what is wrong with the input is
/// only logged.
pub fn run(
    options: &Options,
    stdin: impl Read,
    out: &mut impl Write,
    log: impl Write,
) -> Result<Outcome, Error> {
    let mut reading = Reading::new(Report::new(options.report_wanted())?, log);
    reading.prepare(options)?;
    reading.read_all(&options.files, stdin);
    reading.conclude(options, out).map(|(outcome, _)| outcome)
}

/// Reads two files of records, and writes to `out` how the second differs from the first: as one
/// JSON object, or for people. Complaints go to `log`.
///
/// # Errors
/// As those of [`run`].
pub fn compare(
    files: [&Path; 2],
    json: bool,
    out: &mut impl Write,
    mut log: impl Write,
) -> Result<Outcome, Error> {
    let mut read = |path: &Path| {
        let report = Report::new(Wanted::default())?;
        let mut reading = Reading::new(report, &mut log);
        // Not the standard input, which can't be read twice: a file named so.
        reading.read_all(&[Path::new(".").join(path)], io::empty());
        reading.log.finish();
        let (report, outcome, _) = reading.finish();
        Ok((report, outcome))
    };
    let ((a, read_a), (b, read_b)) = (read(files[0])?, read(files[1])?);
    let names = files.map(Path::to_string_lossy);
    let names = [names[0].as_ref(), names[1].as_ref()];
    let written = match json {
        true => crate::compare::write_json(names, &a, &b, out),
        false => crate::compare::write_text(names, &a, &b, out),
    };
    match written.and_then(|()| out.flush()).map_err(Error::Write) {
        Err(error) if !error.is_broken_pipe() => Err(error),
        _ => Ok(read_a.max(read_b)),
    }
}

pub(crate) struct Reading<W> {
    pub(crate) report: Report,
    reader: Reader,
    log: Log<W>,
    unread: bool,
}

impl<W: Write> Reading<W> {
    pub(crate) fn new(report: Report, log: W) -> Self {
        Self { report, reader: Reader::default(), log: Log::new(log), unread: false }
    }

    /// Readies the report for what is wanted of it.
    pub(crate) fn prepare(&mut self, options: &Options) -> Result<(), Error> {
        self.report.set_late(options.late);
        self.report.gallery = options.exports.html.as_ref().map(|_| Gallery::new());
        let hlog = options.exports.hlog.as_deref();
        self.report.intervals = hlog.map(Intervals::create).transpose()?;
        Ok(())
    }

    /// All was read: writes the report and the exports; how it went, and what was complained to.
    pub(crate) fn conclude(
        mut self,
        options: &Options,
        out: &mut impl Write,
    ) -> Result<(Outcome, W), Error> {
        self.log.finish();
        self.report.intervals.take().map_or(Ok(()), Intervals::finish)?;
        options.exports.write(&self.report)?;
        let written = self.report.write(options.format, out).and_then(|()| out.flush());
        match written.map_err(Error::Write) {
            Err(error) if !error.is_broken_pipe() => Err(error),
            _ => {
                let (_, outcome, log) = self.finish();
                Ok((outcome, log))
            }
        }
    }

    /// An input, or the rest of it, could not be read.
    pub(crate) fn unread(&mut self, error: &Error) {
        self.unread = true;
        self.log.say(error);
    }

    fn read_all(&mut self, files: &[PathBuf], mut stdin: impl Read) {
        let only_stdin = [PathBuf::from(STDIN_NAME)];
        let files = if files.is_empty() { &only_stdin[..] } else { files };
        for path in side_first(files) {
            let lines = if is_stdin(path) {
                Lines::new(&mut stdin).map_err(|source| Error::Open { path: path.clone(), source })
            } else {
                Lines::open(path)
            };
            let read = lines.and_then(|lines| self.read(&path.to_string_lossy(), lines));
            if let Err(error) = read {
                self.unread(&error);
            }
        }
    }

    fn read(&mut self, name: &str, mut lines: Lines<'_>) -> Result<(), Error> {
        let mut number = 0;
        while let Some(line) = lines.next() {
            number += 1;
            let line =
                line.map_err(|source| Error::Read { name: name.to_owned(), line: number, source })?;
            self.take(name, number, &line);
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, name: &str, number: u64, line: &Line<impl AsRef<[u8]>>) {
        match line.map(AsRef::as_ref) {
            Line::Complete(text) | Line::Unterminated(text) if text.trim_ascii().is_empty() => {}
            Line::Complete(text) => {
                if let Err(error) = self.add(text) {
                    self.malformed(name, number, &error);
                }
            }
            Line::Unterminated(text) => {
                if self.add(text).is_err() {
                    self.truncated(name, number);
                }
            }
            Line::TooLong => {
                self.report.counts.lines += 1;
                let what = format!("a line longer than {MAX_LINE_OCTETS} octets, skipped");
                self.malformed(name, number, &what);
            }
            Line::CutOff => self.truncated(name, number),
        }
    }

    fn add(&mut self, text: &[u8]) -> Result<(), TimelineError> {
        self.report.counts.lines += 1;
        self.reader.read(text).and_then(|record| self.report.add(record))
    }

    fn malformed(&mut self, name: &str, number: u64, what: &impl Display) {
        self.report.counts.malformed += 1;
        self.log.malformed(name, number, what);
    }

    fn truncated(&mut self, name: &str, number: u64) {
        self.report.counts.truncated += 1;
        self.log.say(format_args!("{name}:{number}: the input ends inside this line, left out"));
    }

    fn finish(mut self) -> (Report, Outcome, W) {
        let missed: Vec<_> = self.report.not_found().collect();
        for id in &missed {
            self.log.say(format_args!("no message with the id {id}"));
        }
        if self.report.counts().messages == 0 {
            self.log.say("no message with a timeline in the input");
        }
        let outcome = if self.unread {
            Outcome::Unread
        } else if self.report.counts().messages == 0 || !missed.is_empty() {
            Outcome::NotFound
        } else {
            Outcome::Complete
        };
        (self.report, outcome, self.log.into_inner())
    }
}
