//! The tables, and the verdict.

use super::goals::{self, Reached};
use super::target::Target;
use super::{Cell, Run, Settings, UnderLoad};
use crate::table::{Table, figure};
use crate::{Outcome, Sample};
use serde_json::{Value, json};

/// A figure of a run.
pub(super) struct Figure {
    /// In JSON.
    name: &'static str,
    pub(super) head: &'static str,
    digits: usize,
    /// Whether it has a column; the others are for goals.
    is_shown: bool,
    of: fn(&Run) -> Option<f64>,
}

const FIGURES: &[Figure] = &[
    column("p50_us", "p50 us", 1, |run| quantile_us(run, 0.5)),
    column("p99_us", "p99 us", 1, |run| quantile_us(run, 0.99)),
    column("rate", "msg/s", 0, |run| {
        let loaded = &under_load(run)?.loaded;
        Some(loaded.arrived as f64 / loaded.seconds)
    }),
    column("cpu_us", "cpu us/msg", 2, |run| {
        let load = under_load(run)?;
        Some(1e6 * load.cpu?.all_s() / load.loaded.arrived.max(1) as f64)
    }),
    column("lost", "lost", 0, |run| Some(under_load(run)?.loaded.lost as f64)),
    only_for_goals("slowest_pair", "slowest pair / mean", |run| {
        let loaded = &under_load(run)?.loaded;
        let slowest = *loaded.arrived_of.iter().min()? as f64;
        Some(slowest * loaded.arrived_of.len() as f64 / loaded.arrived.max(1) as f64)
    }),
    only_for_goals("start_ms", "ms to start", |run| {
        Some(1e3 * under_load(run)?.started_in?.as_secs_f64())
    }),
    only_for_goals("idle_kib", "KiB a connection", |run| match run {
        Run::Idle(idle) => Some(idle.resident_kib as f64 / idle.connections as f64),
        Run::Load(_) => None,
    }),
    only_for_goals("idle_cpu_percent", "% of a core", |run| match run {
        Run::Idle(idle) => Some(100.0 * idle.spent.all_s() / idle.seconds),
        Run::Load(_) => None,
    }),
];

const fn column(
    name: &'static str,
    head: &'static str,
    digits: usize,
    of: fn(&Run) -> Option<f64>,
) -> Figure {
    Figure { name, head, digits, is_shown: true, of }
}

const fn only_for_goals(
    name: &'static str,
    head: &'static str,
    of: fn(&Run) -> Option<f64>,
) -> Figure {
    Figure { name, head, digits: 2, is_shown: false, of }
}

fn under_load(run: &Run) -> Option<&UnderLoad> {
    match run {
        Run::Load(load) => Some(load),
        Run::Idle(_) => None,
    }
}

fn quantile_us(run: &Run, quantile: f64) -> Option<f64> {
    let delays = &under_load(run)?.loaded.delays;
    (!delays.is_empty()).then(|| delays.value_at_quantile(quantile) as f64 / 1e3)
}

pub(super) fn figure_called(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

/// Of each round.
pub(super) fn sample(cell: &Cell, figure: &Figure) -> Sample {
    cell.runs.iter().filter_map(figure.of).collect()
}

/// Of each round, one cell's against another's.
pub(super) fn ratio(cell: &Cell, other: &Cell, figure: &Figure) -> Sample {
    let rounds = cell.runs.iter().zip(&other.runs);
    rounds.filter_map(|(a, b)| Some((figure.of)(a)? / (figure.of)(b)?)).collect()
}

/// What is compared in a scenario: the median delay where there is a rate, else the rate.
fn compared(cell: &Cell) -> Option<&'static Figure> {
    figure_called(if cell.scenario.is_paced() { "p50_us" } else { "rate" })
}

/// How a cell compares with the relay.
fn against_relay(cells: &[Cell], cell: &Cell) -> Option<f64> {
    let same = |it: &&Cell| it.scenario == cell.scenario && it.target == Target::Relay;
    ratio(cell, cells.iter().find(same)?, compared(cell)?).median()
}

