//! The command line of each experiment.

mod bench;
mod buffers;
mod hops;
mod nagle;
mod pairs;

pub(crate) use bench::Bench;
pub(crate) use buffers::Buffers;
pub(crate) use hops::Hops;
pub(crate) use nagle::Nagle;
pub(crate) use pairs::Pairs;
