//! Moves octets and time between sockets and the engine: the only crate of Hopline that opens a
//! socket or reads a clock.
//!
//! - Time: [`Clock`] is the engine's `now`, [`node`] says who stamps and on which clock; a
//!   [`Timer`] waits.
//! - Sockets: [`listen`] and [`connect`] open TCP connections with [`SocketOptions`];
//!   [`EffectiveOptions`] tells what the kernel made of them.
//! - [`Url`]: where to connect to or to listen, as a user writes it.
//! - [`Transport`]: octets over the socket, plain or through TLS.
//! - [`Tun`]: a network device, for paths that a program makes.
//! - [`held_back`] and [`tcp_record`]: what the kernel says of a socket.
//! - [`SideRecords`]: what is known of a message only when it has left.
//! - [`Io`]: a socket and its engine; [`Waiter`]: when to try it again.

mod clock;
#[cfg(feature = "tls")]
mod dial;
mod error;
#[cfg(target_os = "linux")]
mod fronts;
mod held;
mod io;
#[cfg(target_os = "linux")]
mod kernel;
mod kernel_timestamps;
mod line;
mod options;
mod reading;
mod reconnect;
mod sent;
mod side;
#[cfg(feature = "simulation")]
pub mod simulation;
mod socket;
mod spare;
mod stamps;
mod tcp;
mod timer;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod tun;
mod url;
mod waiter;
#[cfg(target_os = "linux")]
mod wall;

pub use clock::{Clock, clock_domain, node};
#[cfg(feature = "tls")]
pub use dial::{Refusal, chain, dial};
pub use error::Error;
pub use held::{Held, held_back};
pub use io::{Counters, Flush, Io, Read};
pub use kernel_timestamps::KernelTimestamps;
pub use options::{EffectiveOptions, SocketOptions};
pub use reconnect::Reconnect;
pub use side::{SideFile, SideReader, SideRecords, side_records};
pub use socket::{Listener, connect, listen};
pub use tcp::tcp_record;
pub use timer::Timer;
#[cfg(feature = "tls")]
pub use tls::{ClientTls, ServerTls, TlsSession};
/// A connected socket, as [`connect`] and [`Listener`] give it and [`Io`] takes it.
pub use tokio::net::TcpStream as Socket;
pub use transport::Transport;
pub use tun::Tun;
pub use url::Url;
pub use waiter::Waiter;

pub use hopline_engine as engine;
pub use hopline_timeline as timeline;
