//! The command line of `hopline-lab pairs`.

use clap::Args;
use hopline_lab::{Variant, pairs};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Pairs {
    /// Rounds, each a run of either variant.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
    /// Publisher and subscriber pairs, each with two connections and a queue of its own.
    #[arg(long, value_name = "N", default_value_t = 25)]
    pairs: usize,
    /// Messages a second of each pair.
    #[arg(long, value_name = "N", default_value_t = 500.0)]
    rate: f64,
    /// How long a run is measured.
    #[arg(long, value_name = "T", default_value = "5s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// How long it runs before that.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = humantime::parse_duration)]
    warm_up: Duration,
    /// Octets of a body.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Messages that a publisher may have unsettled.
    #[arg(long, value_name = "N", default_value_t = 100)]
    window: usize,
    /// Messages that the broker may send ahead to each subscriber.
    #[arg(long, value_name = "N", default_value_t = 100)]
    credit: u32,
    /// Send settled.
    #[arg(long)]
    settled: bool,
    /// One variant of the settings: KEY=VALUE,... with keys of the broker's file, or of the
    /// clients: client.nodelay, client.timelines, client.send_buffer, client.receive_buffer; empty:
    /// the defaults.
    #[arg(long, value_name = "SETTINGS", default_value = "timelines=off,client.timelines=off")]
    a: Variant,
    /// The other one.
    #[arg(long, value_name = "SETTINGS", default_value = "timelines=all,client.timelines=on")]
    b: Variant,
}

impl Pairs {
    pub(crate) fn settings(&self) -> pairs::Settings {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        pairs::Settings {
            rounds: self.rounds,
            pairs: self.pairs,
            rate: self.rate,
            length_ms: millis(self.length),
            warm_up_ms: millis(self.warm_up),
            size: self.size,
            window: self.window,
            credit: self.credit,
            settled: self.settled,
            variants: [self.a.clone(), self.b.clone()],
        }
    }
}
