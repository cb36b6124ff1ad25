//! TCP_INFO, and how much a socket has not sent.
#![allow(unsafe_code, reason = "neither TCP_INFO in full nor SIOCOUTQNSD has a safe wrapper")]

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};

/// SIOCOUTQNSD (linux/sockios.h), which libc lacks.
const SIOCOUTQNSD: libc::c_ulong = 0x894b;

/// `struct tcp_info` of linux/tcp.h up to what Linux 5.4 knows; libc's ends long before. Kernels
/// fill in as much of it as they know.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct RawTcpInfo {
    pub(crate) octets: [u8; 8],
    pub(crate) rto_us: u32,
    pub(crate) ato_us: u32,
    pub(crate) snd_mss: u32,
    pub(crate) rcv_mss: u32,
    pub(crate) unacked: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    pub(crate) fackets: u32,
    pub(crate) last_times_ms: [u32; 4],
    pub(crate) pmtu: u32,
    pub(crate) rcv_ssthresh: u32,
    pub(crate) rtt_us: u32,
    pub(crate) rttvar_us: u32,
    pub(crate) snd_ssthresh: u32,
    pub(crate) snd_cwnd: u32,
    pub(crate) advmss: u32,
    pub(crate) reordering: u32,
    pub(crate) rcv_rtt_us: u32,
    pub(crate) rcv_space: u32,
    pub(crate) total_retrans: u32,
    pub(crate) pacing_rate: u64,
    pub(crate) max_pacing_rate: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) bytes_received: u64,
    pub(crate) segs_out: u32,
    pub(crate) segs_in: u32,
    pub(crate) notsent_bytes: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) data_segs_out: u32,
    pub(crate) delivery_rate: u64,
    pub(crate) busy_us: u64,
    pub(crate) rwnd_limited_us: u64,
    pub(crate) sndbuf_limited_us: u64,
    pub(crate) delivered: u32,
    pub(crate) delivered_ce: u32,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_retrans: u64,
    pub(crate) dsack_dups: u32,
    pub(crate) reord_seen: u32,
    pub(crate) rcv_ooopack: u32,
    pub(crate) snd_wnd: u32,
}

/// Up to where older kernels fill it in: Linux 3.x, 4.10 and 5.4.
pub(crate) const UP_TO_RETRANS: usize = offset_of!(RawTcpInfo, pacing_rate);
pub(crate) const UP_TO_LIMITS: usize = offset_of!(RawTcpInfo, delivered);
pub(crate) const UP_TO_WINDOW: usize = size_of::<RawTcpInfo>();

/// TCP_INFO of a socket, and how many octets of it the kernel has filled in; the rest is zero.
pub(crate) fn tcp_info(socket: &impl AsFd) -> io::Result<(RawTcpInfo, usize)> {
    let mut info = RawTcpInfo::default();
    let mut len = size_of::<RawTcpInfo>() as libc::socklen_t;
    // SAFETY: the pointers are to a live structure of integers and to its size, which the kernel
    // does not exceed; any octets that it writes make valid integers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok((info, len as usize)) }
}

/// Octets that a TCP socket was given and has not sent yet.
pub(crate) fn unsent_octets(socket: &impl AsFd) -> io::Result<u32> {
    let mut octets: libc::c_int = 0;
    // SAFETY: this request writes one `int` to the pointer, which is to one of our own.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCOUTQNSD, &raw mut octets) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(octets.unsigned_abs()) }
}
