use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use hopline_timeline::record::SocketRecord;
use socket2::{SockRef, TcpKeepalive};

use crate::{Error, KernelTimestamps};

/// What to ask of the kernel for a TCP socket, listening, accepted or outbound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketOptions {
    /// TCP_NODELAY: send small segments at once instead of holding each until the one before is
    /// acknowledged (Nagle's algorithm), which costs up to 40 ms a message. Default: on.
    pub nodelay: bool,
    /// SO_SNDBUF in octets. Fixes the size that Linux otherwise adapts to the path, and is cut
    /// to `net.core.wmem_max`. Default: the kernel adapts.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF in octets, likewise (`net.core.rmem_max`). Default: the kernel adapts.
    pub receive_buffer: Option<usize>,
    /// TCP_NOTSENT_LOWAT in octets, Linux only: how much the kernel takes from us beyond what it
    /// has already sent. What waits above it waits where priorities and credit still count and
    /// its SEND stamp is still to come; `None` leaves it to `net.ipv4.tcp_notsent_lowat`.
    ///
    /// Default: [`DEFAULT_NOTSENT_LOWAT`](Self::DEFAULT_NOTSENT_LOWAT).
    pub notsent_lowat: Option<u32>,
    /// SO_KEEPALIVE: probe a silent peer after this long and as often, in whole seconds from 1
    /// to 32,767. AMQP's own idle timeout finds a dead peer sooner. Default: off.
    pub keepalive: Option<Duration>,
    /// TCP_USER_TIMEOUT in ms, Linux only: give a connection up when sent octets stay
    /// unacknowledged for this long. Default: the kernel's, about 15 minutes.
    pub user_timeout: Option<Duration>,
    /// Connections that may wait to be accepted on a listening socket; the kernel cuts it to
    /// `net.core.somaxconn`. Default: 1,024.
    pub backlog: u32,
    /// SO_REUSEPORT: several listeners share a port, the kernel spreads the connections.
    /// Default: off, so that a second broker on a port is an error.
    pub reuse_port: bool,
    /// Which instants the kernel is asked for; see
    /// [`Io::use_kernel_timestamps`](crate::Io::use_kernel_timestamps). Default: none.
    pub kernel_timestamps: KernelTimestamps,
}

impl SocketOptions {
    /// 16 KiB. Under backlog on a path of 10 Mbit/s the delay from send to read falls from 151 ms
    /// (p50, no limit) to 21 ms at equal throughput; 4 KiB gains another 13 ms there, but takes
    /// more and smaller writes.
    pub const DEFAULT_NOTSENT_LOWAT: u32 = 16 * 1024;

    /// Sets every option that is asked for, on Linux those of Linux too.
    pub(crate) fn apply(&self, socket: &impl AsFd) -> Result<(), Error> {
        let socket = SockRef::from(socket);
        set("TCP_NODELAY", self.nodelay, |on| socket.set_tcp_nodelay(on))?;
        if let Some(octets) = self.send_buffer {
            set("SO_SNDBUF", octets, |octets| socket.set_send_buffer_size(octets))?;
        }
        if let Some(octets) = self.receive_buffer {
            set("SO_RCVBUF", octets, |octets| socket.set_recv_buffer_size(octets))?;
        }
        if let Some(idle) = self.keepalive {
            let probes = TcpKeepalive::new().with_time(idle).with_interval(idle);
            set("SO_KEEPALIVE", Seconds(idle), |_| socket.set_tcp_keepalive(&probes))?;
        }
        self.apply_linux(&socket)
    }

    #[cfg(target_os = "linux")]
    fn apply_linux(&self, socket: &SockRef<'_>) -> Result<(), Error> {
        if let Some(octets) = self.notsent_lowat {
            set("TCP_NOTSENT_LOWAT", octets, |octets| socket.set_tcp_notsent_lowat(octets))?;
        }
        if let Some(limit) = self.user_timeout {
            set("TCP_USER_TIMEOUT", Seconds(limit), |_| socket.set_tcp_user_timeout(Some(limit)))?;
        }
        if self.kernel_timestamps != KernelTimestamps::Off {
            // Of a listener, so that what it accepts has stamps from the first segment on. A
            // failure shows again, and is told, when the connection is made use of.
            let _ = crate::kernel::set_timestamping(&**socket, crate::kernel::RECEIVE);
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn apply_linux(&self, _socket: &SockRef<'_>) -> Result<(), Error> {
        Ok(())
    }
}

impl Default for SocketOptions {
    fn default() -> Self {
        SocketOptions {
            nodelay: true,
            send_buffer: None,
            receive_buffer: None,
            notsent_lowat: Some(Self::DEFAULT_NOTSENT_LOWAT),
            keepalive: None,
            user_timeout: None,
            backlog: 1024,
            reuse_port: false,
            kernel_timestamps: KernelTimestamps::Off,
        }
    }
}

/// Names option and value where the system only says "invalid argument".
fn set<T: Copy + fmt::Display>(
    option: &'static str,
    value: T,
    set: impl FnOnce(T) -> io::Result<()>,
) -> Result<(), Error> {
    set(value).map_err(|source| Error::Option { option, value: value.to_string(), source })
}

/// What the kernel made of [`SocketOptions`], read back from a socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectiveOptions {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// SO_SNDBUF in octets. Linux doubles what was asked for, to have room for its own records.
    pub send_buffer: usize,
    /// SO_RCVBUF in octets; doubled likewise.
    pub receive_buffer: usize,
    /// TCP_NOTSENT_LOWAT in octets, or the system-wide value where the socket has none; `None`:
    /// no limit, or the system can't tell.
    pub notsent_lowat: Option<u32>,
    /// Silence after which SO_KEEPALIVE probes the peer; `None`: off.
    pub keepalive: Option<Duration>,
    /// TCP_USER_TIMEOUT; `None`: the kernel's default.
    pub user_timeout: Option<Duration>,
    /// The congestion control in force, such as `cubic` or `bbr`; `None`: the system can't tell.
    pub congestion: Option<String>,
}

impl EffectiveOptions {
    /// Asks the kernel for the options of a TCP socket.
    pub fn read(socket: &impl AsFd) -> io::Result<Self> {
        let socket = SockRef::from(socket);
        let keepalive = socket.keepalive()?.then(|| socket.tcp_keepalive_time()).transpose()?;
        let options = EffectiveOptions {
            nodelay: socket.tcp_nodelay()?,
            send_buffer: socket.send_buffer_size()?,
            receive_buffer: socket.recv_buffer_size()?,
            keepalive,
            notsent_lowat: None,
            user_timeout: None,
            congestion: None,
        };
        options.read_linux(&socket)
    }

