use std::io::{self, IoSlice};

use bytes::{BufMut, BytesMut};
use tokio::net::TcpStream;

use crate::reading::read_once;
#[cfg(feature = "tls")]
use crate::{ClientTls, Error, ServerTls, TlsSession};

/// How octets travel over a connection's socket.
///
/// Holds no socket of its own: the caller owns it, waits for its readiness and passes it to each
/// call. No call blocks; one that can't go on says [`WouldBlock`](io::ErrorKind::WouldBlock), and
/// only when the socket can't, so waiting for the socket's readiness is always right.
#[derive(Debug)]
pub enum Transport {
    /// As they are.
    Plain,
    /// Within TLS.
    #[cfg(feature = "tls")]
    Tls(Box<TlsSession>),
}

impl Transport {
    /// TLS as the client of `host`, whose certificate must be for this name or IP address.
    #[cfg(feature = "tls")]
    pub fn client(tls: &ClientTls, host: &str) -> Result<Self, Error> {
        tls.session(host).map(|session| Transport::Tls(Box::new(session)))
    }

    /// TLS as the server.
    #[cfg(feature = "tls")]
    pub fn server(tls: &ServerTls) -> Result<Self, Error> {
        tls.session().map(|session| Transport::Tls(Box::new(session)))
    }

    /// Performs the TLS handshake; to be awaited before anything else. A plain transport has
    /// none. The caller sets the time limit. Not to be resumed after an error.
    pub async fn handshake(&mut self, socket: &TcpStream) -> io::Result<()> {
        let _ = socket;
        match self {
            Transport::Plain => Ok(()),
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.handshake(socket).await,
        }
    }

    /// Appends what has arrived to `buf`, at most `max` octets (which must not be 0), and tells
    /// how many; 0: the peer has ended its side.
    ///
    /// As they are, octets come into the room that `buf` has; those of TLS make themselves room.
    /// A peer that ends its side of TLS without saying so there is an
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof): harmless once AMQP is closed.
    pub fn try_read(
        &mut self,
        socket: &TcpStream,
        buf: &mut BytesMut,
        max: usize,
    ) -> io::Result<usize> {
        match self {
            Transport::Plain => {
                read_once(socket, buf, max, |buf| socket.try_read_buf(&mut buf.limit(max)))
            }
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.try_read(socket, buf, max),
        }
    }

    /// Sends from the front of `slices` (which must not be empty) and tells how many octets were
    /// taken.
    ///
    /// Taken is not sent: see [`wants_write`](Self::wants_write).
    pub fn try_write_vectored(
        &mut self,
        socket: &TcpStream,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        match self {
            Transport::Plain => socket.try_write_vectored(slices),
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.try_write_vectored(socket, slices),
        }
    }

    /// Whether octets that were taken wait here, at most 64 KiB of them:
    /// [`try_flush`](Self::try_flush) when the socket can be written to. Never with a plain
    /// transport.
    pub fn wants_write(&self) -> bool {
        match self {
            Transport::Plain => false,
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.wants_write(),
        }
    }

    /// Gives the socket what waits here, until nothing is left.
    pub fn try_flush(&mut self, socket: &TcpStream) -> io::Result<()> {
        let _ = socket;
        match self {
            Transport::Plain => Ok(()),
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.try_flush(socket),
        }
    }

    /// Ends our side: with TLS queues its close_notify alert, to be flushed before the socket is
    /// shut down. The peer may still send.
    pub fn end(&mut self) {
        match self {
            Transport::Plain => {}
            #[cfg(feature = "tls")]
            Transport::Tls(session) => session.end(),
        }
    }
}
