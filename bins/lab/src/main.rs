//! The `hopline-lab` program: see `hopline-lab --help` and `docs/experiments.md`.

#![forbid(unsafe_code)]

mod args;
mod experiments;

use args::{Arguments, Experiment};
use clap::Parser;
use hopline_lab::{Error, Lab, Outcome, Programs, Stop, bench, buffers, hops, nagle, pairs};
use std::io::Write;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// As that of a shell for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match experiment(&arguments).await {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("hopline-lab: {error}");
            let is_usage = matches!(error, Error::Setting { .. });
            return if is_usage { ExitCode::from(2) } else { ExitCode::FAILURE };
        }
    };
    // A reader such as `head` may leave early; the file is written all the same.
    let _ = write!(std::io::stdout(), "{}", outcome.text);
    if let Some(file) = &arguments.json
        && let Err(error) = outcome.write_json(file)
    {
        eprintln!("hopline-lab: {error}");
        return ExitCode::FAILURE;
    }
    if outcome.is_complete { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) }
}

async fn experiment(arguments: &Arguments) -> Result<Outcome, Error> {
    let (wish, stop) = Stop::new();
    tokio::spawn(async move {
        interrupted().await;
        let _ = wish.send(true);
        // Kept, since a wish that is dropped can't be uttered.
        std::future::pending::<()>().await;
    });
    let lab = || {
        let programs = Programs::find(arguments.programs.as_deref())?;
        Ok::<_, Error>(Lab::new(programs, stop.clone(), !arguments.quiet))
    };
    match &arguments.experiment {
        Experiment::Nagle(it) => nagle::run(&it.settings(), &lab()?).await,
        Experiment::Pairs(it) => pairs::run(&it.settings(), &lab()?).await,
        Experiment::Buffers(it) => buffers::run(&it.settings(), &lab()?).await,
        Experiment::Hops(it) => hops::run(&it.settings(), &lab()?).await,
        Experiment::Bench(it) => bench::run(&it.settings(), &lab()?).await,
        Experiment::Relay => {
            match hopline_lab::relay(|address| eprintln!("listening on {address}")).await? {}
        }
    }
}

/// Ctrl-C or SIGTERM.
async fn interrupted() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
