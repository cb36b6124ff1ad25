//! What a forward is set up with.

use hopline_driver::{Reconnect, SocketOptions, Url};
use std::path::PathBuf;

/// Messages from a node here to one of another broker, or the other way round.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardConfig {
    /// Names it in logs, and is the name of its link: unique among the forwards.
    pub name: String,
    /// The queue or topic here.
    pub local: String,
    /// The other broker, the node there (its address must be set), and whom to be there.
    pub remote: Url,
    /// Which way messages go.
    pub direction: Direction,
    /// Options of the connection's socket; `backlog` and `reuse_port` mean nothing here.
    pub socket: SocketOptions,
    /// PEM: whom to trust with `amqps`. Those that the system trusts by default.
    pub ca: Option<PathBuf>,
    /// When a lost connection is made again.
    pub reconnect: Reconnect,
}

/// Which way messages go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From here to there.
    Out,
    /// From there to here.
    In,
}
