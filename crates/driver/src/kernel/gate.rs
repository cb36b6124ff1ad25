//! Waiting until a socket can be written to whose error queue is in use.
#![allow(unsafe_code, reason = "AsyncFd has no safe constructor")]

use rustix::event::{Timespec, epoll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::unix::AsyncFd;

/// An epoll instance of its own for one socket.
///
/// A stamp in the error queue raises EPOLLERR. The runtime takes that beside EPOLLOUT for the end
/// of writing, for good: whoever waits for room then never waits again, and spins. Here an error
/// wakes for as long as it is there, and not longer.
#[derive(Debug)]
pub(crate) struct Gate {
    epoll: AsyncFd<OwnedFd>,
    expects_stamps: AtomicBool,
}

/// The socket is in the instance only while somebody waits: each stamp would cost two wake-ups
/// otherwise, not one.
struct Watched<'a, S: AsFd>(&'a Gate, &'a S);

impl Gate {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd names the same open descriptor for as long as it lives, and it lives
        // in the AsyncFd.
        let epoll = unsafe { AsyncFd::register(epoll) };
        Ok(Self { epoll: epoll?, expects_stamps: AtomicBool::new(false) })
    }

    /// Whether stamps are still to come: nobody is woken by them, so look again before long.
    pub(crate) fn expects_stamps(&self) -> bool {
        self.expects_stamps.load(Ordering::Relaxed)
    }

    /// Says so.
    pub(crate) fn expect_stamps(&self, expected: bool) {
        self.expects_stamps.store(expected, Ordering::Relaxed);
    }

    /// Waits until the socket can be written to, or has something in its error queue to be taken.
    ///
    /// Cancel-safe.
    pub(crate) async fn opened(&self, socket: &impl AsFd) -> io::Result<()> {
        let watched = Watched::new(self, socket)?;
        loop {
            let mut guard = self.epoll.readable().await?;
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut events = [MaybeUninit::uninit(); 1];
            let (ready, _) = epoll::wait(self.epoll.get_ref(), &mut events, Some(&at_once))?;
            if !ready.is_empty() {
                drop(watched);
                return Ok(());
            }
            guard.clear_ready();
        }
    }
}

impl<'a, S: AsFd> Watched<'a, S> {
    fn new(gate: &'a Gate, socket: &'a S) -> io::Result<Self> {
        let room = epoll::EventFlags::OUT;
        epoll::add(gate.epoll.get_ref(), socket, epoll::EventData::new_u64(0), room)?;
        Ok(Self(gate, socket))
    }
}

impl<S: AsFd> Drop for Watched<'_, S> {
    fn drop(&mut self) {
        let _ = epoll::delete(self.0.epoll.get_ref(), self.1);
    }
}
