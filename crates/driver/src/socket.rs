use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream, ToSocketAddrs, lookup_host};
use tokio::time::{Instant, sleep, timeout};

use crate::{EffectiveOptions, Error, SocketOptions};

/// How long a listener rests when the process is out of file descriptors or memory: accepting
/// again at once would fail again at once.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(200);

/// A listening TCP socket that gives its options to each connection it accepts.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    local: SocketAddr,
    options: SocketOptions,
}

/// Listens on `addr`, written HOST:PORT with an IPv6 address in brackets; port 0 takes any free
/// one. Of a name with several addresses the first that can be had is taken.
///
/// The options are set before the socket is bound: what a connection inherits, above all the
/// receive buffer that its window scale depends on, is then right from its first segment on.
///
/// Call it within a tokio runtime.
pub async fn listen(addr: &str, options: &SocketOptions) -> Result<Listener, Error> {
    let mut refused = None;
    for addr in resolve(addr, addr).await? {
        match listen_on(addr, options) {
            Ok((socket, local)) => {
                return Ok(Listener { socket, local, options: options.clone() });
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| no_address(addr)))
}

impl Listener {
    /// The address listened on, with the true port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The options that each accepted connection is given.
    pub const fn options(&self) -> &SocketOptions {
        &self.options
    }

    /// What the kernel made of the options on the listening socket.
    pub fn effective(&self) -> io::Result<EffectiveOptions> {
        EffectiveOptions::read(&self.socket)
    }

    /// The next connection and its peer's address.
    ///
    /// Never gives up: a connection that breaks before it is accepted is passed over, and while
    /// the process is out of file descriptors or memory it rests and tries again, with a warning.
    /// Cancel-safe: no connection is lost.
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => match self.options.apply(&stream) {
                    Ok(()) => return (stream, peer),
                    Err(error) => tracing::debug!(%peer, %error, "connection broke at once"),
                },
                Err(error) if is_exhausted(&error) => {
                    tracing::warn!(listener = %self.local, %error, "cannot accept connections; \
                        if too many files are open, raise the limit (ulimit -n)");
                    sleep(EXHAUSTED_PAUSE).await;
                }
                Err(error) => tracing::debug!(listener = %self.local, %error, "lost a connection"),
            }
        }
    }
}

/// Connects to the first of the host's addresses that answers.
///
/// `host` is a name or an IP address without brackets. `timeout` bounds the whole, look-up
/// included; each address gets an equal share of what is left, so that one that never answers
/// doesn't keep us from the others. The options are set before connecting.
///
/// Cancel-safe. Call it within a tokio runtime.
pub async fn connect(
    host: &str,
    port: u16,
    options: &SocketOptions,
    timeout: Duration,
) -> Result<TcpStream, Error> {
    let start = Instant::now();
    let target = host_port(host, port);
    let addrs = within(timeout, resolve((host, port), &target))
        .await
        .unwrap_or_else(|source| Err(Error::Resolve { target: target.clone(), source }))?;
    let mut failed = Failed::default();
    for (tried, &addr) in addrs.iter().enumerate() {
        let left = timeout.saturating_sub(start.elapsed());
        let share = left / u32::try_from(addrs.len() - tried).unwrap_or(u32::MAX);
        match within(share, connect_to(addr, options)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(Attempt::Options(error))) => return Err(error),
            Ok(Err(Attempt::System(error))) | Err(error) => failed.push(addr, &error),
        }
    }
    Err(failed.into_error(target))
}

/// HOST:PORT, an IPv6 address in brackets.
pub(crate) fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn listen_on(
    addr: SocketAddr,
    options: &SocketOptions,
) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| listen_error(addr, source);
    let socket = open(addr).map_err(failed)?;
    options.apply(&socket)?;
    // A restart need not wait until the last run's connections have left TIME_WAIT.
    socket.set_reuse_address(true).map_err(failed)?;
    if options.reuse_port {
        socket.set_reuse_port(true).map_err(failed)?;
    }
    socket.bind(&addr.into()).map_err(failed)?;
    socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX)).map_err(failed)?;
    let socket = TcpListener::from_std(socket.into()).map_err(failed)?;
    let local = socket.local_addr().map_err(failed)?;
    Ok((socket, local))
}

async fn connect_to(addr: SocketAddr, options: &SocketOptions) -> Result<TcpStream, Attempt> {
    let socket = open(addr)?;
    options.apply(&socket).map_err(Attempt::Options)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(addr).await?;
    // A port that nobody listens on may be given to ourselves, and TCP then connects to itself.
    if stream.local_addr()? == addr {
        return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
    }
    Ok(stream)
}

/// A setting that the system refuses is refused at every address; the rest may differ.
enum Attempt {
    Options(Error),
    System(io::Error),
}

impl From<io::Error> for Attempt {
    fn from(error: io::Error) -> Self {
        Attempt::System(error)
    }
}

fn open(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

async fn resolve(addr: impl ToSocketAddrs, target: &str) -> Result<Vec<SocketAddr>, Error> {
    let addrs = lookup_host(addr)
        .await
        .map_err(|source| Error::Resolve { target: target.to_owned(), source })?;
    let addrs: Vec<_> = addrs.collect();
    if addrs.is_empty() { Err(no_address(target)) } else { Ok(addrs) }
}

fn no_address(target: &str) -> Error {
    Error::Resolve { target: target.to_owned(), source: io::ErrorKind::NotFound.into() }
}

/// Time that ran out, as the system would tell it.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> io::Result<T> {
    timeout(limit, future).await.map_err(|_| io::ErrorKind::TimedOut.into())
}

/// The errors of accept(2) that say something of this process and not of one connection.
fn is_exhausted(error: &io::Error) -> bool {
    let per_connection = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionRefused,
        io::ErrorKind::Interrupted,
    ];
    !per_connection.contains(&error.kind())
}

fn listen_error(addr: SocketAddr, source: io::Error) -> Error {
    let remedy = match source.kind() {
        io::ErrorKind::AddrInUse => return Error::AddressInUse { addr, source },
        io::ErrorKind::AddrNotAvailable => {
            "this host has no such address; take one of its own, or 0.0.0.0 for all"
        }
        io::ErrorKind::PermissionDenied => "not permitted; choose a port from 1024 on",
        _ => "correct the address, or choose another",
    };
    Error::Listen { addr, remedy, source }
}

/// The addresses of a host that didn't answer.
#[derive(Default)]
struct Failed {
    attempts: String,
    last: Option<io::ErrorKind>,
}

impl Failed {
    fn push(&mut self, addr: SocketAddr, error: &io::Error) {
        let separator = if self.attempts.is_empty() { "" } else { ", " };
        // Writing into a string doesn't fail.
        let _ = write!(self.attempts, "{separator}{addr}: {error}");
        self.last = Some(error.kind());
    }

    fn into_error(self, target: String) -> Error {
        let remedy = match self.last {
            Some(io::ErrorKind::ConnectionRefused) => {
                "nothing listens there: start the broker, or correct the port"
            }
            Some(io::ErrorKind::TimedOut) => {
                "no answer: correct the address, look for a firewall, or allow more time"
            }
            _ => "correct the address, or see to the way there",
        };
        Error::Connect { target, attempts: self.attempts, remedy }
    }
}
