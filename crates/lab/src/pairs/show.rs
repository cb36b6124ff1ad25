//! The experiment's table, and its verdict.

use super::{Round, Run, Settings};
use crate::table::{Table, figure};
use crate::verdict::{Words, sentence};
use crate::{Comparison, Outcome, Sample};
use serde_json::{Value, json};

/// Below this share of the offered rate it counts as not reached.
const REACHED: f64 = 0.99;

/// A figure of a run: its name in JSON, its head in the table, digits, and how it is got.
type Figure = (&'static str, &'static str, usize, fn(&Run) -> f64);

const FIGURES: &[Figure] = &[
    ("rate", "msg/s", 0, |run| run.loaded.arrived as f64 / run.loaded.seconds),
    ("user_us", "user us", 2, |run| per_message(run, run.broker.user_s * 1e6)),
    ("system_us", "system us", 2, |run| per_message(run, run.broker.system_s * 1e6)),
    ("softirq_us", "soft-irq us", 2, |run| per_message(run, run.machine.softirq_s * 1e6)),
    ("switches", "switches", 2, |run| per_message(run, run.broker.switches as f64)),
    ("p50_us", "p50 us", 0, |run| delay_us(run, 0.5)),
    ("p99_us", "p99 us", 0, |run| delay_us(run, 0.99)),
    ("p99_9_us", "p99.9 us", 0, |run| delay_us(run, 0.999)),
    ("max_us", "max us", 0, |run| delay_us(run, 1.0)),
    ("lost", "lost", 0, |run| run.loaded.lost as f64),
];

/// Shares of the machine's time, in per cent.
const SHARES: &[Figure] = &[
    ("user", "user %", 1, |run| share(run, run.machine.user_s)),
    ("system", "system %", 1, |run| share(run, run.machine.system_s)),
    ("idle", "idle %", 1, |run| share(run, run.machine.idle_s)),
    ("wait", "wait %", 1, |run| share(run, run.machine.wait_s)),
    ("irq", "irq %", 1, |run| share(run, run.machine.irq_s)),
    ("softirq", "soft-irq %", 1, |run| share(run, run.machine.softirq_s)),
];

fn per_message(run: &Run, spent: f64) -> f64 {
    spent / run.loaded.arrived.max(1) as f64
}

fn share(run: &Run, seconds: f64) -> f64 {
    let all = run.machine.all_s();
    if all > 0.0 { 100.0 * seconds / all } else { 0.0 }
}

fn delay_us(run: &Run, quantile: f64) -> f64 {
    run.loaded.delays.value_at_quantile(quantile) as f64 / 1e3
}

fn cost_us(run: &Run) -> f64 {
    per_message(run, (run.broker.user_s + run.broker.system_s) * 1e6)
}

pub(super) fn outcome(settings: &Settings, rounds: &[Round], is_complete: bool) -> Outcome {
    let cost = |at| sample(rounds, at, cost_us);
    let (a, b) = (cost(0), cost(1));
    let comparison = Comparison::new(&a, &b);
    let [name_a, name_b] = settings.variants.each_ref().map(|variant| format!("[{variant}]"));
    let words = Words {
        a: &name_a,
        b: &name_b,
        what: "CPU time of the broker for each message",
        unit: "us",
        better: ["cheaper", "times less"],
    };
    let cheaper = sentence(&words, comparison.as_ref(), a.len().min(b.len()));
    let verdict = format!("{}; {cheaper}", reached(settings, rounds));
    let summary = json!({
        "figure": "CPU time of the broker for each message in us",
        "offered_rate": offered(settings),
        "a": summary(rounds, 0, &a),
        "b": summary(rounds, 1, &b),
        "comparison": comparison,
    });
    let listed = rounds.iter().map(|[a, b]| json!({ "a": object(a), "b": object(b) })).collect();
    let table = table(settings, rounds);
    Outcome::new("pairs", settings, (listed, summary), (table, verdict), is_complete)
}

fn offered(settings: &Settings) -> f64 {
    settings.rate * settings.pairs as f64
}

fn sample(rounds: &[Round], at: usize, of: impl Fn(&Run) -> f64) -> Sample {
    rounds.iter().filter_map(|round| round.get(at)?.as_ref()).map(of).collect()
}

/// Whether both variants carried what was offered.
fn reached(settings: &Settings, rounds: &[Round]) -> String {
    let offered = offered(settings);
    let said = settings.variants.iter().enumerate().map(|(at, variant)| {
        let rate = sample(rounds, at, |run| run.loaded.arrived as f64 / run.loaded.seconds);
        match rate.median() {
            Some(rate) if rate >= offered * REACHED => format!("[{variant}] reached it"),
            Some(rate) => format!("[{variant}] did NOT reach it ({rate:.0}/s)"),
            None => format!("[{variant}] was not measured"),
        }
    });
    format!("{offered:.0} messages/s were offered: {}", said.collect::<Vec<_>>().join(", "))
}

fn table(settings: &Settings, rounds: &[Round]) -> String {
    let head: Vec<_> = FIGURES.iter().map(|(_, head, ..)| *head).collect();
    let mut table = Table::with_head(&[&["round", ""], &head[..]].concat());
    for (number, round) in rounds.iter().enumerate() {
        for (name, run) in ["A", "B"].into_iter().zip(round) {
            let cells =
                FIGURES.iter().map(|(.., digits, of)| figure(run.as_ref().map(of), *digits));
            table.row([(number + 1).to_string(), name.to_owned()].into_iter().chain(cells));
        }
    }
    for (at, name) in ["A", "B"].into_iter().enumerate() {
        let median = |(.., digits, of): &Figure| figure(sample(rounds, at, of).median(), *digits);
        let cells = FIGURES.iter().map(median);
        table.row(["median".to_owned(), name.to_owned()].into_iter().chain(cells));
    }
    let [a, b] = &settings.variants;
    format!(
        "A: {a}\nB: {b}\nThe broker's CPU time and context switches, and the machine's soft-irq \
         time, are for each message; delays from when a message was due.\n\n{table}\n{}",
        machine(rounds)
    )
}

fn machine(rounds: &[Round]) -> String {
    let head: Vec<_> = SHARES.iter().map(|(_, head, ..)| *head).collect();
    let mut table = Table::with_head(&[&["machine"], &head[..]].concat());
    for (at, name) in ["A", "B"].into_iter().enumerate() {
        let median = |(.., digits, of): &Figure| figure(sample(rounds, at, of).median(), *digits);
        table.row(std::iter::once(name.to_owned()).chain(SHARES.iter().map(median)));
    }
    table.to_string()
}

fn object(run: &Option<Run>) -> Value {
    let Some(run) = run else { return Value::Null };
    let value = |(name, _, _, of): &Figure| ((*name).to_owned(), json!(of(run)));
    let mut object: serde_json::Map<_, _> = FIGURES.iter().map(value).collect();
    object.insert("offered".into(), run.loaded.offered.into());
    object.insert("sent".into(), run.loaded.sent.into());
    object.insert("arrived".into(), run.loaded.arrived.into());
    let shares = SHARES.iter().map(value).collect::<serde_json::Map<_, _>>();
    object.insert("machine_percent".into(), shares.into());
    object.into()
}

fn summary(rounds: &[Round], at: usize, cost: &Sample) -> Value {
    let median =
        |(name, _, _, of): &Figure| ((*name).to_owned(), json!(sample(rounds, at, of).median()));
    let medians = FIGURES.iter().map(median).collect::<serde_json::Map<_, _>>();
    json!({ "cost_us": { "mean": cost.mean(), "sd": cost.deviation() }, "median": medians })
}
