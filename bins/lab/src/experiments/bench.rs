//! The command line of `hopline-lab bench`.

use clap::Args;
use hopline_lab::bench::{Peer, Scenario, Settings};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Rounds, each with a run of every scenario over every target.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
    /// Which loads; all, if none is named.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = scenario)]
    scenarios: Vec<Scenario>,
    /// How long a run is measured.
    #[arg(long, value_name = "T", default_value = "2s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Queues, links, idle connections where there are to be many; a backlog is 100 times as many
    /// messages.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    growth: usize,
    /// An AMQP 1.0 broker to compare with, and its process id if its CPU time is to be read, too;
    /// repeatable. It has to make queues on demand.
    #[arg(long, value_name = "NAME=amqp://HOST:PORT[,PID]")]
    peer: Vec<Peer>,
}

impl Bench {
    pub(crate) fn settings(&self) -> Settings {
        let all = if self.scenarios.is_empty() { Scenario::ALL } else { &self.scenarios };
        Settings {
            rounds: self.rounds,
            scenarios: all.to_vec(),
            length_ms: u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX),
            growth: self.growth,
            peers: self.peer.clone(),
        }
    }
}

fn scenario(name: &str) -> Result<Scenario, String> {
    let found = Scenario::ALL.iter().find(|scenario| scenario.name == name).copied();
    let names = || Scenario::ALL.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("write one of {}", names()))
}
