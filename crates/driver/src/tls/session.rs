use std::fmt;
use std::io::{self, BufRead, IoSlice, Write};

use bytes::{Buf, BufMut, BytesMut};
use rustls::Connection;
use tokio::net::TcpStream;

/// One connection's TLS, fed from and drained into a socket that the caller owns.
pub struct TlsSession {
    connection: Connection,
    /// Read from the socket, not yet decrypted. The library would read 4 KiB at a time.
    arrived: BytesMut,
}

impl TlsSession {
    /// Octets that a session takes beyond what the socket takes, before encryption.
    pub const PENDING_LIMIT: usize = 64 * 1024;

    /// Octets that a session reads from the socket at once: two records of the greatest size.
    pub const ARRIVED_LIMIT: usize = 32 * 1024;

    pub(super) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(Self::PENDING_LIMIT));
        TlsSession { connection, arrived: BytesMut::new() }
    }

    /// Reads only while the handshake lasts: the peer's first octets after it must still raise
    /// the socket's readiness when the caller waits for it.
    pub(crate) async fn handshake(&mut self, socket: &TcpStream) -> io::Result<()> {
        loop {
            match self.try_flush(socket) {
                Err(error) if is_would_block(&error) => {
                    socket.writable().await?;
                    continue;
                }
                flushed => flushed?,
            }
            if !self.connection.is_handshaking() {
                return Ok(());
            }
            match self.receive(socket) {
                Err(error) if is_would_block(&error) => socket.readable().await?,
                received => received?,
            }
        }
    }

    /// Says `WouldBlock` only after the socket did, with nothing decrypted or undecrypted left.
    pub(crate) fn try_read(
        &mut self,
        socket: &TcpStream,
        buf: &mut BytesMut,
        max: usize,
    ) -> io::Result<usize> {
        let mut read = 0;
        loop {
            match self.connection.reader().fill_buf() {
                Ok([]) => return Ok(read),
                Ok(plain) => {
                    let taken = plain.get(..max - read).unwrap_or(plain);
                    buf.extend_from_slice(taken);
                    let taken = taken.len();
                    self.connection.reader().consume(taken);
                    read += taken;
                }
                Err(_) if read > 0 && self.arrived.is_empty() => return Ok(read),
                Err(error) if is_would_block(&error) => self.receive(socket)?,
                Err(error) => return Err(error),
            }
            if read == max {
                return Ok(read);
            }
        }
    }

    /// Takes at most [`PENDING_LIMIT`](Self::PENDING_LIMIT) octets, and none while others wait.
    pub(crate) fn try_write_vectored(
        &mut self,
        socket: &TcpStream,
        slices: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.try_flush(socket)?;
        let taken = self.connection.writer().write_vectored(slices)?;
        match self.try_flush(socket) {
            Err(error) if !is_would_block(&error) => Err(error),
            _ => Ok(taken),
        }
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn try_flush(&mut self, socket: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut SocketWriter(socket))?;
        }
        Ok(())
    }

    pub(crate) fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Decrypts what has arrived, after a read from the socket if nothing has; then sends what
    /// that calls for, such as the next message of the handshake.
    fn receive(&mut self, socket: &TcpStream) -> io::Result<()> {
        if self.arrived.is_empty() {
            self.arrived.reserve(Self::ARRIVED_LIMIT);
            socket.try_read_buf(&mut (&mut self.arrived).limit(Self::ARRIVED_LIMIT))?;
        }
        // Zero octets tell the library of the socket's end. After close_notify it takes no more.
        if self.connection.read_tls(&mut (&mut self.arrived).reader())? == 0 {
            self.arrived.clear();
            if self.connection.is_handshaking() {
                let text = "the peer closed the connection during the TLS handshake";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
        }
        let processed = self.connection.process_new_packets();
        match (self.try_flush(socket), processed) {
            // The peer is told by an alert if the socket takes it; our own error says more.
            (_, Err(error)) => Err(refusal(error)),
            (Err(error), Ok(_)) if !is_would_block(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsSession({:?})", self.connection.protocol_version())
    }
}

/// A TLS failure with what to do about it.
fn refusal(error: rustls::Error) -> io::Error {
    let remedy = match &error {
        rustls::Error::InvalidCertificate(_) => {
            "name its CA's file, and connect by a name that the certificate is for"
        }
        rustls::Error::InvalidMessage(_) => "does the peer speak TLS on this port?",
        rustls::Error::AlertReceived(_) => "the peer's log says why",
        _ => "the peer broke the protocol or offers nothing in common",
    };
    io::Error::new(io::ErrorKind::InvalidData, format!("TLS failed: {error}; {remedy}"))
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// A nonblocking socket as the library wants it.
struct SocketWriter<'a>(&'a TcpStream);

impl Write for SocketWriter<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.try_write(octets)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
