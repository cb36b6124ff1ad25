//! The `hopline-publish` program.

#![forbid(unsafe_code)]

mod args;
mod body;
mod publish;
mod schedule;
mod summary;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    match publish::run(&args).await {
        Ok(summary) => {
            if !args.quiet {
                println!("{summary}");
                summary.accounts().for_each(|account| eprintln!("{account}"));
            }
            if summary.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("hopline-publish: {error}");
            ExitCode::FAILURE
        }
    }
}
