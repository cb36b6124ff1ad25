use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Which instants the kernel is asked for (SO_TIMESTAMPING, Linux only; plain TCP only, since
/// within TLS no octet of a message is one of the socket).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelTimestamps {
    /// None.
    #[default]
    Off,
    /// KERNEL_RECEIVE: when the segment arrived that completed a read; it goes into the timelines
    /// of the messages that came by it. Costs 0.2 us a read.
    Receive,
    /// Also KERNEL_SCHED, KERNEL_SEND and KERNEL_ACK of one in so many of the messages sent that
    /// have a timeline, as [side records](crate::SideRecords). Costs some us for each of them.
    OneIn(NonZeroU32),
}

impl KernelTimestamps {
    /// All stamps of all messages.
    pub const ALL: KernelTimestamps = KernelTimestamps::OneIn(NonZeroU32::MIN);

    /// Whether side records come of it.
    pub const fn is_of_sent(self) -> bool {
        matches!(self, KernelTimestamps::OneIn(_))
    }
}

/// As in settings: `off`, `receive`, `all` or `1/16`.
impl fmt::Display for KernelTimestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelTimestamps::Off => f.write_str("off"),
            KernelTimestamps::Receive => f.write_str("receive"),
            KernelTimestamps::OneIn(n) if n.get() == 1 => f.write_str("all"),
            KernelTimestamps::OneIn(n) => write!(f, "1/{n}"),
        }
    }
}

impl FromStr for KernelTimestamps {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(KernelTimestamps::Off),
            "receive" => Ok(KernelTimestamps::Receive),
            "all" => Ok(KernelTimestamps::ALL),
            _ => {
                let one_in = text.strip_prefix("1/").and_then(|n| n.parse().ok());
                one_in
                    .map(KernelTimestamps::OneIn)
                    .ok_or("write off, receive, all, or 1/N for one message in N")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        for text in ["off", "receive", "all", "1/16", "1/4294967295"] {
            assert_eq!(text.parse::<KernelTimestamps>().unwrap().to_string(), text);
        }
        assert_eq!("1/1".parse(), Ok(KernelTimestamps::ALL));
        for text in ["", "All", "1/0", "1/", "1/-1", "2/3", "1/4294967296", "0"] {
            assert!(text.parse::<KernelTimestamps>().is_err(), "{text}");
        }
    }
}
