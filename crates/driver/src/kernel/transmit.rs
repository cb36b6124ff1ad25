//! Writes that ask the kernel when their last octet leaves, and what it tells of them later.
#![allow(unsafe_code, reason = "no safe wrapper knows SO_TIMESTAMPING in full")]

use super::control::{Control, nanoseconds};
use std::array;
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Octets that an IoSlice has for the kernel: it is an iovec (std promises so).
const _: () = assert!(size_of::<IoSlice<'_>>() == size_of::<libc::iovec>());

/// What a socket needs once, so that a write can ask: to tell by octet offsets, without a copy of
/// the octets. [`OCTETS`] makes offsets count from here on; older kernels (before 6.2) do so only
/// while nothing is unacknowledged, as on a new connection.
pub(crate) const SENT: u32 = libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
pub(crate) const OCTETS: u32 = libc::SOF_TIMESTAMPING_OPT_ID_TCP;

/// What a write asks for.
const ASKED: u32 = libc::SOF_TIMESTAMPING_TX_SCHED
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_ACK;

/// The socket does not block by itself.
const FLAGS: libc::c_int = libc::MSG_NOSIGNAL;

/// Messages of the error queue that one call takes.
const BATCH: usize = 8;

/// Which of its three stamps the kernel tells (SCM_TSTAMP_* of linux/errqueue.h).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sched,
    Send,
    Ack,
}

/// A stamp of what was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentStamp {
    pub(crate) kind: Kind,
    /// The offset of the last octet of the write that asked, modulo 2^32.
    pub(crate) offset: u32,
    /// Nanoseconds of realtime.
    pub(crate) wall_ns: i64,
}

#[repr(C)]
struct Ask {
    head: libc::cmsghdr,
    flags: u32,
}

/// Writes; if it `asks`, the kernel stamps the last octet that it takes.
pub(crate) fn send(socket: &impl AsFd, slices: &[IoSlice<'_>], asks: bool) -> io::Result<usize> {
    // SAFETY: `Ask` is a C structure of integers, for which zeroes are valid.
    let mut ask: Ask = unsafe { mem::zeroed() };
    ask.head.cmsg_len = (mem::offset_of!(Ask, flags) + size_of::<u32>()) as _;
    ask.head.cmsg_level = libc::SOL_SOCKET;
    ask.head.cmsg_type = libc::SO_TIMESTAMPING;
    ask.flags = ASKED;
    // SAFETY: as above.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len() as _;
    if asks {
        message.msg_control = (&raw mut ask).cast();
        message.msg_controllen = size_of::<Ask>() as _;
    }
    // SAFETY: the pointers in `message` are to `slices`, which are iovecs that the kernel only
    // reads from, and to `ask`; both outlive the call.
    let n = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, FLAGS) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Takes some stamps from the socket's error queue and tells whether there may be more. Never
/// blocks.
pub(crate) fn take_sent(socket: &impl AsFd, mut take: impl FnMut(SentStamp)) -> bool {
    let mut controls: [Control; BATCH] = array::from_fn(|_| Control::default());
    // SAFETY: `mmsghdr` is a C structure of integers and pointers, for which zeroes are valid.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    for (message, control) in messages.iter_mut().zip(&mut controls) {
        control.lend(&mut message.msg_hdr);
    }
    // SAFETY: the pointers in `messages` are to `controls`, which outlive the call, with their
    // true sizes; there are as many messages as told, and no time limit.
    let n = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            messages.as_mut_ptr(),
            BATCH as _,
            (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _,
            std::ptr::null_mut(),
        )
    };
    let n = usize::try_from(n).unwrap_or(0);
    for (message, control) in messages.iter().zip(&controls).take(n) {
        let (mut wall, mut error) = (None, None);
        for part in control.messages(&message.msg_hdr) {
            wall = wall.or_else(|| part.timestamp());
            error = error.or_else(|| part.extended_error());
        }
        if let (Some(wall_ns), Some(error)) = (wall.and_then(nanoseconds), error)
            && let Some(kind) = kind(&error)
        {
            take(SentStamp { kind, offset: error.ee_data, wall_ns });
        }
    }
    n == BATCH
}

fn kind(error: &libc::sock_extended_err) -> Option<Kind> {
    if error.ee_origin != libc::SO_EE_ORIGIN_TIMESTAMPING {
        return None;
    }
    match error.ee_info {
        0 => Some(Kind::Send),
        1 => Some(Kind::Sched),
        2 => Some(Kind::Ack),
        _ => None,
    }
}
