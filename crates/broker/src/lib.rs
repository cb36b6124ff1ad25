//! Queues and forwards AMQP 1.0 messages, and stamps those that carry a timeline.
//!
//! A [`Server`] listens and serves; all its state is in one `Broker`, owned by one thread, so that
//! a message goes from a publisher's read to a consumer's write without a task, a channel or a
//! lock between them:
//!
//! ```text
//! read -> engine -> inbound -> queue -> outbound -> engine -> write
//!                      ^                   |
//!             credit --+-- room in queue --+-- outcomes
//! ```

#![forbid(unsafe_code)]

mod added;
mod attach;
mod backlog;
mod broker;
mod choice;
mod config;
mod dead_letter;
mod dynamic;
mod error;
mod expiry;
mod filter;
mod forward;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod inbound;
mod late;
mod lifetime;
mod links;
mod message;
mod node;
mod outbound;
mod outcome;
mod places;
mod queue;
mod run;
mod selector;
mod server;
pub mod settings;
mod side;
#[cfg(feature = "simulation")]
pub mod simulation;
mod subscription;
mod termini;
mod transaction;
mod users;

pub use config::{
    Config, DurableMessages, Limits, ListenerConfig, NodeConfig, Sampling, SideSink, TlsFiles, User,
};
pub use error::Error;
pub use forward::{Direction, ForwardConfig};
/// The clock that programs read too.
pub use hopline_driver::Clock;
pub use server::{Server, Stopped};

slotmap::new_key_type! {
    /// A connection.
    struct ConnId;
    /// A queue.
    struct QueueId;
    /// A link on which messages come in.
    struct ProducerId;
    /// A link on which messages go out.
    struct ConsumerId;
    /// What outlives a link.
    struct TerminusId;
    /// A transaction.
    struct TransactionId;
}
