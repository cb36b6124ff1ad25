//! A network device whose other end is this program.

use std::io;

/// A TUN device: what the host sends to it is received here, and the other way round. IP packets
/// without anything before them. Linux only; needs root.
#[derive(Debug)]
pub struct Tun {
    #[cfg(target_os = "linux")]
    device: tokio::io::unix::AsyncFd<std::fs::File>,
}

impl Tun {
    /// Makes a device of that name (15 octets at most), which goes when this is dropped. It may be
    /// moved to another network namespace.
    ///
    /// # Errors
    /// The right is missing, the name is in use, or the system has no such devices.
    pub fn open(name: &str) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return Ok(Self { device: crate::kernel::open_tun(name)? });
        #[cfg(not(target_os = "linux"))]
        return Err(io::Error::new(io::ErrorKind::Unsupported, format!("no device {name}")));
    }

    /// Waits for a packet; how many octets of `buffer` it takes. Cancel-safe.
    ///
    /// # Errors
    /// The device is gone, or down.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        loop {
            use std::io::Read;
            let mut guard = self.device.readable().await?;
            match guard.try_io(|device| device.get_ref().read(buffer)) {
                Ok(read) => return read,
                Err(_) => continue,
            }
        }
        #[cfg(not(target_os = "linux"))]
        return std::future::pending::<io::Result<usize>>().await.map(|_| buffer.len());
    }

    /// Hands the host a packet.
    ///
    /// # Errors
    /// The host can't take it: it is lost.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use std::io::Write;
            // A packet is taken whole or not at all.
            let _octets = self.device.get_ref().write(packet)?;
        }
        let _ = packet;
        Ok(())
    }
}