    #[cfg(target_os = "linux")]
    fn read_linux(self, socket: &SockRef<'_>) -> io::Result<Self> {
        let name = socket.tcp_congestion()?;
        let name = name.split(|&octet| octet == 0).next().unwrap_or_default();
        Ok(EffectiveOptions {
            notsent_lowat: notsent_lowat(socket)?,
            user_timeout: socket.tcp_user_timeout()?,
            congestion: Some(String::from_utf8_lossy(name).into_owned()),
            ..self
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn read_linux(self, _socket: &SockRef<'_>) -> io::Result<Self> {
        Ok(self)
    }

    /// The options as a header of timeline records shows them.
    pub fn record(&self, local: SocketAddr, peer: SocketAddr) -> SocketRecord {
        SocketRecord {
            nodelay: self.nodelay,
            send_buffer: u32::try_from(self.send_buffer).unwrap_or(u32::MAX),
            receive_buffer: u32::try_from(self.receive_buffer).unwrap_or(u32::MAX),
            notsent_lowat: self.notsent_lowat.unwrap_or(u32::MAX),
            local: local.to_string(),
            peer: peer.to_string(),
        }
    }
}

/// Zero on the socket means that the system-wide value holds (tcp(7)).
#[cfg(target_os = "linux")]
fn notsent_lowat(socket: &SockRef<'_>) -> io::Result<Option<u32>> {
    let octets = match socket.tcp_notsent_lowat()? {
        0 => std::fs::read_to_string("/proc/sys/net/ipv4/tcp_notsent_lowat")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        octets => Some(octets),
    };
    Ok(octets.filter(|&octets| octets != u32::MAX))
}

impl fmt::Display for EffectiveOptions {
    /// One line of `name=value`, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodelay = if self.nodelay { "on" } else { "off" };
        write!(f, "nodelay={nodelay} send_buffer={}", self.send_buffer)?;
        write!(f, " receive_buffer={}", self.receive_buffer)?;
        write!(f, " notsent_lowat={}", OrElse(self.notsent_lowat, "unlimited"))?;
        write!(f, " keepalive={}", OrElse(self.keepalive.map(Seconds), "off"))?;
        write!(f, " user_timeout={}", OrElse(self.user_timeout.map(Seconds), "default"))?;
        write!(f, " congestion={}", OrElse(self.congestion.as_ref(), "unknown"))
    }
}

/// A duration in seconds, as `1.5s`.
#[derive(Copy, Clone)]
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs_f64())
    }
}

struct OrElse<T>(Option<T>, &'static str);

impl<T: fmt::Display> fmt::Display for OrElse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str(self.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_options_fit_one_line() {
        let mut options = EffectiveOptions {
            nodelay: true,
            send_buffer: 2_626_560,
            receive_buffer: 131_072,
            notsent_lowat: Some(16_384),
            keepalive: Some(Duration::from_secs(30)),
            user_timeout: Some(Duration::from_millis(1_500)),
            congestion: Some("cubic".into()),
        };
        assert_eq!(
            options.to_string(),
            "nodelay=on send_buffer=2626560 receive_buffer=131072 notsent_lowat=16384 \
             keepalive=30s user_timeout=1.5s congestion=cubic"
        );
        options.nodelay = false;
        (options.notsent_lowat, options.keepalive) = (None, None);
        (options.user_timeout, options.congestion) = (None, None);
        assert_eq!(
            options.to_string(),
            "nodelay=off send_buffer=2626560 receive_buffer=131072 notsent_lowat=unlimited \
             keepalive=off user_timeout=default congestion=unknown"
        );
    }
}
