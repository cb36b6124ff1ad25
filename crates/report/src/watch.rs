//! Reads records while they arrive, and shows in between what passed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::input::{Line, Lines, STDIN_NAME};
use crate::live::{Live, View};
use crate::report::Report;
use crate::run::{Options, Outcome, Reading, is_stdin};

/// How often it is shown.
const FRAME: Duration = Duration::from_millis(500);

/// How often the end of a file is looked at for more.
const POLL: Duration = Duration::from_millis(50);

/// Lines that may wait to be taken in.
const QUEUE: usize = 1_024;

/// How long a pipe may still bring records after Ctrl-C: whoever writes them ends by it, too.
const PATIENCE: Duration = Duration::from_secs(5);

/// A line of one of the inputs.
struct Came {
    input: usize,
    number: u64,
    /// An error: nothing more can be read.
    line: Result<Line<Vec<u8>>, Error>,
}

/// Reads as [`run`](crate::run) does, but while records arrive: files are followed as they grow.
/// Until the standard input ends, or `is_over` is set, `show` is told twice a second what passed;
/// then the report can be written. `clock` tells the time since any instant before.
///
/// Side records count for messages that come after them only, so much of what they tell is in the
/// report of the files alone.
///
/// # Errors
/// As those of [`run`](crate::run), and what `show` fails with, as [`Error::Write`].
pub fn watch(
    options: &Options,
    is_over: &Arc<AtomicBool>,
    clock: impl Fn() -> Duration,
    mut show: impl FnMut(&View) -> io::Result<()>,
) -> Result<Watched, Error> {
    let mut report = Report::new(options.report_wanted())?;
    report.live = Some(Live::new(options.late).map_err(Error::Histogram)?);
    let mut reading = Reading::new(report, Vec::new());
    reading.prepare(options)?;
    let (names, lines) = start(&options.files, is_over);
    let begin = clock();
    let (mut next, mut over_since) = (begin, None);
    loop {
        let came = lines.recv_timeout(next.saturating_sub(clock()));
        let now = clock();
        reading.report.advance(now.saturating_sub(begin).as_secs());
        match came {
            Ok(came) => reading.came(&names, came),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if is_over.load(Ordering::Relaxed) {
            let since = *over_since.get_or_insert(now);
            if now.saturating_sub(since) > PATIENCE {
                break;
            }
        }
        if now >= next {
            next = now.saturating_add(FRAME);
            show(&reading.report.view()).map_err(Error::Write)?;
        }
    }
    Ok(Watched { options: options.clone(), reading })
}

/// What was read, for the report at the end.
pub struct Watched {
    options: Options,
    reading: Reading<Vec<u8>>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").finish_non_exhaustive()
    }
}

impl Watched {
    /// Writes the report to `out` and the complaints to `log`.
    ///
    /// # Errors
    /// As those of [`run`](crate::run).
    pub fn finish(self, out: &mut impl Write, mut log: impl Write) -> Result<Outcome, Error> {
        let (outcome, complaints) = self.reading.conclude(&self.options, out)?;
        log.write_all(&complaints).map_err(Error::Write)?;
        Ok(outcome)
    }
}

/// Starts a thread for each input; their names, and what they read.
fn start(files: &[PathBuf], is_over: &Arc<AtomicBool>) -> (Vec<String>, Receiver<Came>) {
    let (sender, receiver) = sync_channel(QUEUE);
    let only_stdin = [PathBuf::from(STDIN_NAME)];
    let files = if files.is_empty() { &only_stdin[..] } else { files };
    for (input, path) in files.iter().enumerate() {
        let (path, sender, is_over) = (path.clone(), sender.clone(), is_over.clone());
        // It ends with the process at the latest.
        thread::spawn(move || send_lines(input, &path, &sender, is_over));
    }
    let names = files.iter().map(|path| path.to_string_lossy().into_owned());
    (names.collect(), receiver)
}

fn send_lines(input: usize, path: &Path, sender: &SyncSender<Came>, is_over: Arc<AtomicBool>) {
    let opened = |source| Error::Open { path: path.to_owned(), source };
    let lines = match is_stdin(path) {
        true => Lines::new(io::stdin()).map_err(opened),
        false => {
            File::open(path).and_then(|file| Lines::new(Growing { file, is_over })).map_err(opened)
        }
    };
    let mut lines = match lines {
        Ok(lines) => lines,
        Err(error) => {
            return drop(sender.send(Came { input, number: 0, line: Err(error) }));
        }
    };
    let mut number = 0;
    while let Some(line) = lines.next() {
        number += 1;
        let line = line.map(|line| line.map(|text| text.to_vec())).map_err(|source| {
            let name = path.to_string_lossy().into_owned();
            Error::Read { name, line: number, source }
        });
        if sender.send(Came { input, number, line }).is_err() {
            return;
        }
    }
}

/// A file that has no end until it is over.
struct Growing {
    file: File,
    is_over: Arc<AtomicBool>,
}

impl Read for Growing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.file.read(buf)?;
            if n > 0 || buf.is_empty() || self.is_over.load(Ordering::Relaxed) {
                return Ok(n);
            }
            thread::sleep(POLL);
        }
    }
}

impl Reading<Vec<u8>> {
    fn came(&mut self, names: &[String], came: Came) {
        let Came { input, number, line } = came;
        let name = names.get(input).map_or("", String::as_str);
        match &line {
            Ok(line) => self.take(name, number, line),
            Err(error) => self.unread(error),
        }
    }
}
