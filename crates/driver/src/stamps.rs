//! The kernel's stamps of one connection, where they are wanted.

#[cfg(target_os = "linux")]
pub(crate) use linux::Stamps;
#[cfg(not(target_os = "linux"))]
pub(crate) use none::Stamps;

#[cfg(target_os = "linux")]
mod linux {
    use crate::Clock;
    use crate::kernel::{RECEIVE, receive, set_timestamping};
    use crate::reading::read_once;
    use crate::wall::Wall;
    use bytes::BytesMut;
    use hopline_timeline::Instant;
    use std::io;
    use tokio::net::TcpStream;

    /// What the kernel tells of one socket.
    #[derive(Debug)]
    pub(crate) struct Stamps {
        wall: Wall,
        /// All that had come before it was read.
        drained: Instant,
        arrived: Option<Instant>,
    }

    impl Stamps {
        /// Asks for them.
        pub(crate) fn enable(socket: &TcpStream) -> io::Result<Self> {
            set_timestamping(socket, RECEIVE)?;
            Ok(Self { wall: Wall::new(), drained: Clock.now(), arrived: None })
        }

        /// When the newest segment arrived that the last read took.
        pub(crate) const fn arrived(&self) -> Option<Instant> {
            self.arrived
        }

        /// As [`Transport::try_read`](crate::Transport::try_read).
        pub(crate) fn try_read(
            &mut self,
            socket: &TcpStream,
            buf: &mut BytesMut,
            max: usize,
        ) -> io::Result<usize> {
            let drained = std::mem::replace(&mut self.drained, Clock.now());
            let mut wall_ns = None;
            let n = read_once(socket, buf, max, |buf| {
                let (n, arrived) = receive(socket, buf, max)?;
                wall_ns = arrived;
                Ok(n)
            })?;
            self.arrived = wall_ns.and_then(|wall_ns| {
                let offsets = self.wall.refresh();
                offsets.convert(wall_ns, drained, Clock.now())
            });
            Ok(n)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use bytes::BytesMut;
    use hopline_timeline::Instant;
    use std::io;
    use tokio::net::TcpStream;

    /// There are none.
    #[derive(Debug)]
    pub(crate) enum Stamps {}

    impl Stamps {
        pub(crate) fn enable(_socket: &TcpStream) -> io::Result<Self> {
            Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has them"))
        }

        pub(crate) const fn arrived(&self) -> Option<Instant> {
            match *self {}
        }

        pub(crate) fn try_read(
            &mut self,
            _socket: &TcpStream,
            _buf: &mut BytesMut,
            _max: usize,
        ) -> io::Result<usize> {
            match *self {}
        }
    }
}
