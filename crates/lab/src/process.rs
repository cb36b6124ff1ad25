//! Processes that an experiment starts, and what they say.

use crate::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Lines that are kept of what a process says, and characters of each.
const LINES_MAX: usize = 40;
const LINE_MAX: usize = 400;

/// How long a process has to end that was asked to.
const END: Duration = Duration::from_secs(10);

/// A process of ours. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    said: Said,
    changed: watch::Receiver<()>,
}

#[derive(Clone, Debug, Default)]
struct Said(Arc<Mutex<VecDeque<String>>>);

impl Process {
    /// Starts it in a process group of its own, so that a Ctrl-C on the terminal reaches us only.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, Error> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let spawned = command.kill_on_drop(true).process_group(0).spawn();
        let start = |source| Error::Start { name: name.to_owned(), source };
        let mut child = spawned.map_err(start)?;
        let (said, (tell, changed)) = (Said::default(), watch::channel(()));
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(listen(said.clone(), tell, stderr));
        }
        Ok(Self { name: name.to_owned(), child, said, changed })
    }

    /// The process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until so many lines hold `mark`; what follows it on each.
    pub(crate) async fn told(&mut self, mark: &str, lines: usize) -> Result<Vec<String>, Error> {
        let all = async {
            loop {
                let found = self.said.after(mark);
                if found.len() >= lines {
                    return Some(found);
                }
                // Its end of the pipe is closed: it has ended.
                self.changed.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(END, all).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => match self.child.wait().await {
                Ok(status) => Err(self.failed(status)),
                Err(source) => Err(Error::Start { name: self.name.clone(), source }),
            },
            Err(_) => Err(self.too_long(END)),
        }
    }

    /// Waits until it ends by itself, with status 0.
    pub(crate) async fn finish(mut self, limit: Duration) -> Result<(), Error> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => {
                // What it said last is read until its end of the pipe is closed.
                while self.changed.changed().await.is_ok() {}
                Err(self.failed(status))
            }
            Ok(Err(source)) => Err(Error::Start { name: self.name.clone(), source }),
            Err(_) => Err(self.too_long(limit)),
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn terminate(self) -> Result<(), Error> {
        if let Some(pid) = self.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // Not reaped yet, so the id is its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        self.finish(END).await
    }

    fn failed(&self, status: ExitStatus) -> Error {
        let said = self.said.text();
        Error::Failed { name: self.name.clone(), status: status.to_string(), said }
    }

    fn too_long(&self, limit: Duration) -> Error {
        let said = self.said.text();
        Error::TooLong { name: self.name.clone(), seconds: limit.as_secs(), said }
    }
}

async fn listen(said: Said, tell: watch::Sender<()>, stream: impl AsyncRead + Unpin) {
    let mut lines = BufReader::new(stream).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        said.add(&line);
        tell.send_replace(());
    }
}

impl Said {
    fn add(&self, line: &[u8]) {
        let mut lines = self.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(line).chars().take(LINE_MAX).collect());
    }

    fn after(&self, mark: &str) -> Vec<String> {
        let lines = self.lock();
        let found = lines.iter().filter_map(|line| line.split_once(mark));
        found.map(|(_, after)| after.to_owned()).collect()
    }

    fn text(&self) -> String {
        self.lock().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
