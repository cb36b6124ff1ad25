//! A timer of the kernel.
#![allow(unsafe_code, reason = "AsyncFd has no safe constructor")]

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A timerfd, which goes off once each time it is set.
#[derive(Debug)]
pub(crate) struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an OwnedFd names the same open descriptor for as long as it lives, and it lives
        // in the AsyncFd.
        let fd = unsafe { AsyncFd::register(fd) };
        Ok(Self(fd?))
    }

    /// Waits that long; for more than zero, which would disarm it.
    pub(crate) async fn wait(&self, left: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)?;
        loop {
            let mut guard = self.0.readable().await?;
            match guard.try_io(|fd| Ok(rustix::io::read(fd, &mut [0_u8; 8])?)) {
                Ok(read) => return read.map(drop),
                // An earlier wait that was dropped left its readiness behind.
                Err(_) => continue,
            }
        }
    }
}
