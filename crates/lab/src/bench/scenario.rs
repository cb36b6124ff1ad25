//! What is measured of every target.

use crate::load::{Load, Pace};
use serde::Serialize;
use std::time::Duration;

/// Messages between two writes of a load that is flat out.
const BATCH: u32 = 64;

/// One load, the same for all targets.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Publisher and subscriber pairs.
    pub pairs: usize,
    /// Messages a second in all; `None`: flat out.
    pub rate: Option<f64>,
    /// Octets of a body.
    pub size: usize,
    /// Whether messages are sent settled.
    pub settled: bool,
    /// Messages that a publisher may have unsettled, and a subscriber be sent ahead.
    pub window: u32,
}

/// 100 octets, one pair, accepted, a window of 100.
const BASE: Scenario =
    Scenario { name: "", pairs: 1, rate: None, size: 100, settled: false, window: 100 };

impl Scenario {
    /// All of them.
    pub const ALL: &[Scenario] = &[
        Scenario { name: "1k-settled", rate: Some(1_000.0), settled: true, ..BASE },
        Scenario { name: "1k-accepted", rate: Some(1_000.0), ..BASE },
        Scenario { name: "10k-settled", rate: Some(10_000.0), settled: true, ..BASE },
        Scenario { name: "10k-accepted", rate: Some(10_000.0), ..BASE },
        Scenario { name: "flat-settled", settled: true, window: 1_000, ..BASE },
        Scenario { name: "flat-accepted", window: 1_000, ..BASE },
        Scenario { name: "flat-window-100", ..BASE },
        Scenario { name: "flat-25-pairs", pairs: 25, window: 1_000, ..BASE },
        Scenario { name: "flat-1KiB", size: 1 << 10, ..BASE },
        Scenario { name: "flat-64KiB", size: 64 << 10, ..BASE },
        Scenario { name: "flat-1MiB", size: 1 << 20, window: 4, ..BASE },
    ];

    /// Whether delays are compared, not messages a second.
    pub(crate) const fn is_paced(&self) -> bool {
        self.rate.is_some()
    }

    pub(crate) fn load(&self, urls: [String; 2], raw: bool, length: Duration) -> Load {
        let pace = match self.rate {
            Some(rate) => Pace::Rate(rate / self.pairs as f64),
            None => Pace::FlatOut(BATCH.min(self.window)),
        };
        Load {
            urls,
            node: format!("bench.{}", self.name),
            pairs: self.pairs,
            pace,
            warm_up: length / 4,
            length,
            size: self.size,
            window: self.window as usize,
            credit: self.window,
            settled: self.settled,
            timelines: false,
            sockets: Default::default(),
            raw,
        }
    }
}
