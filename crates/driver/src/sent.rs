//! What became of messages after they were given to the kernel, for the side records.

#[cfg(target_os = "linux")]
pub(crate) use linux::{Gate, Sent};
#[cfg(not(target_os = "linux"))]
pub(crate) use none::{Gate, Sent};

#[cfg(target_os = "linux")]
mod linux {
    use crate::engine::Outbox;
    use crate::fronts::Fronts;
    pub(crate) use crate::kernel::Gate;
    use crate::kernel::{OCTETS, RECEIVE, SENT, SentStamp, send, set_timestamping, take_sent};
    use crate::wall::Wall;
    use crate::{Clock, Held, SideRecords};
    use hopline_timeline::Instant;
    use hopline_timeline::record::ConnectionRecord;
    use std::io::{self, IoSlice};
    use std::net::SocketAddr;
    use std::sync::Arc;
    use tokio::net::TcpStream;

    /// The messages of one connection that are followed.
    #[derive(Debug)]
    pub(crate) struct Sent {
        side: SideRecords,
        /// While it can still be asked: a peer that has gone has no name.
        peer: Option<SocketAddr>,
        fronts: Fronts,
        stamps: Option<Stamps>,
        sampled: Instant,
    }

    /// The kernel is asked for stamps.
    #[derive(Debug)]
    struct Stamps {
        gate: Arc<Gate>,
        wall: Wall,
        /// All stamps of before were taken then.
        drained: Instant,
        taken: Vec<SentStamp>,
    }

    impl Sent {
        /// Without stamps: only what the kernel held back is told.
        pub(crate) fn held_only(side: SideRecords, socket: &TcpStream) -> Self {
            let peer = socket.peer_addr().ok();
            let (fronts, sampled) = (Fronts::default(), Clock.now());
            Self { side, peer, fronts, stamps: None, sampled }
        }

        /// With the kernel's stamps; nothing may have been written before.
        pub(crate) fn stamped(side: SideRecords, socket: &TcpStream) -> io::Result<Self> {
            let flags = RECEIVE | SENT;
            // Before Linux 6.2 the second flag is refused, and not needed where nothing is under
            // way.
            set_timestamping(socket, flags | OCTETS)
                .or_else(|_| set_timestamping(socket, flags))?;
            let stamps = Stamps {
                gate: Arc::new(Gate::new()?),
                wall: Wall::new(),
                drained: Clock.now(),
                taken: Vec::new(),
            };
            Ok(Self { stamps: Some(stamps), ..Self::held_only(side, socket) })
        }

        /// Where to wait for room in the socket; `None`: as ever.
        pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
            self.stamps.as_ref().map(|stamps| stamps.gate.clone())
        }

