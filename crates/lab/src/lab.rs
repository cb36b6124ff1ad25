//! What all experiments share: programs, progress, and the wish to stop.

use crate::Error;
use hopline_messenger::driver::Clock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::watch;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

/// Where the programs are that experiments start.
#[derive(Clone, Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// In that folder, or in that of the running program.
    ///
    /// # Errors
    /// [`Error::Program`]: one is missing.
    pub fn find(folder: Option<&Path>) -> Result<Self, Error> {
        let folder = match folder {
            Some(folder) => folder.to_owned(),
            None => {
                let here = std::env::current_exe().map_err(Error::file("the running program"))?;
                here.parent().map(Path::to_owned).unwrap_or_default()
            }
        };
        let programs = Self { folder };
        for name in ["hopline-broker", "hopline-publish", "hopline-subscribe"] {
            let path = programs.path(name);
            if !path.is_file() {
                return Err(Error::Program { path });
            }
        }
        Ok(programs)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command that runs the program of that name, in a network namespace or in ours, without the
    /// user's own settings of it.
    pub(crate) fn command_in(&self, namespace: Option<&str>, name: &str) -> Command {
        let mut command = match namespace {
            // It becomes the program: one process, one id.
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(self.path(name));
                command
            }
            None => Command::new(self.path(name)),
        };
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("HOPLINE_")) {
            command.env_remove(name);
        }
        command
    }
}

/// The user's wish to stop, once it is uttered.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A wish, and how to utter it: send `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits until it is uttered; for ever if it never is.
    pub(crate) async fn uttered(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Programs, progress bar and the wish to stop, for one experiment.
#[derive(Debug)]
pub struct Lab {
    pub(crate) programs: Programs,
    bar: ProgressBar,
    stop: Stop,
}

impl Lab {
    /// With a bar on standard error if that is a terminal and `shows` wants it.
    pub fn new(programs: Programs, stop: Stop, shows: bool) -> Self {
        let target = match shows && std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %, {eta} left: {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { programs, bar, stop }
    }

    /// An experiment of so many runs begins, each of about that length.
    pub(crate) fn expect(&self, runs: usize, each: Duration) {
        self.bar.reset();
        self.bar.set_length(millis(each).saturating_mul(runs as u64));
    }

    /// Makes one run; the bar moves meanwhile, by `length` in all.
    ///
    /// # Errors
    /// Those of the run; [`Error::Interrupted`].
    pub(crate) async fn run<T>(
        &self,
        what: String,
        length: Duration,
        run: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.bar.set_message(what);
        let start = (self.bar.position(), Clock.now());
        tokio::pin!(run);
        let done = loop {
            tokio::select! {
                done = &mut run => break done,
                () = self.stop.uttered() => break Err(Error::Interrupted),
                () = tokio::time::sleep(TICK) => {
                    let since = Clock.now().saturating_duration_since(start.1).min(length);
                    self.bar.set_position(start.0 + millis(since));
                }
            }
        };
        self.bar.set_position(start.0 + millis(length));
        done
    }

    /// The experiment is over; the bar goes.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
