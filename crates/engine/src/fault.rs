//! A peer's mistake, and at which level it is answered (part 2, 2.8.15 to 2.8.18).

use crate::{LinkId, SessionId};
use hopline_wire::{AmqpError, Symbol, WireError};

/// What ends because of a mistake.
#[derive(Debug)]
pub(crate) enum Fault {
    Link(LinkId, AmqpError),
    Session(SessionId, AmqpError),
    Connection(AmqpError),
}

impl Fault {
    pub(crate) fn link(link: LinkId, condition: Symbol, text: impl Into<String>) -> Self {
        Self::Link(link, AmqpError::new(condition, text))
    }

    pub(crate) fn session(session: SessionId, condition: Symbol, text: impl Into<String>) -> Self {
        Self::Session(session, AmqpError::new(condition, text))
    }

    pub(crate) fn connection(condition: Symbol, text: impl Into<String>) -> Self {
        Self::Connection(AmqpError::new(condition, text))
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self::Connection(AmqpError::from(&error))
    }
}

/// Why a command can't be carried out. Each is a mistake of the caller, or of timing: the peer may
/// have ended what the command is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The connection is not open, or no more.
    #[error("the connection is not open: wait for Event::Opened, or connect again")]
    NotOpen,
    /// The session is gone.
    #[error("the session has ended: begin another one")]
    NoSession,
    /// The link is gone.
    #[error("the link is detached: attach it again")]
    NoLink,
    /// The command belongs to the other role.
    #[error("the link has the other role: senders send, receivers grant credit")]
    Role,
    /// No credit, a closed window or a full outbox.
    #[error("the link can't send now: ask send_block first and wait for what it names")]
    Blocked,
    /// The peer's or our own limit on sessions or links.
    #[error("no channel or handle is free: end a session or detach a link first")]
    Full,
    /// The message is larger than the peer takes.
    #[error("the message exceeds the peer's max-message-size: send a smaller one")]
    MessageSize,
    /// What is to be said does not fit in a frame of the peer.
    #[error("it exceeds the peer's max-frame-size: use shorter names, texts and fewer properties")]
    FrameSize,
}
