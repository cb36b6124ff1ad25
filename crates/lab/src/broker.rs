//! A broker that an experiment starts.

use crate::process::Process;
use crate::{Error, Programs};
use hopline_messenger::driver::Clock;
use std::time::Duration;
use tempfile::TempDir;

/// A `hopline-broker` with a file of its own.
#[derive(Debug)]
pub(crate) struct Broker {
    process: Process,
    /// HOST:PORT of its listeners, in the file's order.
    addresses: Vec<String>,
    started_in: Duration,
    _folder: TempDir,
}

impl Broker {
    /// Starts one with this file, which has a `[[listener]]` at least, and waits until it listens.
    pub(crate) async fn start(programs: &Programs, file: &str) -> Result<Self, Error> {
        Self::start_in(None, programs, file).await
    }

    /// Starts one in a network namespace.
    pub(crate) async fn start_in(
        namespace: Option<&str>,
        programs: &Programs,
        file: &str,
    ) -> Result<Self, Error> {
        let folder = TempDir::new().map_err(Error::file(std::env::temp_dir()))?;
        let path = folder.path().join("broker.toml");
        std::fs::write(&path, file).map_err(Error::file(&path))?;
        let mut command = programs.command_in(namespace, "hopline-broker");
        command.arg("--config").arg(&path);
        let start = Clock.now();
        let mut process = Process::start("hopline-broker", command)?;
        let listeners = file.matches("[[listener]]").count();
        let lines = process.told("listening on ", listeners).await?;
        let started_in = Clock.now().saturating_duration_since(start);
        let address = |line: String| line.split(' ').next().unwrap_or_default().to_owned();
        let addresses = lines.into_iter().map(address).collect();
        Ok(Self { process, addresses, started_in, _folder: folder })
    }

    /// Where its listener of that number listens; its last one, if there are fewer.
    pub(crate) fn url(&self, listener: usize) -> String {
        let address = self.addresses.get(listener).or(self.addresses.last());
        format!("amqp://{}", address.map_or("", String::as_str))
    }

    /// From its start until it listened.
    pub(crate) fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id().unwrap_or(0)
    }

    /// Ends it.
    pub(crate) async fn end(self) -> Result<(), Error> {
        self.process.terminate().await
    }
}
