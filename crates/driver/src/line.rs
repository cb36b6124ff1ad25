use crate::Transport;
use bytes::BytesMut;
use std::io::{self, IoSlice};
use std::sync::Arc;
use tokio::net::TcpStream;

/// What the octets of an [`Io`](crate::Io) go over. Without the feature `simulation` there is only
/// the one, so that asking which costs nothing.
#[derive(Debug)]
pub(crate) enum Line {
    Socket(Arc<TcpStream>, Transport),
    #[cfg(feature = "simulation")]
    Memory(crate::simulation::Pipe),
}

impl Line {
    /// The socket, unless the connection is in memory.
    pub(crate) const fn socket(&self) -> Option<&Arc<TcpStream>> {
        match self {
            Line::Socket(socket, _) => Some(socket),
            #[cfg(feature = "simulation")]
            Line::Memory(_) => None,
        }
    }

    /// The socket, if the octets pass over it as they are.
    pub(crate) const fn plain_socket(&self) -> Option<&Arc<TcpStream>> {
        match self {
            Line::Socket(socket, Transport::Plain) => Some(socket),
            #[cfg(any(feature = "tls", feature = "simulation"))]
            _ => None,
        }
    }

    pub(crate) fn try_read(&mut self, buf: &mut BytesMut, max: usize) -> io::Result<usize> {
        match self {
            Line::Socket(socket, transport) => transport.try_read(socket, buf, max),
            #[cfg(feature = "simulation")]
            Line::Memory(pipe) => pipe.try_read(buf, max),
        }
    }

    pub(crate) fn try_write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Line::Socket(socket, transport) => transport.try_write_vectored(socket, slices),
            #[cfg(feature = "simulation")]
            Line::Memory(pipe) => pipe.try_write(slices),
        }
    }

    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match self {
            Line::Socket(socket, transport) => transport.try_flush(socket),
            #[cfg(feature = "simulation")]
            Line::Memory(_) => Ok(()),
        }
    }
}
