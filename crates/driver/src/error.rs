use std::io;
use std::net::SocketAddr;

/// Why a connection, a listener or what they need could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A URL that can't be understood. The text holds nothing of the URL: there may be a
    /// password in it.
    #[error("the URL's {part} {problem}; write amqp[s]://[user[:password]@]host[:port][/address]")]
    Url {
        /// Which part of the URL.
        part: &'static str,
        /// What is wrong with it, and how to mend it.
        problem: &'static str,
    },
    /// A host name without an address.
    #[error("no address is known for {target}; correct the name, or give HOST:PORT by number")]
    Resolve {
        /// The host and port asked for.
        target: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The port to listen on is taken.
    #[error(
        "cannot listen on {addr}: another process has this port; stop it (`ss -ltnp` names it) \
         or choose another port"
    )]
    AddressInUse {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The address can't be listened on for another reason.
    #[error("cannot listen on {addr}: {remedy}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What to do about it.
        remedy: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// None of the host's addresses accepted a connection.
    #[error("cannot connect to {target} ({attempts}); {remedy}")]
    Connect {
        /// The host and port asked for.
        target: String,
        /// Each address tried, and what came of it.
        attempts: String,
        /// What to do about the last of them.
        remedy: &'static str,
    },
    /// The system refused a socket option.
    #[error("cannot set the socket option {option} to {value}; correct or leave out the setting")]
    Option {
        /// The option by its name in the system's manual.
        option: &'static str,
        /// The value asked for.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// Certificates, keys or names that TLS can't be set up with.
    #[cfg(feature = "tls")]
    #[error("cannot set up TLS: {subject} {problem}")]
    Tls {
        /// The file or name at fault.
        subject: String,
        /// What is wrong with it, and how to mend it.
        problem: &'static str,
        /// The cause, where there is one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
