//! Waiting until a socket can be written to whose error queue is in use.
#![allow(unsafe_code, reason = "AsyncFd has no safe constructor")]

use rustix::event::{Timespec, epoll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// An epoll instance of its own for one socket.
///
/// A stamp in the error queue raises EPOLLERR. The runtime takes that beside EPOLLOUT for the end
/// of writing, for good: whoever waits for room then never waits again, and spins. Here an error
/// wakes for as long as it is there, and not longer.
#[derive(Debug)]
pub(crate) struct Gate(AsyncFd<OwnedFd>);

impl Gate {
    pub(crate) fn new(socket: &impl AsFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, epoll::EventData::new_u64(0), epoll::EventFlags::OUT)?;
        // SAFETY: an OwnedFd names the same open descriptor for as long as it lives, and it lives
        // in the AsyncFd.
        let epoll = unsafe { AsyncFd::register(epoll) };
        Ok(Self(epoll?))
    }

    /// Waits until the socket can be written to, or has something in its error queue to be taken.
    ///
    /// Cancel-safe.
    pub(crate) async fn opened(&self) -> io::Result<()> {
        loop {
            let mut guard = self.0.readable().await?;
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut events = [MaybeUninit::uninit(); 1];
            let (ready, _) = epoll::wait(self.0.get_ref(), &mut events, Some(&at_once))?;
            if !ready.is_empty() {
                return Ok(());
            }
            guard.clear_ready();
        }
    }
}