        /// Writes if stamps are asked for; `None`: write as ever.
        pub(crate) fn try_write(
            &self,
            socket: &TcpStream,
            slices: &[IoSlice<'_>],
            is_followed: bool,
        ) -> Option<io::Result<usize>> {
            // Not by way of the runtime, whose opinion of the socket an error queue spoils.
            self.stamps.as_ref().map(|_| send(socket, slices, is_followed))
        }

        /// After a flush: takes what left from the outbox, and what the kernel tells from the
        /// socket.
        pub(crate) fn flushed(
            &mut self,
            socket: &TcpStream,
            outbox: &mut Outbox,
            held: Option<Held>,
        ) {
            let mut lost = outbox.take_unfollowed();
            while let Some(departure) = outbox.next_departure() {
                lost += u64::from(!self.fronts.push(departure));
            }
            self.side.dropped(lost);
            if let Some(held) = held {
                let left = outbox.written().saturating_sub(held.octets.into());
                self.fronts.hold(left, held.reason);
            }
            match &mut self.stamps {
                None => self.tell_held(),
                Some(stamps) => {
                    let came = !self.fronts.is_empty() && stamps.drain(socket, &mut self.fronts);
                    while let Some(told) = self.fronts.next_acknowledged(self.side.node()) {
                        self.side.message(told);
                    }
                    stamps.gate.looked(came, !self.fronts.is_empty());
                }
            }
        }

        /// Takes what is in the socket's error queue.
        #[cfg(test)]
        pub(crate) fn drain(&mut self, socket: &TcpStream) {
            if let Some(stamps) = &mut self.stamps {
                stamps.drain(socket, &mut self.fronts);
            }
        }

        fn tell_held(&mut self) {
            while let Some(told) = self.fronts.next(self.side.node()) {
                if told.held.is_some() {
                    self.side.message(told);
                }
            }
        }

        /// Tells what is left to tell, and the connection's account.
        pub(crate) fn finish(
            mut self,
            socket: &TcpStream,
            account: impl FnOnce(&str) -> Option<ConnectionRecord>,
        ) {
            if let Some(stamps) = &mut self.stamps {
                stamps.drain(socket, &mut self.fronts);
            }
            while let Some(told) = self.fronts.next(self.side.node()) {
                self.side.message(told);
            }
            self.sample(Clock.now(), account);
        }

        /// When the account was told last, or following began.
        pub(crate) const fn sampled(&self) -> Instant {
            self.sampled
        }

        /// Tells the account of the connection so far.
        pub(crate) fn sample(
            &mut self,
            now: Instant,
            account: impl FnOnce(&str) -> Option<ConnectionRecord>,
        ) {
            self.sampled = now;
            if let Some(mut account) = account(self.side.node()) {
                if let Some(peer) = self.peer {
                    account.peer = peer.to_string();
                }
                self.side.connection(account);
            }
        }
    }

