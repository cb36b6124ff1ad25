//! Network devices whose other end is a program.
#![allow(unsafe_code, reason = "neither TUNSETIFF nor AsyncFd has a safe wrapper")]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::{io, mem};
use tokio::io::unix::AsyncFd;

/// Makes a device for IP packets without a header of its own; it goes with the file.
pub(crate) fn open_tun(name: &str) -> io::Result<AsyncFd<File>> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = file.open("/dev/net/tun")?;
    // SAFETY: all octets of an ifreq may be zero.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // Its last octet stays zero.
    let room = request.ifr_name.len() - 1;
    for (octet, letter) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *octet = libc::c_char::from_ne_bytes([letter]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the file is open, and the kernel reads and writes one ifreq, which outlives the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a File names the same open descriptor for as long as it lives, and it lives in the
    // AsyncFd.
    let device = unsafe { AsyncFd::register(file) };
    Ok(device?)
}
