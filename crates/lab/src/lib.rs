//! Experiments that prove what a setting changes: repeated, interleaved, with a verdict.
//!
//! Each experiment starts the programs that it measures, `hopline-broker` and, as a rule,
//! `hopline-publish` and `hopline-subscribe`, as processes of their own, runs one setting and the
//! other in turn, and ends with an [`Outcome`]: a table, a sentence, a JSON document. What was
//! measured until an interruption makes an outcome too.
//!
//! - [`nagle`]: TCP_NODELAY on against off, at each end of each hop.
//! - [`pairs`]: many pairs at a fixed rate, and what a message costs the broker, for two
//!   [variants](Variant) of the settings.
//! - [`buffers`]: sizes of socket buffers, and how many messages share a write.
//! - [`hops`]: chains of brokers, and what each one more of them costs.
//! - [`mod@bench`]: the broker against a raw relay, and against others.
//!
//! Everything is bounded: rounds, messages and seconds by the limits that the settings name, and
//! each run by a deadline after which its processes are killed.

#![forbid(unsafe_code)]

pub mod bench;
mod broker;
pub mod buffers;
mod chain;
mod cpu;
mod error;
pub mod hops;
mod lab;
mod load;
pub mod nagle;
mod outcome;
pub mod pairs;
mod path;
mod process;
mod ranks;
mod relay;
mod stats;
mod table;
mod variant;
mod verdict;

pub use error::Error;
pub use lab::{Lab, Programs, Stop};
pub use outcome::Outcome;
pub use path::Shape;
pub use relay::relay;
pub use stats::{Comparison, Line, Sample};
pub use variant::Variant;
