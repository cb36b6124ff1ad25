//! The `hopline-broker` program: see `hopline-broker --help` and `docs/configuration.md`.

#![forbid(unsafe_code)]

mod args;
mod quiet;

use args::{Args, LogFormat};
use clap::Parser;
use hopline_broker::{Config, Server, settings};
use quiet::{Quiet, TELL};
use std::error::Error;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing_subscriber::layer::{Filter, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, filter::FilterExt, fmt};

/// Messages of one read are all there before the first of them leaves: more than the small caches
/// of the system's allocator hold.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let config = match settings::load(&args.overrides(), |name| std::env::var_os(name)) {
        Ok(config) => config,
        Err(error) => return fail(&error, 2),
    };
    if args.print_config {
        print!("{}", settings::print(&config));
        return ExitCode::SUCCESS;
    }
    if args.check_config {
        println!("the configuration is ok");
        return ExitCode::SUCCESS;
    }
    let quiet = Quiet::default();
    log(args.log_filter().and(quiet.clone()), args.log_format);
    match serve(config, &quiet) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&*error, 1),
    }
}

/// To standard error: standard output is for what was asked for.
fn log(filter: impl Filter<Registry> + Send + Sync + 'static, format: LogFormat) {
    let lines = fmt::layer().with_writer(stderr);
    let lines = match format {
        LogFormat::Text => lines.with_target(false).with_ansi(stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

#[tokio::main(flavor = "current_thread")]
async fn serve(config: Config, quiet: &Quiet) -> Result<(), Box<dyn Error>> {
    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let server = Server::bind(config).await?;
    let (stop, stopping) = oneshot::channel();
    let impatience = async {
        next(&mut signals).await;
        tracing::info!("stopping; a second signal ends at once");
        let _ = stop.send(());
        next(&mut signals).await;
    };
    let stopped = server.run(async {
        let _ = stopping.await;
    });
    let told = async {
        loop {
            tokio::time::sleep(TELL).await;
            quiet.tell();
        }
    };
    let ended = tokio::select! {
        stopped = stopped => Ok(stopped.map(|_| ())?),
        () = impatience => Err("ended by a second signal, with connections open".into()),
        () = told => Ok(()),
    };
    quiet.tell();
    ended
}

async fn next([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Tells the error and all its causes.
fn fail(error: &(dyn Error + 'static), status: u8) -> ExitCode {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    eprintln!("hopline-broker: {}", texts.join(": "));
    ExitCode::from(status)
}
