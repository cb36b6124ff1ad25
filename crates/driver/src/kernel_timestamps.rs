use std::fmt;
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
}

impl KernelTimestamps {
    /// Every choice.
    pub const ALL: &[KernelTimestamps] = &[KernelTimestamps::Off, KernelTimestamps::Receive];

    /// The name in settings: `off` or `receive`.
    pub const fn name(self) -> &'static str {
        match self {
            KernelTimestamps::Off => "off",
            KernelTimestamps::Receive => "receive",
        }
    }
}

impl fmt::Display for KernelTimestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KernelTimestamps {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|choice| choice.name() == text);
        found.ok_or("write off or receive")
    }
}
