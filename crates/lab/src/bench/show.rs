//! The table, and the verdict.

use super::target::Target;
use super::{Cell, Run, Settings};
use crate::table::{Table, figure};
use crate::{Outcome, Sample};
use serde_json::{Value, json};

/// A figure of a run: its name in JSON, its head in the table, digits, and how it is got.
type Figure = (&'static str, &'static str, usize, fn(&Run) -> f64);

const FIGURES: &[Figure] = &[
    ("p50_us", "p50 us", 1, |run| run.loaded.delays.value_at_quantile(0.5) as f64 / 1e3),
    ("p99_us", "p99 us", 1, |run| run.loaded.delays.value_at_quantile(0.99) as f64 / 1e3),
    ("rate", "msg/s", 0, |run| run.loaded.arrived as f64 / run.loaded.seconds),
    ("cpu_us", "cpu us/msg", 2, |run| {
        let spent = run.cpu.map_or(f64::NAN, |cpu| cpu.user_s + cpu.system_s);
        1e6 * spent / run.loaded.arrived.max(1) as f64
    }),
    ("lost", "lost", 0, |run| run.loaded.lost as f64),
];

fn sample(cell: &Cell, of: fn(&Run) -> f64) -> Sample {
    cell.runs.iter().map(of).collect()
}

/// What is compared in a scenario: the median delay where there is a rate, else the rate.
fn compared(cell: &Cell) -> Option<f64> {
    let name = if cell.scenario.is_paced() { "p50_us" } else { "rate" };
    let (.., of) = FIGURES.iter().find(|(known, ..)| *known == name)?;
    sample(cell, *of).median()
}

/// How a cell compares with the relay.
fn ratio(cells: &[Cell], cell: &Cell) -> Option<f64> {
    let same = |it: &&Cell| it.scenario == cell.scenario && it.target == Target::Relay;
    let relay = cells.iter().find(same).and_then(compared)?;
    compared(cell).map(|figure| figure / relay).filter(|ratio| ratio.is_finite())
}

pub(super) fn outcome(settings: &Settings, cells: &[Cell], is_complete: bool) -> Outcome {
    let rounds = cells.iter().map(|cell| {
        let runs = cell.runs.iter().map(object).collect::<Vec<_>>();
        let (scenario, target) = (cell.scenario.name, cell.target.to_string());
        json!({ "scenario": scenario, "target": target, "runs": runs })
    });
    let ratios = cells.iter().map(|cell| {
        let (scenario, target) = (cell.scenario.name, cell.target.to_string());
        json!({ "scenario": scenario, "target": target, "ratio": ratio(cells, cell) })
    });
    let summary = json!({
        "figure": "median against the relay: of the p50 delay at a rate, of messages/s flat out",
        "ratios": ratios.collect::<Vec<_>>(),
    });
    let table = format!(
        "Median [least - greatest] of the rounds; delays from when a message was due, or flat out \
         from the put. The ratio is against the raw relay: of p50 at a rate (less is better), of \
         msg/s flat out (more is better).\n\n{}",
        table(cells)
    );
    let parts = (rounds.collect(), summary);
    Outcome::new("bench", settings, parts, (table, verdict(cells)), is_complete)
}

fn table(cells: &[Cell]) -> String {
    let head: Vec<_> = FIGURES.iter().map(|(_, head, ..)| *head).collect();
    let mut table = Table::with_head(&[&["scenario", "target"], &head[..], &["ratio"]].concat());
    for cell in cells {
        let figures = FIGURES.iter().map(|(.., digits, of)| {
            let sample = sample(cell, *of);
            let range = sample.range().filter(|_| sample.len() > 1);
            let range = range.map_or(String::new(), |(least, greatest)| {
                format!(" [{least:.digits$} - {greatest:.digits$}]")
            });
            format!("{}{range}", figure(sample.median(), *digits))
        });
        let names = [cell.scenario.name.to_owned(), cell.target.to_string()];
        let ratio = figure(ratio(cells, cell), 2);
        table.row(names.into_iter().chain(figures).chain([ratio]));
    }
    table.to_string()
}

/// What is not faster than a peer is said first.
fn verdict(cells: &[Cell]) -> String {
    let hopline = cells.iter().filter(|cell| cell.target == Target::Hopline);
    let mut said = Vec::new();
    for cell in hopline.clone() {
        let peers = cells.iter().filter(|it| it.scenario == cell.scenario);
        let peers = peers.filter(|it| matches!(it.target, Target::Peer(_)));
        for peer in peers {
            let (Some(ours), Some(theirs)) = (compared(cell), compared(peer)) else { continue };
            let is_slower = if cell.scenario.is_paced() { ours >= theirs } else { ours <= theirs };
            if is_slower {
                said.push(format!(
                    "{}: hopline is NOT faster than {}",
                    cell.scenario.name, peer.target
                ));
            }
        }
    }
    let ratios = hopline.filter_map(|cell| {
        let ratio = ratio(cells, cell)?;
        let what = if cell.scenario.is_paced() { "the delay" } else { "the rate" };
        Some(format!("{} {ratio:.2} times {what}", cell.scenario.name))
    });
    said.push(format!("against the raw relay: {}", ratios.collect::<Vec<_>>().join(", ")));
    said.join("; ")
}

fn object(run: &Run) -> Value {
    let value = |(name, _, _, of): &Figure| ((*name).to_owned(), json!(of(run)));
    FIGURES.iter().map(value).collect::<serde_json::Map<_, _>>().into()
}
