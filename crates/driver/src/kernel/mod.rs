//! System calls of Linux that no crate wraps safely. All unsafe code is here.

mod clock;
mod tcp_info;

pub(crate) use clock::wall_error_ns;
pub(crate) use tcp_info::{
    RawTcpInfo, UP_TO_LIMITS, UP_TO_RETRANS, UP_TO_WINDOW, tcp_info, unsent_octets,
};
