//! The command line, as typed.

use clap::{Parser, ValueEnum};
use hopline_messenger::driver::KernelTimestamps;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Publishes messages to any AMQP 1.0 broker, on a fixed schedule or flat out.
#[derive(Debug, Parser)]
#[command(name = "hopline-publish", version)]
pub(crate) struct Args {
    /// Messages a second, on a fixed schedule (open loop: a late one does not delay the next).
    /// Without it: as fast as the window lets.
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<f64>,
    /// How many messages in all.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// For how long, such as 10s or 2m. Without --count, --duration and --body-file: one message.
    #[arg(long, value_name = "T", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Octets of the body.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    pub(crate) size: usize,
    /// Bodies from a file, a line each; - for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub(crate) body_file: Option<PathBuf>,
    /// Messages that may be unsettled (per connection).
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) window: usize,
    /// Send settled: at most once, no outcomes.
    #[arg(long)]
    pub(crate) settled: bool,
    /// Answer each outcome with a frame of our own that settles (receiver settle mode second).
    #[arg(long, conflicts_with = "settled")]
    pub(crate) settle_second: bool,
    /// For experiments: write the first so many octets of each message apart from the rest.
    #[arg(long, value_name = "BYTES")]
    pub(crate) split_writes: Option<NonZeroUsize>,
    /// Connections, used in turn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,
    /// TCP_NODELAY on our sockets.
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub(crate) nodelay: Switch,
    /// The content type of the body.
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Mark messages as durable.
    #[arg(long)]
    pub(crate) durable: bool,
    /// The priority, 0 to 255; 4 by default.
    #[arg(long, value_name = "N")]
    pub(crate) priority: Option<u8>,
    /// Time to live.
    #[arg(long, value_name = "T", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// An application property (may be repeated).
    #[arg(long, value_name = "KEY=VALUE", value_parser = property)]
    pub(crate) property: Vec<(String, String)>,
    /// Which messages carry a timeline: all, 1/N, or off.
    #[arg(long, value_name = "all|1/N|off", default_value = "all", value_parser = sampling)]
    pub(crate) timelines: Timelines,
    /// Which instants our kernel is asked for: off, receive, all, or 1/N of the messages (Linux);
    /// those of sent messages go to --side-records.
    #[arg(long, value_name = "WHICH", default_value = "off")]
    pub(crate) kernel_timestamps: KernelTimestamps,
    /// Write what our kernel tells of sent messages to a file, a JSON object a line.
    #[arg(long, value_name = "FILE")]
    pub(crate) side_records: Option<PathBuf>,
    /// Who stamps.
    #[arg(long, value_name = "NAME", default_value = "publisher")]
    pub(crate) name: String,
    /// Trust the certificates of this PEM file (amqps).
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for a connection, and for outcomes at the end.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,
    /// Print nothing but errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// amqp[s]://[user[:password]@]host[:port]/address
    pub(crate) url: String,
}

/// on or off.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// Which messages carry a timeline.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timelines {
    All,
    OneIn(u32),
    Off,
}

fn property(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn sampling(text: &str) -> Result<Timelines, String> {
    match text {
        "all" => Ok(Timelines::All),
        "off" => Ok(Timelines::Off),
        _ => match text.strip_prefix("1/").and_then(|n| n.parse().ok()) {
            Some(n) if n > 0 => Ok(Timelines::OneIn(n)),
            _ => Err("write all, off or 1/N".into()),
        },
    }
}
