//! From which event on, and for how long, a terminus outlives its link (part 3, 3.5.6).

use crate::ConnId;
use hopline_driver::engine::SessionId;
use hopline_driver::engine::wire::Symbol;
use std::time::Duration;

/// The event from which the timeout counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    LinkDetach,
    SessionEnd,
    ConnectionClose,
    Never,
}

/// What a terminus was attached with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    pub(crate) policy: Policy,
    /// Seconds.
    pub(crate) timeout_s: u32,
}

/// What has to end before the timeout of a terminus counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Session(ConnId, SessionId),
    Connection(ConnId),
}

impl Expiry {
    /// What is in force of what a peer asks for. Nobody could come back to what a container
    /// without a name has left: it goes with the connection.
    pub(crate) fn in_force(policy: &Symbol, timeout_s: u32, is_nameless: bool) -> Self {
        let policy = match policy.as_str() {
            "link-detach" => Policy::LinkDetach,
            "connection-close" => Policy::ConnectionClose,
            "never" if is_nameless => Policy::ConnectionClose,
            "never" => Policy::Never,
            _ => Policy::SessionEnd,
        };
        let lasts = policy != Policy::Never && !is_nameless;
        Self { policy, timeout_s: if lasts { timeout_s } else { 0 } }
    }

    /// The policy as the wire has it.
    pub(crate) fn symbol(self) -> Symbol {
        Symbol::from_static(match self.policy {
            Policy::LinkDetach => "link-detach",
            Policy::SessionEnd => "session-end",
            Policy::ConnectionClose => "connection-close",
            Policy::Never => "never",
        })
    }

    pub(crate) fn timeout(self) -> Duration {
        Duration::from_secs(self.timeout_s.into())
    }
}
