//! Forwarding between brokers: connections that the broker makes itself (`[[forward]]`).
//!
//! A forward is one link on a connection of its own. To the broker it is a link like any other:
//! the one that sends is a consumer of the local node, the one that receives is a producer to it,
//! so that credit, outcomes, limits and timelines are the same as with clients. A message leaves
//! the local queue when the remote outcome is there, and is accepted from the remote one when it is
//! on the local queue: at least once. Here is only what is different: who connects, when again.
//!
//! ```text
//!            dial               open, begin, attach            attach
//!  Waiting --------> Connecting --------------------> Opening --------> Forwarding
//!     ^                  |                               |                  |
//!     +------------------+---------- pause --------------+------------------+
//! ```

mod config;
mod link;
pub(crate) mod path;
mod task;

pub use config::{Direction, ForwardConfig};
pub(crate) use link::one_way;
pub(crate) use task::run;

use crate::QueueId;
use std::rc::Rc;

/// A configured forward, and the local node that was readied for it.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) config: ForwardConfig,
    pub(crate) node: Local,
}

/// The local end.
#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// A queue, or the queue of our own subscription on a topic that is forwarded.
    Queue(QueueId),
    /// A topic that gets what comes.
    Topic(Rc<str>),
}
