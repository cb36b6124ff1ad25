//! The `hopline-subscribe` program.

#![forbid(unsafe_code)]

mod args;
mod live;
mod output;
mod subscribe;
mod throttle;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    match subscribe::run(&args).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hopline-subscribe: {error}");
            ExitCode::FAILURE
        }
    }
}
