//! What the experiment is asked for.

use crate::{Error, Shape};
use hopline_messenger::driver::KernelTimestamps;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// Rounds at most.
pub const ROUNDS_MAX: u32 = 1_000;

/// Messages of one run at most.
pub const MESSAGES_MAX: u64 = 1_000_000;

/// An end of a hop, where TCP_NODELAY can be on or off.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The publisher's, to the broker.
    Publisher,
    /// The broker's, to the publisher.
    BrokerIn,
    /// The broker's, to the subscriber.
    BrokerOut,
    /// The subscriber's, to the broker.
    Subscriber,
}

impl End {
    /// Every end, in the order of a message's way.
    pub const ALL: &[End] = &[End::Publisher, End::BrokerIn, End::BrokerOut, End::Subscriber];
}

/// How messages leave the publisher.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Write {
    /// By one write.
    Whole,
    /// By two: a frame's header of 8 octets, then the rest.
    Split,
}

/// How messages are settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settle {
    /// Sent settled.
    Presettled,
    /// Accepted and settled by the receiver.
    Accepted,
    /// Accepted by the receiver, then settled by a frame of the sender's own after each message:
    /// the pattern of Proton's messenger.
    Second,
}

/// When the subscriber tops its credit up.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopUp {
    /// Once half of it is used.
    Half,
    /// After each message.
    Each,
}

/// A consumer that takes only so much.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Throttle {
    /// Messages a second.
    pub rate: u32,
    /// How often it looks, in ms.
    pub window_ms: u64,
}

/// How messages are made.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// So many a second, whatever becomes of them: delays are compared.
    Rate(f64),
    /// As fast as the window lets: the time for all of them is compared.
    FlatOut,
}

/// What to try, and how often.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Rounds, each a run with Nagle's algorithm and one without.
    pub rounds: u32,
    /// Messages of a run.
    pub messages: u64,
    /// How they are made.
    pub pace: Pace,
    /// Octets of their bodies.
    pub size: usize,
    /// Messages that the publisher may have unsettled.
    pub window: u32,
    /// Messages that the broker may send ahead to the subscriber.
    pub credit: u32,
    /// The ends where TCP_NODELAY is off in one half of the runs; it is on at all others.
    pub ends: Vec<End>,
    /// How messages leave.
    pub write: Write,
    /// How they are settled.
    pub settle: Settle,
    /// When credit is topped up.
    pub top_up: TopUp,
    /// A consumer that takes only so much.
    pub throttle: Option<Throttle>,
    /// A path between clients and broker, in network namespaces; loopback, if there is none.
    pub path: Option<Shape>,
    /// Which stamps the kernels are asked for, as `--kernel-timestamps` of the programs names them.
    pub kernel_timestamps: String,
    /// A folder where the records of all runs stay, each run's in a folder of its own.
    pub keep: Option<PathBuf>,
    /// Above which delay, in us, a message is late.
    pub late_us: u64,
}

impl Default for Settings {
    /// The field report: 100 messages a second, a window of 10, accepted, then settled by a frame
    /// of the sender's own.
    fn default() -> Self {
        Self {
            rounds: 10,
            messages: 300,
            pace: Pace::Rate(100.0),
            size: 100,
            window: 10,
            credit: 10,
            ends: End::ALL.to_vec(),
            write: Write::Whole,
            settle: Settle::Second,
            top_up: TopUp::Half,
            throttle: None,
            path: None,
            kernel_timestamps: "all".into(),
            keep: None,
            late_us: 5_000,
        }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let within = |setting, value: u64, max: u64| match (1..=max).contains(&value) {
            true => Ok(()),
            false => Err(Error::Setting { setting, why: format!("from 1 to {max}") }),
        };
        within("--rounds", self.rounds.into(), ROUNDS_MAX.into())?;
        within("--count", self.messages, MESSAGES_MAX)?;
        within("--window", self.window.into(), 100_000)?;
        within("--credit", self.credit.into(), 100_000)?;
        within("--size", self.size as u64, 1 << 20)?;
        within("--late", self.late_us, 60_000_000)?;
        if let Pace::Rate(rate) = self.pace
            && !(0.1..=100_000.0).contains(&rate)
        {
            let why = "from 0.1 to 100000 messages a second".into();
            return Err(Error::Setting { setting: "--rate", why });
        }
        if let Some(Throttle { rate, window_ms }) = self.throttle {
            within("--throttle", rate.into(), 1_000_000)?;
            within("--throttle-window", window_ms, 60_000)?;
        }
        match self.length() > Duration::from_secs(600) {
            true => {
                let why = format!(
                    "a run would take {} s, at most 600 are allowed: raise the rate",
                    self.length().as_secs()
                );
                Err(Error::Setting { setting: "--count", why })
            }
            false => Ok(()),
        }
    }

    /// Whether side records come of what the kernels are asked for.
    pub(crate) fn is_stamped_when_sent(&self) -> bool {
        self.kernel_timestamps.parse().is_ok_and(KernelTimestamps::is_of_sent)
    }

    /// How long a run takes, if all goes well.
    pub(crate) fn length(&self) -> Duration {
        let at = |rate: f64| {
            Duration::try_from_secs_f64(self.messages as f64 / rate).unwrap_or(Duration::MAX)
        };
        let made = match self.pace {
            Pace::Rate(rate) => at(rate),
            Pace::FlatOut => at(10_000.0),
        };
        let taken = self.throttle.map_or(Duration::ZERO, |throttle| at(throttle.rate.into()));
        made.max(taken)
    }
}
