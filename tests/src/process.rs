use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{PAUSE, wait_until};

/// A child process. Its output is captured while it runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Captured,
    errors: Captured,
    readers: Vec<JoinHandle<()>>,
}

/// How a process ended, and all that it printed.
#[derive(Debug)]
pub struct Finished {
    /// The program's name, with its arguments.
    pub name: String,
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

#[derive(Clone, Debug, Default)]
struct Captured(Arc<Mutex<String>>);

impl Process {
    /// Starts a process with all three standard streams at this end.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn start(command: &mut Command) -> Process {
        let name = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} can't be started: {error}"));
        let (output, errors) = (Captured::default(), Captured::default());
        let readers = vec![
            output.read_from(child.stdout.take().expect("piped")),
            errors.read_from(child.stderr.take().expect("piped")),
        ];
        let input = child.stdin.take();
        Process { name, child, input, output, errors, readers }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed to standard output so far.
    pub fn stdout(&self) -> String {
        self.output.text()
    }

    /// What it has printed to standard error so far.
    pub fn stderr(&self) -> String {
        self.errors.text()
    }

    /// The rest of the first line, on either stream, that holds `mark`.
    ///
    /// # Panics
    /// If the process ends without such a line, or `limit` passes.
    pub fn wait_for_text_after(&mut self, mark: &str, limit: Duration) -> String {
        let what = format!("{mark:?} from {}", self.name);
        wait_until(limit, &what, || {
            let ended = self.has_ended();
            let found = [&self.output, &self.errors].into_iter().find_map(|it| it.after(mark));
            if found.is_none() && ended {
                panic!("{} ended before it printed {mark:?}\n{}", self.name, self.transcript());
            }
            found
        })
    }

    /// Writes to its standard input.
    ///
    /// # Panics
    /// If its input is closed.
    pub fn write(&mut self, octets: &[u8]) {
        let input = self.input.as_mut().expect("the input is not closed");
        input.write_all(octets).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&mut self, signal: Signal) {
        if !self.has_ended() {
            // It is our child and not yet reaped, so the id is still its own.
            let sent = kill_process(Pid::from_child(&self.child), signal);
            sent.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        }
    }

    /// Asks it to stop, by SIGTERM, and waits until it has.
    ///
    /// # Panics
    /// If it has not ended after `limit`.
    pub fn terminate(mut self, limit: Duration) -> Finished {
        self.signal(Signal::TERM);
        self.finish(limit)
    }

    /// Closes its standard input and waits until it ends.
    ///
    /// # Panics
    /// If it has not ended after `limit`.
    pub fn finish(mut self, limit: Duration) -> Finished {
        if !self.ends_within(limit) {
            panic!("{} did not end in {limit:?}\n{}", self.name, self.transcript());
        }
        let status = self.child.wait().expect("it has ended");
        for reader in self.readers.drain(..) {
            reader.join().expect("a reader does not panic");
        }
        let (stdout, stderr) = (self.stdout(), self.stderr());
        Finished { name: std::mem::take(&mut self.name), status, stdout, stderr }
    }

    /// Closes its standard input and waits until it ends; false if `limit` passes before.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> bool {
        self.close_input();
        let deadline = Instant::now() + limit;
        while !self.has_ended() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(PAUSE);
        }
        true
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    fn transcript(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only if it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// This, if the exit status is 0.
    ///
    /// # Panics
    /// If the exit status is anything else.
    pub fn success(self) -> Finished {
        assert!(
            self.status.success(),
            "{} ended with {}\nstdout:\n{}\nstderr:\n{}",
            self.name,
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }
}

impl Captured {
    fn read_from(&self, stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let captured = self.clone();
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|octets| octets > 0) {
                captured.lock().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        })
    }

    fn text(&self) -> String {
        self.lock().clone()
    }

    /// What follows `mark` on the first whole line that holds it.
    fn after(&self, mark: &str) -> Option<String> {
        let text = self.lock();
        let whole = &text[..text.rfind('\n')?];
        whole.lines().find_map(|line| Some(line.split_once(mark)?.1.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
