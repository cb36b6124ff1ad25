//! The command line of `hopline-lab buffers`.

use clap::Args;
use hopline_lab::buffers;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Buffers {
    /// Rounds, each with a run of every setting.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
    /// SO_RCVBUF of all ends, one after the other.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "4096,16384,65536,262144"
    )]
    receive_buffers: Vec<usize>,
    /// SO_SNDBUF of all ends, likewise.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "4096,16384,65536,262144"
    )]
    send_buffers: Vec<usize>,
    /// How many messages share a write of the publisher at most, likewise.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,8,512")]
    coalesce: Vec<u32>,
    /// How long each half of a run is measured: flat out, then at the rate.
    #[arg(long, value_name = "T", default_value = "1s", value_parser = humantime::parse_duration)]
    length: Duration,
    /// Messages a second, for the delays.
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    rate: f64,
    /// Octets of a body.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Messages that the publisher may have unsettled.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    window: usize,
    /// Messages that the broker may send ahead to the subscriber.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    credit: u32,
    /// Send settled.
    #[arg(long)]
    settled: bool,
}

impl Buffers {
    pub(crate) fn settings(&self) -> buffers::Settings {
        buffers::Settings {
            rounds: self.rounds,
            receive_buffers: self.receive_buffers.clone(),
            send_buffers: self.send_buffers.clone(),
            coalesce: self.coalesce.clone(),
            length_ms: u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX),
            rate: self.rate,
            size: self.size,
            window: self.window,
            credit: self.credit,
            settled: self.settled,
        }
    }
}
