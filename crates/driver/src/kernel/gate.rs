//! Waiting until a socket can be written to whose error queue is in use.
#![allow(unsafe_code, reason = "AsyncFd has no safe constructor")]

use rustix::event::{Timespec, epoll};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// How soon stamps that are to come are looked for, and how seldom at the most.
const LOOK_MS: u32 = 10;
const LOOK_MAX_MS: u32 = 1_000;

/// An epoll instance of its own for one socket.
///
/// A stamp in the error queue raises EPOLLERR. The runtime takes that beside EPOLLOUT for the end
/// of writing, for good: whoever waits for room then never waits again, and spins. Here an error
/// wakes for as long as it is there, and not longer.
#[derive(Debug)]
pub(crate) struct Gate {
    epoll: AsyncFd<OwnedFd>,
    look_ms: AtomicU32,
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
        Ok(Self { epoll: epoll?, look_ms: AtomicU32::new(0) })
    }

    /// How soon to look again for stamps that are still to come, if any are: being woken by each of
    /// them would cost more than they do.
    pub(crate) fn look_in(&self) -> Option<Duration> {
        let ms = self.look_ms.load(Ordering::Relaxed);
        (ms > 0).then(|| Duration::from_millis(ms.into()))
    }

    /// It was looked for stamps: whether some had come, and whether more are to come. As long as
    /// none come, as with a peer whose window is closed, it is looked for them less and less often.
    pub(crate) fn looked(&self, came: bool, expected: bool) {
        let before = self.look_ms.load(Ordering::Relaxed);
        let ms = match (expected, came) {
            (false, _) => 0,
            (true, true) => LOOK_MS,
            (true, false) => before.saturating_mul(2).clamp(LOOK_MS, LOOK_MAX_MS),
        };
        self.look_ms.store(ms, Ordering::Relaxed);
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
