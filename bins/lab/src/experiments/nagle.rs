//! The command line of `hopline-lab nagle`.

use clap::{Args, ValueEnum};
use hopline_lab::{Shape, nagle};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Nagle {
    /// Rounds, each a run with TCP_NODELAY off and one with it on.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: u32,
    /// Messages of a run.
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: u64,
    /// Messages a second; their delays are compared.
    #[arg(long, value_name = "N", default_value_t = 100.0)]
    rate: f64,
    /// As fast as the window lets, in place of a rate; the time for all messages is compared.
    #[arg(long, conflicts_with = "rate")]
    flat_out: bool,
    /// Octets of a body.
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Messages that the publisher may have unsettled.
    #[arg(long, value_name = "N", default_value_t = 10)]
    window: u32,
    /// Messages that the broker may send ahead to the subscriber.
    #[arg(long, value_name = "N", default_value_t = 10)]
    credit: u32,
    /// Where TCP_NODELAY is switched; on at all other ends.
    #[arg(long, value_name = "END,...", value_delimiter = ',', default_value = "all")]
    ends: Vec<End>,
    /// How messages leave the publisher: by one write, or the first 8 octets apart.
    #[arg(long, default_value = "whole")]
    write: Write,
    /// How messages are settled: sent settled; accepted; or accepted and then settled by a frame of
    /// the sender's own after each.
    #[arg(long, default_value = "second")]
    settle: Settle,
    /// When the subscriber tops its credit up.
    #[arg(long, default_value = "half")]
    top_up: TopUp,
    /// The subscriber takes at most so many messages a second.
    #[arg(long, value_name = "N")]
    throttle: Option<u32>,
    /// How often its throttle looks.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = humantime::parse_duration)]
    throttle_window: Duration,
    /// Not loopback: a path between both clients and the broker, in network namespaces of its own;
    /// needs root. Delay one way, share of lost packets, Mbit/s.
    #[arg(long, value_name = "delay=20ms,loss=0.1%,rate=10")]
    path: Option<Shape>,
    /// Which instants the kernels are asked for, as the other programs take it.
    #[arg(long, value_name = "WHICH", default_value = "all")]
    kernel_timestamps: String,
    /// Keep what the programs recorded, a folder for each run below this one, for hopline-report.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Which delay is late.
    #[arg(long, value_name = "T", default_value = "5ms", value_parser = humantime::parse_duration)]
    late: Duration,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum End {
    All,
    Publisher,
    BrokerIn,
    BrokerOut,
    Subscriber,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Write {
    Whole,
    Split,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Settle {
    Presettled,
    Accepted,
    Second,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum TopUp {
    Half,
    Each,
}

impl Nagle {
    pub(crate) fn settings(&self) -> nagle::Settings {
        let window_ms = u64::try_from(self.throttle_window.as_millis()).unwrap_or(u64::MAX);
        let throttle = self.throttle.map(|rate| nagle::Throttle { rate, window_ms });
        nagle::Settings {
            rounds: self.rounds,
            messages: self.count,
            pace: if self.flat_out { nagle::Pace::FlatOut } else { nagle::Pace::Rate(self.rate) },
            size: self.size,
            window: self.window,
            credit: self.credit,
            ends: self.ends.iter().flat_map(|end| end.meant()).copied().collect(),
            write: match self.write {
                Write::Whole => nagle::Write::Whole,
                Write::Split => nagle::Write::Split,
            },
            settle: match self.settle {
                Settle::Presettled => nagle::Settle::Presettled,
                Settle::Accepted => nagle::Settle::Accepted,
                Settle::Second => nagle::Settle::Second,
            },
            top_up: match self.top_up {
                TopUp::Half => nagle::TopUp::Half,
                TopUp::Each => nagle::TopUp::Each,
            },
            throttle,
            path: self.path,
            kernel_timestamps: self.kernel_timestamps.clone(),
            keep: self.keep.clone().map(|keep| std::path::absolute(&keep).unwrap_or(keep)),
            late_us: u64::try_from(self.late.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl End {
    fn meant(self) -> &'static [nagle::End] {
        match self {
            End::All => nagle::End::ALL,
            End::Publisher => &[nagle::End::Publisher],
            End::BrokerIn => &[nagle::End::BrokerIn],
            End::BrokerOut => &[nagle::End::BrokerOut],
            End::Subscriber => &[nagle::End::Subscriber],
        }
    }
}
