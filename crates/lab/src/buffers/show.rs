//! The sweep's table, and its verdict.

use super::{Point, Run, Runs, Settings};
use crate::table::{Table, figure};
use crate::{Comparison, Outcome};
use hopline_messenger::timeline::record::{ConnectionRecord, TcpRecord};
use serde_json::{Value, json};

/// A figure of a run: its name in JSON, its head in the table, digits, and how it is got.
type Figure = (&'static str, &'static str, usize, fn(&Run) -> f64);

const FIGURES: &[Figure] = &[
    ("rate", "msg/s", 0, |run| run.flat_out.arrived as f64 / run.flat_out.seconds),
    ("segments", "segments/msg", 3, |run| tcp(run, |_, tcp| data_segments(tcp))),
    ("acks", "pure ACKs/1000", 1, |run| 1e3 * tcp(run, pure_acks)),
    ("writes", "writes/msg", 3, |run| per_transfer(run, 0, |account| account.io.writes as f64)),
    ("reads", "reads/msg", 3, |run| per_transfer(run, 1, |account| account.io.reads as f64)),
    ("flows", "flows/1000", 1, |run| {
        1e3 * per_transfer(run, 1, |account| account.frames.flows_out as f64)
    }),
    ("window_limited", "no window %", 1, window_limited),
    ("p50_us", "p50 us", 0, |run| run.at_rate.delays.value_at_quantile(0.5) as f64 / 1e3),
    ("p99_us", "p99 us", 0, |run| run.at_rate.delays.value_at_quantile(0.99) as f64 / 1e3),
];

/// Something of the clients' connections at one end, for each transfer.
fn per_transfer(run: &Run, end: usize, of: impl Fn(&ConnectionRecord) -> f64) -> f64 {
    let accounts = run.flat_out.accounts.get(end).map_or(&[][..], Vec::as_slice);
    let transfers: u64 = accounts
        .iter()
        .map(|account| account.frames.transfers_in + account.frames.transfers_out)
        .sum();
    accounts.iter().map(of).sum::<f64>() / transfers.max(1) as f64
}

/// Something of TCP on both hops, for each transfer of a hop: the mean of both.
fn tcp(run: &Run, of: fn(usize, &TcpRecord) -> f64) -> f64 {
    let at =
        |end| per_transfer(run, end, |it| it.tcp.as_ref().map_or(f64::NAN, |tcp| of(end, tcp)));
    (at(0) + at(1)) / 2.0
}

fn difference(all: Option<u32>, data: Option<u32>) -> f64 {
    all.zip(data).map_or(f64::NAN, |(all, data)| all.saturating_sub(data).into())
}

fn data_segments(tcp: &TcpRecord) -> f64 {
    let sum = |out: u32, into: u32| f64::from(out) + f64::from(into);
    tcp.data_segments_out.zip(tcp.data_segments_in).map_or(f64::NAN, |(out, into)| sum(out, into))
}

/// Of those who take messages: the publisher's peer, and the subscriber itself.
fn pure_acks(end: usize, tcp: &TcpRecord) -> f64 {
    match end {
        0 => difference(tcp.segments_in, tcp.data_segments_in),
        _ => difference(tcp.segments_out, tcp.data_segments_out),
    }
}

/// The share of its time in which the publisher had something to send and no window for it.
fn window_limited(run: &Run) -> f64 {
    let tcp = run.flat_out.accounts[0].iter().filter_map(|account| account.tcp.as_ref());
    let times = tcp.filter_map(|tcp| Some((tcp.window_limited_us?, tcp.busy_us?)));
    let (limited, busy) = times.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    100.0 * limited as f64 / busy.max(1) as f64
}

/// What is compared: less is better.
fn time_us(run: &Run) -> f64 {
    1e6 * run.flat_out.seconds / run.flat_out.arrived.max(1) as f64
}

pub(super) fn outcome(settings: &Settings, all: &[Runs], is_complete: bool) -> Outcome {
    let table = format!(
        "Medians of the rounds. msg/s, segments, ACKs, writes, reads and flows flat out; ACKs and \
         segments are means of both hops, and window updates are among the ACKs. Delays at {} \
         messages/s, from when a message was due.\n\n{}",
        settings.rate,
        table(all)
    );
    let compared = compare(all);
    let rounds = all.iter().map(|runs| {
        let listed = runs.runs.iter().map(object).collect::<Vec<_>>();
        json!({ "point": runs.point.to_string(), "runs": listed })
    });
    let comparisons = compared
        .iter()
        .map(|(point, comparison)| json!({ "point": point.to_string(), "comparison": comparison }));
    let summary = json!({
        "figure": "time for each message flat out in us, against the defaults",
        "comparisons": comparisons.collect::<Vec<_>>(),
    });
    let parts = (rounds.collect(), summary);
    Outcome::new("buffers", settings, parts, (table, verdict(&compared)), is_complete)
}

fn table(all: &[Runs]) -> String {
    let head: Vec<_> = FIGURES.iter().map(|(_, head, ..)| *head).collect();
    let mut table = Table::with_head(&[&["setting"], &head[..]].concat());
    for runs in all {
        let cells =
            FIGURES.iter().map(|(.., digits, of)| figure(runs.sample(of).median(), *digits));
        table.row(std::iter::once(runs.point.to_string()).chain(cells));
    }
    table.to_string()
}

fn object(run: &Run) -> Value {
    let value = |(name, _, _, of): &Figure| ((*name).to_owned(), json!(of(run)));
    FIGURES.iter().map(value).collect::<serde_json::Map<_, _>>().into()
}

/// Each point against the defaults.
fn compare(all: &[Runs]) -> Vec<(Point, Comparison)> {
    let defaults = all.iter().find(|runs| runs.point == Point::Defaults);
    let Some(defaults) = defaults.map(|runs| runs.sample(time_us)) else { return Vec::new() };
    let others = all.iter().filter(|runs| runs.point != Point::Defaults);
    let compared =
        others.map(|runs| Some((runs.point, Comparison::new(&defaults, &runs.sample(time_us))?)));
    compared.flatten().collect()
}

fn verdict(compared: &[(Point, Comparison)]) -> String {
    let sure = compared.iter().filter(|(_, comparison)| comparison.is_sure());
    let said: Vec<_> = sure
        .map(|(point, Comparison { mean_a, mean_b, p, .. })| match mean_b < mean_a {
            true => format!("{point} is {:.2} times as fast (p = {p:.4})", mean_a / mean_b),
            false => format!("{point} is {:.2} times as SLOW (p = {p:.4})", mean_b / mean_a),
        })
        .collect();
    let count = compared.len();
    match said.is_empty() {
        true => format!("none of {count} settings differs surely from the defaults, flat out"),
        false => format!(
            "flat out, against the defaults: {}; of {count} settings that change nothing about one \
             in 20 would look like that",
            said.join(", ")
        ),
    }
}
