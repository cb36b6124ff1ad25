use hopline_timeline::record::TcpRecord;
use std::io;
use std::os::fd::AsFd;

/// TCP's own account of a socket (TCP_INFO); costs 0.7 us.
///
/// # Errors
/// The socket is none of TCP, or the system has no TCP_INFO.
pub fn tcp_record(socket: &impl AsFd) -> io::Result<TcpRecord> {
    #[cfg(target_os = "linux")]
    return linux::record(socket);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::kernel::{RawTcpInfo, UP_TO_LIMITS, UP_TO_RETRANS, tcp_info};
    use hopline_timeline::record::TcpRecord;
    use std::io;
    use std::os::fd::AsFd;

    pub(super) fn record(socket: &impl AsFd) -> io::Result<TcpRecord> {
        let (info, known) = tcp_info(socket)?;
        if known < UP_TO_RETRANS {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(told(&info, known))
    }

    fn told(info: &RawTcpInfo, known: usize) -> TcpRecord {
        let has_limits = known >= UP_TO_LIMITS;
        let told = |count: u32| has_limits.then_some(count);
        TcpRecord {
            segments_out: told(info.segs_out),
            segments_in: told(info.segs_in),
            data_segments_out: told(info.data_segs_out),
            data_segments_in: told(info.data_segs_in),
            retransmits: info.total_retrans,
            rtt_us: info.rtt_us,
            // All ones: there was no round trip yet.
            min_rtt_us: told(info.min_rtt_us).filter(|us| *us != u32::MAX),
            busy_us: has_limits.then_some(info.busy_us),
            window_limited_us: has_limits.then_some(info.rwnd_limited_us),
            send_buffer_limited_us: has_limits.then_some(info.sndbuf_limited_us),
            unsent_octets: told(info.notsent_bytes),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_old_kernel_tells_less() {
            let info = RawTcpInfo {
                total_retrans: 3,
                rtt_us: 40,
                segs_out: 9,
                min_rtt_us: u32::MAX,
                busy_us: 7,
                ..RawTcpInfo::default()
            };
            let old = told(&info, UP_TO_RETRANS);
            assert_eq!((old.retransmits, old.rtt_us), (3, 40));
            assert_eq!((old.segments_out, old.busy_us), (None, None));
            let new = told(&info, UP_TO_LIMITS);
            assert_eq!((new.segments_out, new.busy_us), (Some(9), Some(7)));
            assert_eq!(new.min_rtt_us, None, "there was none yet");
        }
    }
}
