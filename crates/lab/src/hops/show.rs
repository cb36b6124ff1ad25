//! The chains' table, and the verdict.

use super::{Runs, Settings};
use crate::load::Loaded;
use crate::table::{Table, figure};
use crate::{Line, Outcome};
use serde_json::{Value, json};

/// Below this share of the offered rate it counts as not reached.
const REACHED: f64 = 0.99;

/// A figure of a run: its name in JSON, its head in the table, digits, and how it is got.
type Figure = (&'static str, &'static str, usize, fn(&Loaded) -> f64);

const FIGURES: &[Figure] = &[
    ("rate", "msg/s", 0, |run| run.arrived as f64 / run.seconds),
    ("mean_us", "mean us", 1, |run| run.delays.mean() / 1e3),
    ("p50_us", "p50 us", 1, p50_us),
    ("p90_us", "p90 us", 1, |run| run.delays.value_at_quantile(0.9) as f64 / 1e3),
    ("p99_us", "p99 us", 1, |run| run.delays.value_at_quantile(0.99) as f64 / 1e3),
    ("lost", "lost", 0, |run| run.lost as f64),
];

fn p50_us(run: &Loaded) -> f64 {
    run.delays.value_at_quantile(0.5) as f64 / 1e3
}

pub(super) fn outcome(settings: &Settings, all: &[Runs], is_complete: bool) -> Outcome {
    // Where nothing arrived, there is no delay.
    let each = |runs: &Runs| -> Vec<(f64, f64)> {
        let arrived = runs.runs.iter().filter(|run| run.arrived > 0);
        arrived.map(|run| (runs.brokers as f64, p50_us(run))).collect()
    };
    let points: Vec<_> = all.iter().flat_map(each).collect();
    let line = Line::through(&points);
    let rounds = all.iter().map(|runs| {
        let listed = runs.runs.iter().map(object).collect::<Vec<_>>();
        json!({ "brokers": runs.brokers, "runs": listed })
    });
    let summary = json!({ "figure": "median delay in us for each further broker", "line": line });
    let verdict = verdict(line, faults(settings, all));
    let table = format!(
        "Medians of the rounds; delays at {} messages/s, from when a message was due.\n\n{}",
        settings.rate,
        table(all)
    );
    let parts = (rounds.collect(), summary);
    Outcome::new("hops", settings, parts, (table, verdict), is_complete)
}

fn table(all: &[Runs]) -> String {
    let head: Vec<_> = FIGURES.iter().map(|(_, head, ..)| *head).collect();
    let mut table = Table::with_head(&[&["brokers"], &head[..], &["p50 a hop more"]].concat());
    let mut before: Option<(usize, f64)> = None;
    for runs in all {
        let cells =
            FIGURES.iter().map(|(.., digits, of)| figure(runs.sample(of).median(), *digits));
        let here = runs.sample(p50_us).median().map(|p50| (runs.brokers, p50));
        let more = before
            .zip(here)
            .map(|(before, here)| (here.1 - before.1) / (here.0 as f64 - before.0 as f64));
        let more = figure(more.filter(|more| more.is_finite()), 1);
        table.row(std::iter::once(runs.brokers.to_string()).chain(cells).chain([more]));
        before = here.or(before);
    }
    table.to_string()
}

/// What is wrong with chains: messages that were lost, a rate that was not reached.
fn faults(settings: &Settings, all: &[Runs]) -> String {
    let rate = |runs: &Runs| runs.sample(|run| run.arrived as f64 / run.seconds).median();
    let is_short = |runs: &Runs| rate(runs).is_some_and(|it| it < settings.rate * REACHED);
    let lost = |runs: &Runs| runs.runs.iter().map(|run| run.lost).sum::<u64>();
    let mut said = String::new();
    for runs in all {
        let brokers = runs.brokers;
        if lost(runs) > 0 {
            said += &format!("; {} messages were LOST with {brokers} brokers", lost(runs));
        }
        if is_short(runs) {
            said += &format!("; the offered rate was NOT reached with {brokers} brokers");
        }
    }
    said
}

fn verdict(line: Option<Line>, faults: String) -> String {
    let Some(Line { slope, interval }) = line else {
        return format!("none: no two lengths of chains were measured{faults}");
    };
    let sure = match interval {
        Some((least, greatest)) if least > 0.0 => {
            format!("95 % confidence: {least:.1} to {greatest:.1} us")
        }
        Some((least, greatest)) => {
            format!("NOT sure: 95 % confidence: {least:.1} to {greatest:.1} us")
        }
        None => "how sure can't be told from two runs".to_owned(),
    };
    format!("each further broker adds {slope:.1} us to the median delay ({sure}){faults}")
}

fn object(run: &Loaded) -> Value {
    let value = |(name, _, _, of): &Figure| ((*name).to_owned(), json!(of(run)));
    FIGURES.iter().map(value).collect::<serde_json::Map<_, _>>().into()
}
