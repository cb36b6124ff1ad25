//! The `hopline-broker` program.

#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use hopline_broker::{Config, Server, settings};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// An AMQP 1.0 broker that shows where each message's time went.
///
/// Without any configuration it listens on 127.0.0.1:5672, lets everybody in (SASL ANONYMOUS) and
/// makes queues on demand, in memory. Exit status: 0 stopped in order, 1 it could not serve,
/// 2 the configuration is wrong.
#[derive(Debug, Parser)]
#[command(name = "hopline-broker", version)]
struct Args {
    /// The configuration file (TOML); HOPLINE_CONFIG in the environment.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listen here instead of where the configuration says (may be repeated; port 0: a free one).
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,
    /// TCP_NODELAY on all listeners and the connections they accept.
    #[arg(long, value_name = "on|off")]
    nodelay: Option<Switch>,
    /// The container-id, and who stamps.
    #[arg(long)]
    name: Option<String>,
    /// Which messages are stamped: all, 1/N, carried (those with a timeline) or off.
    #[arg(long, value_name = "WHICH")]
    timelines: Option<String>,
    /// Logs as text or JSON, to standard error.
    #[arg(long, default_value = "text")]
    log_format: LogFormat,
    /// What is logged: error, warn, info, debug, or a filter such as hopline_broker=debug.
    #[arg(long, value_name = "FILTER", default_value = "info")]
    log_level: String,
    /// Check the configuration and end.
    #[arg(long)]
    check_config: bool,
    /// Print the configuration in force as TOML and end.
    #[arg(long)]
    print_config: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let config = match configure(&args) {
        Ok(config) => config,
        Err(error) => return fail(&*error, 2),
    };
    if args.print_config {
        print!("{}", settings::print(&config));
        return ExitCode::SUCCESS;
    }
    if args.check_config {
        println!("the configuration is good");
        return ExitCode::SUCCESS;
    }
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&*error, 1),
    }
}

fn configure(args: &Args) -> Result<Config, Box<dyn Error>> {
    let filter = EnvFilter::try_new(&args.log_level)?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => logs.with_target(false).init(),
        LogFormat::Json => logs.json().init(),
    }
    let flags = settings::Overrides {
        config: args.config.clone(),
        listen: args.listen.clone(),
        nodelay: args.nodelay.map(|switch| switch == Switch::On),
        name: args.name.clone(),
        timelines: args.timelines.clone(),
    };
    Ok(settings::load(&flags, |name| std::env::var(name).ok())?)
}

#[tokio::main(flavor = "current_thread")]
async fn serve(config: Config) -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let server = Server::bind(config).await?;
    let mut stop = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    server.run(stop()).await?;
    Ok(())
}

fn fail(error: &dyn Error, status: u8) -> ExitCode {
    eprint!("hopline-broker: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprint!(": {error}");
        cause = error.source();
    }
    eprintln!();
    ExitCode::from(status)
}
