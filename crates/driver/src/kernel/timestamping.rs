//! SO_TIMESTAMPING: which stamps a socket is to have.
#![allow(unsafe_code, reason = "no safe wrapper knows all of SO_TIMESTAMPING's flags")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// When segments arrived.
pub(crate) const RECEIVE: u32 =
    libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;

/// Sets the flags. Needs no privilege. On a listening socket [`RECEIVE`] holds for what it accepts.
pub(crate) fn set_timestamping(socket: &impl AsFd, flags: u32) -> io::Result<()> {
    // SAFETY: the pointer is to an integer of our own, of the size that is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