    impl Stamps {
        /// Takes all that is in the error queue; whether there was anything.
        fn drain(&mut self, socket: &TcpStream, fronts: &mut Fronts) -> bool {
            while take_sent(socket, |stamp| self.taken.push(stamp)) {}
            if self.taken.is_empty() {
                return false;
            }
            let offsets = self.wall.refresh();
            let now = Clock.now();
            let earliest = std::mem::replace(&mut self.drained, now);
            for SentStamp { kind, offset, wall_ns } in self.taken.drain(..) {
                if let Some(at) = offsets.convert(wall_ns, earliest, now) {
                    fronts.stamp(kind, offset, at);
                }
            }
            true
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use crate::engine::Outbox;
    use crate::{Clock, Held, SideRecords};
    use hopline_timeline::Instant;
    use hopline_timeline::record::ConnectionRecord;
    use std::io::{self, ErrorKind, IoSlice};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::net::TcpStream;

    /// There is none.
    #[derive(Debug)]
    pub(crate) enum Gate {}

    impl Gate {
        pub(crate) async fn opened(&self, _socket: &TcpStream) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn look_in(&self) -> Option<Duration> {
            match *self {}
        }
    }

    /// Only the account of the connection is told.
    #[derive(Debug)]
    pub(crate) struct Sent(SideRecords, Instant);

    impl Sent {
        pub(crate) fn held_only(side: SideRecords, _socket: &TcpStream) -> Self {
            Self(side, Clock.now())
        }

        pub(crate) fn stamped(_side: SideRecords, _socket: &TcpStream) -> io::Result<Self> {
            Err(io::Error::new(ErrorKind::Unsupported, "only Linux has them"))
        }

        pub(crate) fn gate(&self) -> Option<Arc<Gate>> {
            None
        }

        pub(crate) fn try_write(
            &self,
            _socket: &TcpStream,
            _slices: &[IoSlice<'_>],
            _is_followed: bool,
        ) -> Option<io::Result<usize>> {
            None
        }

        pub(crate) fn flushed(
            &mut self,
            _socket: &TcpStream,
            outbox: &mut Outbox,
            _held: Option<Held>,
        ) {
            while outbox.next_departure().is_some() {}
        }

        pub(crate) fn finish(
            mut self,
            _socket: &TcpStream,
            account: impl FnOnce(&str) -> Option<ConnectionRecord>,
        ) {
            self.sample(Clock.now(), account);
        }

        pub(crate) const fn sampled(&self) -> Instant {
            self.1
        }

        pub(crate) fn sample(
            &mut self,
            now: Instant,
            account: impl FnOnce(&str) -> Option<ConnectionRecord>,
        ) {
            self.1 = now;
            if let Some(account) = account(self.0.node()) {
                self.0.connection(account);
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::Sent;
    use crate::engine::{ClientSasl, Config, Connection};
    use crate::{Clock, Io, KernelTimestamps, Transport, Waiter, side_records};
    use rustix::time::{ClockId, clock_gettime};
    use std::io::{ErrorKind, IoSlice};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, Interest};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;
    use tokio::time::{Instant, sleep, timeout};

    async fn pair() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (Arc::new(near.unwrap()), far.unwrap().0)
    }

    /// A connection with stamps, of which the peer reads nothing and nothing more can be written.
    async fn blocked() -> (Io, Sent, TcpStream) {
        let (near, far) = pair().await;
        let engine = Connection::client(Config::default(), ClientSasl::Anonymous, Clock.now());
        let mut io = Io::new(engine, near.clone(), Transport::Plain);
        let (side, _reader) = side_records("n");
        io.use_kernel_timestamps(KernelTimestamps::ALL, Some(&side));
        let sent = Sent::stamped(side, &near).unwrap();
        fill(&sent, &near).await;
        (io, sent, far)
    }

    /// Writes, with stamps asked for, until a while has passed in which nothing could be.
    async fn fill(sent: &Sent, socket: &TcpStream) {
        let mut idle = 0;
        while idle < 10 {
            match sent.try_write(socket, &[IoSlice::new(&[7; 4096])], true).unwrap() {
                Ok(_) => idle = 0,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    idle += 1;
                    sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    fn cpu() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    }

    #[tokio::test]
    async fn who_waits_for_room_does_not_spin_while_stamps_wait_in_the_error_queue() {
        let (io, mut sent, mut far) = blocked().await;
        let (mut waiter, wake, socket) = (Waiter::of(&io), Notify::new(), io.socket().clone());
        let mut engine = Connection::client(Config::default(), ClientSasl::Anonymous, Clock.now());
        let (before, end) = (cpu(), Instant::now() + Duration::from_millis(400));
        let mut woken = 0;
        while timeout(
            end.saturating_duration_since(Instant::now()),
            waiter.ready(&socket, (true, true), None, &wake),
        )
        .await
        .is_ok()
        {
            woken += 1;
            sent.drain(&socket);
            sent.flushed(&socket, engine.outbox(), None);
        }
        assert!(woken < 100, "{woken} times");
        let spent = cpu() - before;
        assert!(spent < Duration::from_millis(100), "{spent:?}");
        // And it wakes as soon as there is room.
        let reading = tokio::spawn(async move {
            let mut scratch = vec![0; 65_536];
            while far.read(&mut scratch).await.is_ok_and(|n| n > 0) {}
        });
        let room = async {
            loop {
                waiter.ready(&socket, (false, true), None, &wake).await;
                sent.drain(&socket);
                match sent.try_write(&socket, &[IoSlice::new(&[7; 4096])], true).unwrap() {
                    Ok(_) => return,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
        };
        timeout(Duration::from_secs(10), room).await.expect("there is room");
        reading.abort();
    }

    /// Why there is a gate at all. Should this fail one day, it can go.
    #[tokio::test]
    async fn the_runtime_alone_would_spin() {
        let (io, mut sent, _far) = blocked().await;
        let socket = io.socket().clone();
        let mut woken = 0;
        let spin = async {
            while woken < 10_000 {
                let _ = socket.ready(Interest::WRITABLE).await;
                let _ = socket
                    .try_io(Interest::WRITABLE, || Err::<(), _>(ErrorKind::WouldBlock.into()));
                sent.drain(&socket);
                woken += 1;
                tokio::task::yield_now().await;
            }
        };
        assert!(timeout(Duration::from_secs(10), spin).await.is_ok(), "{woken} times");
    }
}
