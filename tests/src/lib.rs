//! Support for the tests of the whole chain: starts Hopline's programs, foreign clients and foreign
//! brokers as processes, reads what they say, and stops them.
//!
//! A test starts from [`HoplineBroker`] or [`ForeignBroker`], sends with [`publish`] or
//! [`Client::send`], and receives with [`subscribe`] or [`Client::receive`]. Everything here
//! reports what went wrong by panicking, with the output of the process concerned.

mod brokers;
mod clients;
mod exchange;
mod hopline;
mod process;
mod programs;
mod timelines;
pub mod values;
mod wait;

pub use brokers::ForeignBroker;
pub use clients::{Client, Received};
pub use exchange::exchange;
pub use hopline::{HoplineBroker, Subscribed, publish, subscribe};
pub use process::{Finished, Process};
pub use programs::{Program, workspace_root};
pub use timelines::{assert_ids_differ, assert_intact};
pub use wait::wait_until;

use std::time::Duration;

/// How long anything in a test may take before the test fails: far more than it needs, as debug
/// builds and other tests share the machine.
pub const PATIENCE: Duration = Duration::from_secs(90);
