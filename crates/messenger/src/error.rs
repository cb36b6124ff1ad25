use hopline_driver::engine::wire::AmqpError;

/// Why one call could not be carried out. Each call has its own errors.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is no URL, or has no node.
    #[error("the address {address:?} can't be used: {reason}")]
    Address {
        /// As it was given, without its password.
        address: String,
        /// What is wrong with it, and how to mend it.
        reason: String,
    },
    /// The outgoing store is full.
    #[error(
        "the store holds {messages} messages ({octets} octets), as many as it may: wait for \
         outcomes (Messenger::settled), or raise the limits of the builder"
    )]
    Full {
        /// Messages in it.
        messages: usize,
        /// Octets in it.
        octets: usize,
    },
    /// The peer can't be reached, or doesn't let us in.
    #[error("{peer} can't be reached: {reason}")]
    Connect {
        /// Host and port.
        peer: String,
        /// What came of it.
        reason: String,
    },
    /// The address can't be listened on.
    #[error("{reason}")]
    Listen {
        /// What came of it, and what to do.
        reason: String,
    },
    /// The peer ended the connection or the link.
    #[error("{peer} ended the {what}: {error}")]
    Peer {
        /// Host and port, or the address.
        peer: String,
        /// Connection or link.
        what: &'static str,
        /// What it said.
        error: AmqpError,
    },
    /// It took too long.
    #[error("not done within the timeout ({waiting}): look there, or raise it in the builder")]
    Timeout {
        /// What was waited for.
        waiting: String,
    },
    /// The tracker stands for nothing that can be settled.
    #[error("the message is settled already, or fell out of the window: settle each once")]
    Tracker,
    /// The message came by a link or connection that is gone.
    #[error("the message's link is gone: its sender will send it again if it cares")]
    LinkGone,
    /// There is no such subscription.
    #[error("there is no subscription to {address:?}: give the address as it was subscribed to")]
    NotSubscribed {
        /// As it was given.
        address: String,
    },
    /// The messenger was stopped.
    #[error("the messenger is stopped: make another one")]
    Stopped,
    /// A message that can't be understood.
    #[error("the message can't be decoded: {reason}; reject it")]
    Message {
        /// Where it breaks the standard.
        reason: String,
    },
}
