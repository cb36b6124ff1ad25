//! Reads that bring the kernel's stamp of their arrival.
#![allow(unsafe_code, reason = "no safe wrapper knows SO_TIMESTAMPING in full")]

use super::control::{Control, nanoseconds};
use bytes::{BufMut, BytesMut};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Appends what has arrived to `buf`, at most `max` octets; tells how many, and when the newest
/// segment of them arrived (ns of realtime), if the kernel says so.
pub(crate) fn receive(
    socket: &impl AsFd,
    buf: &mut BytesMut,
    max: usize,
) -> io::Result<(usize, Option<i64>)> {
    let room = buf.chunk_mut();
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len().min(max) };
    let mut control = Control::default();
    // SAFETY: `msghdr` is a C structure of integers and pointers, for which zeroes are valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    control.lend(&mut message);
    // SAFETY: the pointers in `message` are to `part`, to the unused room of `buf` and to
    // `control`, all of which outlive the call, with their true sizes.
    let n = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written the first `n` octets of the room, and `n` is not above it.
    unsafe { buf.advance_mut(n) };
    let arrived = control.messages(&message).find_map(|it| it.timestamp());
    Ok((n, arrived.and_then(nanoseconds)))
}
