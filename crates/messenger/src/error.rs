use hopline_driver::engine::wire::AmqpError;

/// Why one call could not be carried out. Nothing is kept from one call to the next.
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
    /// The peer can't be reached.
    #[error("{peer} can't be reached: {reason}")]
    Connect {
        /// Host and port.
        peer: String,
        /// What came of it.
        reason: String,
    },
    /// The peer ended the connection, the session or the link.
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
    #[error("not done within the timeout: raise it in the builder, or look at the peer's credit")]
    Timeout,
    /// The tracker stands for nothing that is known any more.
    #[error("the tracker is unknown: its message is settled, or fell out of the window")]
    Tracker,
    /// The messenger was stopped.
    #[error("the messenger is stopped: make another one")]
    Stopped,
    /// A message that can't be understood.
    #[error("the message can't be decoded: {0}")]
    Message(String),
}
