//! The command line, as typed.

use clap::{Parser, ValueEnum};
use hopline_messenger::driver::KernelTimestamps;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Takes messages from any AMQP 1.0 broker and writes down where their time went.
#[derive(Debug, Parser)]
#[command(name = "hopline-subscribe", version)]
pub(crate) struct Args {
    /// End after so many messages; no more are taken from the broker.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// End after that time, such as 10s or 2m.
    #[arg(long, value_name = "T", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Messages that the broker may send ahead.
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) credit: NonZeroU32,
    /// When that is topped up.
    #[arg(long, value_name = "half|each", default_value = "half")]
    pub(crate) top_up: TopUp,
    /// Tell outcomes and let the broker settle (receiver settle mode second).
    #[arg(long)]
    pub(crate) settle_second: bool,
    /// Take at most so many messages a second, as --throttle-window sees it.
    #[arg(long, value_name = "N")]
    pub(crate) throttle: Option<NonZeroU32>,
    /// How often the throttle looks: what a whole window allows is taken at once, then none until
    /// the next one.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) throttle_window: Duration,
    /// Write one JSON object a line for each message to a file, or (-) to standard output.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) timeline: Option<PathBuf>,
    /// Print bodies to standard output, a line each.
    #[arg(long)]
    pub(crate) print: bool,
    /// What to tell the broker of each message.
    #[arg(long, default_value = "accept")]
    pub(crate) outcome: Verdict,
    /// TCP_NODELAY on our socket.
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub(crate) nodelay: Switch,
    /// Which instants our kernel is asked for: off or receive (Linux); all, for programs that send,
    /// is the same as receive here.
    #[arg(long, value_name = "WHICH", default_value = "off")]
    pub(crate) kernel_timestamps: KernelTimestamps,
    /// Who stamps.
    #[arg(long, value_name = "NAME", default_value = "subscriber")]
    pub(crate) name: String,
    /// Trust the certificates of this PEM file (amqps).
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// How long to wait for a connection.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) timeout: Duration,
    /// No live line and no summary.
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

/// When credit is topped up: once half of it is used, or after each message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopUp {
    Half,
    Each,
}

/// An outcome.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    Accept,
    Release,
    Reject,
}
