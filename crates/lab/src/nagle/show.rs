//! The experiment's table, and its verdict.

use super::{Pace, Round, Settings};
use crate::chain::Measured;
use crate::table::{Table, figure, percent};
use crate::verdict::{Words, sentence};
use crate::{Comparison, Outcome, Sample};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn outcome(settings: &Settings, rounds: &[Round], is_complete: bool) -> Outcome {
    let subject = Subject::of(settings);
    let (off, on) = (subject.sample(rounds, |it| &it.off), subject.sample(rounds, |it| &it.on));
    let comparison = Comparison::new(&off, &on);
    let verdict = sentence(&subject.words(), comparison.as_ref(), off.len().min(on.len()));
    let causes = (causes(rounds, |it| &it.off), causes(rounds, |it| &it.on));
    let table = format!("{}\n{}", table(&subject, rounds, [&off, &on]), late(settings, &causes));
    let listed = rounds.iter().map(|round| json!({ "off": round.off, "on": round.on }));
    let summary = json!({
        "figure": subject.name(),
        "off": summary(&off, &causes.0),
        "on": summary(&on, &causes.1),
        "comparison": comparison,
    });
    let parts = (listed.collect(), summary);
    Outcome::new("nagle", settings, parts, (table, verdict), is_complete)
}

/// What is compared.
#[derive(Copy, Clone)]
enum Subject {
    /// The mean delay of a run, in ms.
    Delay,
    /// How long a run took, in s.
    Time,
}

impl Subject {
    fn of(settings: &Settings) -> Self {
        match settings.pace {
            Pace::Rate(_) => Self::Delay,
            Pace::FlatOut => Self::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Delay => "mean delay from CREATE to NEXT_EVENT in ms",
            Self::Time => "seconds from the first message to the last",
        }
    }

    fn words(self) -> Words<'static> {
        let (what, unit) = match self {
            Self::Delay => ("mean delay", "ms"),
            Self::Time => ("time for all messages", "s"),
        };
        Words {
            a: "TCP_NODELAY off (Nagle)",
            b: "TCP_NODELAY on",
            what,
            unit,
            better: ["faster", "times as fast"],
        }
    }

    fn figure(self, run: &Measured) -> f64 {
        match self {
            Self::Delay => run.mean_ns as f64 / 1e6,
            Self::Time => run.took_ns as f64 / 1e9,
        }
    }

    fn sample(self, rounds: &[Round], half: fn(&Round) -> &Option<Measured>) -> Sample {
        rounds.iter().filter_map(|it| half(it).as_ref()).map(|run| self.figure(run)).collect()
    }
}

fn table(subject: &Subject, rounds: &[Round], [off, on]: [&Sample; 2]) -> String {
    let mut table = Table::new([
        "round", "off", "p50 ms", "p99 ms", "max ms", "late", "on", "p50 ms", "p99 ms", "max ms",
        "late",
    ]);
    for (number, round) in rounds.iter().enumerate() {
        let halves = [&round.off, &round.on].into_iter().flat_map(|half| cells(*subject, half));
        table.row(std::iter::once((number + 1).to_string()).chain(halves));
    }
    let total = |name: &str, off: Option<f64>, on: Option<f64>| {
        let blank = || std::iter::repeat_n(String::new(), 4);
        let first = [name.to_owned(), figure(off, 3)].into_iter().chain(blank());
        first.chain(std::iter::once(figure(on, 3))).collect::<Vec<_>>()
    };
    table.row(total("mean", off.mean(), on.mean()));
    table.row(total("sd", off.deviation(), on.deviation()));
    format!("off, on: {}; TCP_NODELAY off and on\n\n{table}", subject.name())
}

fn cells(subject: Subject, half: &Option<Measured>) -> Vec<String> {
    let Some(run) = half else { return vec!["-".to_owned(); 5] };
    let ms = |ns: i64| figure(Some(ns as f64 / 1e6), 3);
    vec![
        figure(Some(subject.figure(run)), 3),
        ms(run.p50_ns),
        ms(run.p99_ns),
        ms(run.max_ns),
        percent(run.late, run.messages),
    ]
}

/// Messages, and the late ones of them by cause.
struct Causes {
    messages: u64,
    late: u64,
    by_cause: BTreeMap<String, u64>,
}

fn causes(rounds: &[Round], half: fn(&Round) -> &Option<Measured>) -> Causes {
    let mut all = Causes { messages: 0, late: 0, by_cause: BTreeMap::new() };
    for run in rounds.iter().filter_map(|round| half(round).as_ref()) {
        all.messages += run.messages;
        all.late += run.late;
        for (cause, count) in &run.causes {
            *all.by_cause.entry(cause.clone()).or_default() += count;
        }
    }
    all
}

fn late(settings: &Settings, (off, on): &(Causes, Causes)) -> String {
    let limit = settings.late_us as f64 / 1000.0;
    let mut table = Table::new(["cause", "off", "share", "on", "share"]);
    let names: std::collections::BTreeSet<_> =
        off.by_cause.keys().chain(on.by_cause.keys()).collect();
    for name in names {
        let cells = |causes: &Causes| {
            let count = causes.by_cause.get(name).copied().unwrap_or(0);
            [count.to_string(), percent(count, causes.late)]
        };
        table.row(std::iter::once(name.clone()).chain(cells(off)).chain(cells(on)));
    }
    let share = |causes: &Causes| percent(causes.late, causes.messages);
    let head =
        format!("late, over {limit} ms: off {}, on {} of the messages", share(off), share(on));
    if off.late + on.late == 0 { format!("{head}\n") } else { format!("{head}\n\n{table}") }
}

fn summary(sample: &Sample, causes: &Causes) -> Value {
    json!({
        "rounds": sample.len(),
        "mean": sample.mean(),
        "sd": sample.deviation(),
        "messages": causes.messages,
        "late": causes.late,
        "causes": causes.by_cause,
    })
}
