//! The command line of `hopline-lab hops`.

use clap::Args;
use hopline_lab::{Variant, hops};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Hops {
    /// Rounds, each with a run of every chain.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
    /// How many brokers the chains have.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,8")]
    brokers: Vec<usize>,
    /// Messages a second.
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    rate: f64,
    /// How long a run is measured.
    #[arg(long, value_name = "T", default_value = "2s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// How long it runs before that.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = humantime::parse_duration)]
    warm_up: Duration,
    /// Octets of a body.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Send settled to the first broker; between brokers messages are accepted.
    #[arg(long)]
    settled: bool,
    /// Settings of all brokers and clients, as for pairs.
    #[arg(long, value_name = "SETTINGS", default_value = "")]
    settings: Variant,
}

impl Hops {
    pub(crate) fn settings(&self) -> hops::Settings {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        hops::Settings {
            rounds: self.rounds,
            brokers: self.brokers.clone(),
            rate: self.rate,
            length_ms: millis(self.length),
            warm_up_ms: millis(self.warm_up),
            size: self.size,
            settled: self.settled,
            variant: self.settings.clone(),
        }
    }
}
