//! The command line, as typed.

use clap::{Parser, ValueEnum};
use hopline_broker::settings::Overrides;
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;

const EXIT_STATUS: &str = "\
Exit status: 0 stopped in order, or the configuration is ok; 1 it could not serve, or was ended by a
second signal; 2 bad usage, or the configuration is wrong, and no port was opened.";

/// An AMQP 1.0 broker that shows where each message's time went
///
/// Without any configuration it listens on 127.0.0.1:5672, lets everybody in (SASL ANONYMOUS) and
/// makes queues on demand, in memory. Flags win over variables of the environment (HOPLINE_...),
/// those over the file.
#[derive(Parser)]
#[command(name = "hopline-broker", version, after_help = EXIT_STATUS)]
pub(crate) struct Args {
    /// The configuration file (TOML); otherwise HOPLINE_CONFIG, otherwise none
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen here, not where the configuration says; port 0 takes a free one; repeatable
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// TCP_NODELAY of all listeners and the connections that they accept
    #[arg(long, value_name = "on|off")]
    nodelay: Option<Switch>,
    /// Which instants the kernels of listeners are asked for: off, receive, all, or 1/N of the
    /// messages sent (Linux); those of sent messages need --side-records
    #[arg(long, value_name = "WHICH")]
    kernel_timestamps: Option<String>,
    /// Where what the kernel tells of sent messages goes: off, a file, or the address $timeline
    #[arg(long, value_name = "WHERE")]
    side_records: Option<String>,
    /// The container-id, and the name in timelines
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Which messages are stamped: all, carried (those with a timeline), off, or 1/N of the others
    #[arg(long, value_name = "WHICH")]
    timelines: Option<String>,
    /// How logs are written to standard error: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or a filter such as hopline_broker=debug
    #[arg(long, value_name = "FILTER", default_value = "info", value_parser = filter)]
    log_level: String,
    /// Check the configuration, say that it is ok, and end
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Print the configuration in force as TOML, passwords masked, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Copy, Clone, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Args {
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            config: self.config.clone(),
            listen: self.listen.clone(),
            nodelay: self.nodelay.map(|switch| switch == Switch::On),
            kernel_timestamps: self.kernel_timestamps.clone(),
            side_records: self.side_records.clone(),
            name: self.name.clone(),
            timelines: self.timelines.clone(),
        }
    }

    /// The filter was checked when it was parsed; one can't be cloned, so it is not kept.
    pub(crate) fn log_filter(&self) -> EnvFilter {
        EnvFilter::new(&self.log_level)
    }
}

fn filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
