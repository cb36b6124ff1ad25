//! What is measured of every target, or of Hopline only.

use super::target::Target;
use crate::load::{Load, Over, Pace};
use serde::Serialize;
use std::time::Duration;

/// Messages between two writes of a load that is flat out.
const BATCH: u32 = 64;

/// Pairs that share the links of [`Growth::Links`].
const LINKED: usize = 10;

/// Messages of a backlog for each queue, link or connection of the other ways to grow.
const BACKLOG: usize = 100;

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
    /// Whether messages carry timelines.
    pub timelines: bool,
    /// What is measured.
    pub of: Of,
    /// What there is much of in the broker meanwhile.
    pub growth: Option<Growth>,
}

/// What a scenario is measured of.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// The relay, Hopline's broker, its peers.
    All,
    /// Hopline's broker only.
    Hopline,
    /// Two of its messengers, without a broker.
    Messengers,
}

/// What there is much of in a broker.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// Queues.
    Queues,
    /// Links of the publishers, and as many of the subscribers; messages go over each in turn.
    Links,
    /// Messages that wait in the queue, a hundred times as many.
    Backlog,
    /// Connections with one link each that do nothing.
    Idle,
}

/// 100 octets, one pair, accepted, a window of 100.
const BASE: Scenario = Scenario {
    name: "",
    pairs: 1,
    rate: None,
    size: 100,
    settled: false,
    window: 100,
    timelines: false,
    of: Of::All,
    growth: None,
};

/// The same of Hopline's broker only, a window of 1,000.
const OURS: Scenario = Scenario { window: 1_000, of: Of::Hopline, ..BASE };

impl Scenario {
    /// All of them.
    pub const ALL: &[Scenario] = &[
        Scenario { name: "1k-settled", rate: Some(1_000.0), settled: true, ..BASE },
        Scenario { name: "1k-accepted", rate: Some(1_000.0), ..BASE },
        Scenario { name: "10k-settled", rate: Some(10_000.0), settled: true, ..BASE },
        Scenario { name: "10k-accepted", rate: Some(10_000.0), ..BASE },
        Scenario { name: "10k-timed", rate: Some(10_000.0), window: 100, timelines: true, ..OURS },
        Scenario { name: "flat-settled", settled: true, window: 1_000, ..BASE },
        Scenario { name: "flat-accepted", window: 1_000, ..BASE },
        Scenario { name: "flat-timed", timelines: true, ..OURS },
        Scenario { name: "flat-window-100", ..BASE },
        Scenario { name: "flat-25-pairs", pairs: 25, window: 1_000, ..BASE },
        Scenario { name: "flat-1KiB", size: 1 << 10, ..BASE },
        Scenario { name: "flat-64KiB", size: 64 << 10, ..BASE },
        Scenario { name: "flat-1MiB", size: 1 << 20, window: 4, ..BASE },
        Scenario { name: "messengers", settled: true, of: Of::Messengers, ..OURS },
        Scenario { name: "many-queues", growth: Some(Growth::Queues), ..OURS },
        Scenario { name: "few-links", pairs: LINKED, ..OURS },
        Scenario { name: "many-links", pairs: LINKED, growth: Some(Growth::Links), ..OURS },
        Scenario { name: "backlog", growth: Some(Growth::Backlog), ..OURS },
        Scenario { name: "idle", growth: Some(Growth::Idle), ..OURS },
    ];

    /// Whether delays are compared, not messages a second.
    pub(crate) const fn is_paced(&self) -> bool {
        self.rate.is_some()
    }

    pub(super) fn is_measured_of(&self, target: &Target) -> bool {
        match self.of {
            Of::All => *target != Target::Messengers,
            Of::Hopline => *target == Target::Hopline,
            Of::Messengers => *target == Target::Messengers,
        }
    }

    /// The broker's file, but for its listener.
    pub(super) fn broker_settings(&self, much: usize) -> toml::Table {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let set = |table: &str, entries: toml::Table| {
            toml::Table::from_iter([(table.to_owned(), toml::Value::Table(entries))])
        };
        match self.growth {
            Some(Growth::Queues) => {
                let queues = (1..=much).map(|number| format!("bench.other.{number}").into());
                let queues = toml::Value::Array(queues.collect());
                set("nodes", toml::Table::from_iter([("queues".to_owned(), queues)]))
            }
            Some(Growth::Backlog) => {
                let max = number(2 * (much * BACKLOG).max(1_000_000)).into();
                set("nodes", toml::Table::from_iter([("max_messages".to_owned(), max)]))
            }
            Some(Growth::Idle) => {
                let keys = ["connections", "connections_per_address"];
                let max = toml::Value::from(number(much + 10));
                set("limits", keys.map(|key| (key.to_owned(), max.clone())).into_iter().collect())
            }
            Some(Growth::Links) | None => toml::Table::new(),
        }
    }

    pub(super) fn load(
        &self,
        urls: [String; 2],
        over: Over,
        much: usize,
        length: Duration,
    ) -> Load {
        let pace = match self.rate {
            Some(rate) => Pace::Rate(rate / self.pairs as f64),
            None => Pace::FlatOut(BATCH.min(self.window)),
        };
        let if_growing = |growth, number| if self.growth == Some(growth) { number } else { 0 };
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
            timelines: self.timelines,
            sockets: Default::default(),
            over,
            nodes: if_growing(Growth::Links, much / self.pairs).max(1),
            backlog: if_growing(Growth::Backlog, much * BACKLOG) as u64,
        }
    }
}
