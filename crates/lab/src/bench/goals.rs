//! What Hopline means to reach, and whether it did.

use super::Cell;
use super::show::{self, Figure};
use super::target::Target;
use crate::Sample;
use crate::table::{Table, figure};
use serde::Serialize;
use std::fmt;

/// A figure of a scenario, and what it is to be.
struct Goal {
    scenario: &'static str,
    /// As it is called in JSON.
    figure: &'static str,
    against: Against,
    bound: Bound,
}

/// What a figure is divided by.
enum Against {
    /// Nothing.
    Alone,
    /// That of the raw relay.
    Relay,
    /// The best of the peers.
    BestPeer,
    /// Hopline's own in another scenario.
    Ours(&'static str),
}

#[derive(Copy, Clone)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Against::{Alone, BestPeer, Ours, Relay};
use Bound::{AtLeast, AtMost};

const GOALS: &[Goal] = &[
    goal("1k-settled", "p50_us", Relay, AtMost(1.15)),
    goal("1k-accepted", "p50_us", Relay, AtMost(1.25)),
    goal("10k-settled", "p50_us", Relay, AtMost(1.15)),
    goal("10k-accepted", "p50_us", Relay, AtMost(1.25)),
    goal("10k-settled", "p99_us", Relay, AtMost(1.3)),
    goal("10k-accepted", "p99_us", Relay, AtMost(1.3)),
    goal("10k-accepted", "cpu_us", Relay, AtMost(1.25)),
    goal("10k-timed", "p50_us", Ours("10k-accepted"), AtMost(1.1)),
    goal("flat-settled", "rate", Relay, AtLeast(0.5)),
    goal("flat-settled", "rate", BestPeer, AtLeast(10.0)),
    goal("flat-settled", "cpu_us", Alone, AtMost(0.4)),
    goal("flat-accepted", "rate", Alone, AtLeast(3e6)),
    goal("flat-accepted", "rate", BestPeer, AtLeast(3.0)),
    goal("flat-accepted", "cpu_us", Alone, AtMost(0.5)),
    goal("flat-timed", "rate", Ours("flat-accepted"), AtLeast(0.65)),
    goal("flat-window-100", "rate", BestPeer, AtLeast(3.0)),
    goal("flat-25-pairs", "rate", Alone, AtLeast(3e6)),
    goal("flat-25-pairs", "slowest_pair", Alone, AtLeast(0.5)),
    goal("flat-64KiB", "rate", Relay, AtLeast(0.8)),
    goal("flat-1MiB", "rate", Relay, AtLeast(0.8)),
    goal("messengers", "rate", Alone, AtLeast(2e6)),
    goal("many-queues", "cpu_us", Ours("flat-accepted"), AtMost(1.2)),
    goal("many-queues", "start_ms", Alone, AtMost(50.0)),
    goal("many-links", "cpu_us", Ours("few-links"), AtMost(1.2)),
    goal("backlog", "cpu_us", Ours("flat-accepted"), AtMost(1.2)),
    goal("idle", "idle_kib", Alone, AtMost(12.0)),
    goal("idle", "idle_cpu_percent", Alone, AtMost(1.0)),
];

const fn goal(
    scenario: &'static str,
    figure: &'static str,
    against: Against,
    bound: Bound,
) -> Goal {
    Goal { scenario, figure, against, bound }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alone => Ok(()),
            Relay => f.write_str(" / relay"),
            BestPeer => f.write_str(" / best peer"),
            Ours(scenario) => write!(f, " / {scenario}"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtMost(bound) => write!(f, "<= {bound}"),
            AtLeast(bound) => write!(f, ">= {bound}"),
        }
    }
}

impl Bound {
    fn holds(self, figure: f64) -> bool {
        match self {
            AtMost(bound) => figure <= bound,
            AtLeast(bound) => figure >= bound,
        }
    }

    /// The better one of two figures.
    fn better(self, a: f64, b: f64) -> f64 {
        match self {
            AtMost(_) => a.min(b),
            AtLeast(_) => a.max(b),
        }
    }
}

/// A goal, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Reached {
    goal: String,
    wanted: String,
    median: f64,
    least: f64,
    greatest: f64,
    pub(super) is_met: bool,
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (wanted {})", self.goal, digits(self.median), self.wanted)
    }
}

/// The goals whose figures were measured.
pub(super) fn reached(cells: &[Cell]) -> Vec<Reached> {
    GOALS.iter().filter_map(|goal| goal.reached(cells)).collect()
}

impl Goal {
    fn reached(&self, cells: &[Cell]) -> Option<Reached> {
        let figure = show::figure_called(self.figure)?;
        let sample = self.sample(cells, figure)?;
        let (median, (least, greatest)) = (sample.median()?, sample.range()?);
        let goal = format!("{}: {}{}", self.scenario, figure.head, self.against);
        let (wanted, is_met) = (self.bound.to_string(), self.bound.holds(median));
        Some(Reached { goal, wanted, median, least, greatest, is_met })
    }

    /// Of each round: the figure, or how it compares with another one of the same round.
    fn sample(&self, cells: &[Cell], figure: &Figure) -> Option<Sample> {
        let is_ours = |target: &Target| matches!(target, Target::Hopline | Target::Messengers);
        let in_scenario = |scenario: &'static str| {
            cells.iter().filter(move |cell| cell.scenario.name == scenario)
        };
        let ours_in = |scenario| in_scenario(scenario).find(|cell| is_ours(&cell.target));
        let ours = ours_in(self.scenario)?;
        match self.against {
            Alone => Some(show::sample(ours, figure)),
            Relay => {
                let relay = in_scenario(self.scenario).find(|it| it.target == Target::Relay)?;
                Some(show::ratio(ours, relay, figure))
            }
            Ours(scenario) => Some(show::ratio(ours, ours_in(scenario)?, figure)),
            BestPeer => {
                let peers = in_scenario(self.scenario).filter(|it| it.target.is_peer());
                let figured =
                    peers.filter_map(|cell| Some((cell, show::sample(cell, figure).median()?)));
                let best =
                    figured.reduce(|a, b| if self.bound.better(a.1, b.1) == a.1 { a } else { b });
                Some(show::ratio(ours, best?.0, figure))
            }
        }
    }
}

/// Three digits or so.
fn digits(value: f64) -> String {
    figure(Some(value), if value.abs() < 100.0 { 2 } else { 0 })
}

pub(super) fn table(reached: &[Reached]) -> String {
    let mut table = Table::new(["goal", "wanted", "median", "[least - greatest]", ""]);
    for it in reached {
        let range = format!("[{} - {}]", digits(it.least), digits(it.greatest));
        let met = if it.is_met { "met" } else { "MISSED" };
        let cells = [it.goal.clone(), it.wanted.clone(), digits(it.median), range, met.to_owned()];
        table.row(cells);
    }
    table.to_string()
}
