//! System calls of Linux that no crate wraps safely. All unsafe code is here.

mod clock;
mod control;
mod gate;
mod receive;
mod tcp_info;
mod timer;
mod timestamping;
mod transmit;
mod tun;

pub(crate) use clock::wall_error_ns;
pub(crate) use gate::Gate;
pub(crate) use receive::receive;
pub(crate) use tcp_info::{
    RawTcpInfo, UP_TO_LIMITS, UP_TO_RETRANS, UP_TO_WINDOW, tcp_info, unsent_octets,
};
pub(crate) use timer::Alarm;
pub(crate) use timestamping::{RECEIVE, set_timestamping};
pub(crate) use transmit::{Kind, OCTETS, SENT, SentStamp, send, take_sent};
pub(crate) use tun::open_tun;
