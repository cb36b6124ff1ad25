//! The command line, as typed.

use crate::experiments::{Bench, Buffers, Hops, Nagle, Pairs};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

const EXIT_STATUS: &str = "\
Exit status: 0 the experiment is complete; 1 it failed; 2 bad usage; 130 it was interrupted, and
what was measured until then was printed and written.";

/// Experiments that prove what a setting changes
///
/// Each starts its own broker, publisher and subscriber, tries one setting and the other in turn,
/// and prints a table and a verdict. Leave the machine alone meanwhile.
#[derive(Debug, Parser)]
#[command(name = "hopline-lab", version, after_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) experiment: Experiment,
    /// Write the result as JSON, too.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) json: Option<PathBuf>,
    /// No progress bar.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Where hopline-broker, hopline-publish and hopline-subscribe are; beside this program, if not
    /// given.
    #[arg(long, value_name = "FOLDER", global = true)]
    pub(crate) programs: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// TCP_NODELAY off against on, at the ends of hops that you choose.
    Nagle(Nagle),
    /// Many pairs at a fixed rate: what a message costs the broker, for two variants of settings.
    Pairs(Box<Pairs>),
    /// Sizes of socket buffers, and how many messages share a write, one after the other.
    Buffers(Buffers),
    /// The broker against a raw TCP relay, and against any AMQP 1.0 broker.
    Bench(Bench),
    /// Copies octets: the relay of bench, in a process of its own.
    #[command(hide = true)]
    Relay,
    /// Chains of brokers that forward to one another: what one more of them costs.
    Hops(Box<Hops>),
}