pub(super) fn outcome(settings: &Settings, cells: &[Cell], is_complete: bool) -> Outcome {
    let rounds = cells.iter().map(|cell| {
        let runs = cell.runs.iter().map(object).collect::<Vec<_>>();
        let (scenario, target) = (cell.scenario.name, cell.target.to_string());
        json!({ "scenario": scenario, "target": target, "runs": runs })
    });
    let ratios = cells.iter().map(|cell| {
        let (scenario, target) = (cell.scenario.name, cell.target.to_string());
        json!({ "scenario": scenario, "target": target, "ratio": against_relay(cells, cell) })
    });
    let goals = goals::reached(cells);
    let summary = json!({
        "figure": "median of the rounds' ratios to the relay: of the p50 delay at a rate, of \
                   messages/s flat out",
        "ratios": ratios.collect::<Vec<_>>(),
        "goals": goals,
    });
    let text = format!(
        "Median [least - greatest] of the rounds; delays from when a message was due, or flat out \
         from the put. The ratio is against the raw relay in the same round: of p50 at a rate \
         (less is better), of msg/s flat out (more is better).\n\n{}\n{}",
        table(cells),
        goals::table(&goals)
    );
    let parts = (rounds.collect(), summary);
    Outcome::new("bench", settings, parts, (text, verdict(cells, &goals)), is_complete)
}

fn table(cells: &[Cell]) -> String {
    let columns = || FIGURES.iter().filter(|figure| figure.is_shown);
    let head: Vec<_> = columns().map(|figure| figure.head).collect();
    let mut table = Table::with_head(&[&["scenario", "target"], &head[..], &["ratio"]].concat());
    let under_load = |cell: &&Cell| cell.runs.iter().any(|run| matches!(run, Run::Load(_)));
    for cell in cells.iter().filter(under_load) {
        let figures = columns().map(|column| spread(&sample(cell, column), column.digits));
        let names = [cell.scenario.name.to_owned(), cell.target.to_string()];
        let ratio = figure(against_relay(cells, cell), 2);
        table.row(names.into_iter().chain(figures).chain([ratio]));
    }
    table.to_string()
}

fn spread(sample: &Sample, digits: usize) -> String {
    let range = sample.range().filter(|_| sample.len() > 1);
    let range = range.map_or(String::new(), |(least, greatest)| {
        format!(" [{least:.digits$} - {greatest:.digits$}]")
    });
    format!("{}{range}", figure(sample.median(), digits))
}

/// What is not faster than a peer is said first, then which goals are missed.
fn verdict(cells: &[Cell], goals: &[Reached]) -> String {
    let mut said = Vec::new();
    for ours in cells.iter().filter(|cell| cell.target == Target::Hopline) {
        let peers = cells.iter().filter(|it| it.scenario == ours.scenario && it.target.is_peer());
        said.extend(peers.filter_map(|peer| not_faster(ours, peer)));
    }
    let (met, missed): (Vec<_>, Vec<_>) = goals.iter().partition(|goal| goal.is_met);
    let missed: Vec<_> = missed.iter().map(ToString::to_string).collect();
    said.push(format!("{} of {} goals are met", met.len(), goals.len()));
    if !missed.is_empty() {
        said.push(format!("missed: {}", missed.join(", ")));
    }
    said.join("; ")
}

fn not_faster(ours: &Cell, peer: &Cell) -> Option<String> {
    let ratio = ratio(ours, peer, compared(ours)?).median()?;
    let is_slower = if ours.scenario.is_paced() { ratio >= 1.0 } else { ratio <= 1.0 };
    let name = ours.scenario.name;
    is_slower.then(|| format!("{name}: hopline is NOT faster than {}", peer.target))
}

fn object(run: &Run) -> Value {
    let value = |figure: &Figure| Some((figure.name.to_owned(), json!((figure.of)(run)?)));
    FIGURES.iter().filter_map(value).collect::<serde_json::Map<_, _>>().into()
}
