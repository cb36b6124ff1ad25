//! One run of the whole chain: broker, subscriber, publisher, and the timelines that come of it.

use crate::broker::Broker;
use crate::path::Path;
use crate::process::Process;
use crate::{Error, Programs};
use hopline_report::{Format, Late, Options};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// How long processes may take to start, to connect and to end, beside the run itself.
const GRACE: Duration = Duration::from_secs(20);

/// The node that messages go through.
const NODE: &str = "lab";

/// What to start, and with which options.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) programs: &'a Programs,
    /// The broker's file; its first listener is for the publisher, its last for the subscriber.
    pub(crate) broker: String,
    pub(crate) publisher: Vec<String>,
    pub(crate) subscriber: Vec<String>,
    /// How long the messages take, if all goes well.
    pub(crate) length: Duration,
    /// Between the clients and the broker; loopback, if there is none.
    pub(crate) path: Option<&'a Path>,
    pub(crate) late: Duration,
    /// Whether broker and publisher write side records.
    pub(crate) side_records: bool,
    /// A folder, to be made, where what was recorded stays.
    pub(crate) keep: Option<PathBuf>,
}

/// What one run showed, from CREATE to the last stamp.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) messages: u64,
    #[serde(serialize_with = "decimal")]
    pub(crate) mean_ns: i64,
    #[serde(serialize_with = "decimal")]
    pub(crate) p50_ns: i64,
    #[serde(serialize_with = "decimal")]
    pub(crate) p99_ns: i64,
    #[serde(serialize_with = "decimal")]
    pub(crate) max_ns: i64,
    /// From the first message's arrival to the last one's.
    #[serde(serialize_with = "decimal")]
    pub(crate) took_ns: i64,
    /// Messages that took longer than the limit, from when they were due if there was a schedule.
    pub(crate) late: u64,
    /// Late messages by cause.
    pub(crate) causes: BTreeMap<String, u64>,
}

fn decimal<S: serde::Serializer>(ns: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ns)
}

impl Chain<'_> {
    /// Makes the run.
    pub(crate) async fn run(&self) -> Result<Measured, Error> {
        let folder = TempDir::new().map_err(Error::file(std::env::temp_dir()))?;
        let kept = match &self.keep {
            Some(keep) => std::fs::create_dir_all(keep).map(|()| keep.clone()),
            None => Ok(folder.path().to_owned()),
        };
        let place = kept.map_err(Error::file(self.keep.as_deref().unwrap_or(folder.path())))?;
        let records = place.join("subscriber.jsonl");
        let namespace = |end| self.path.and_then(|path| path.namespace(end));
        let sides = ["publisher.jsonl", "broker.jsonl"].map(|name| place.join(name));
        let [publisher_side, broker_side] = &sides;
        let side = self.side_records.then(|| format!("side_records = {broker_side:?}\n"));
        let file = format!("{}{}", side.unwrap_or_default(), self.broker);
        let broker = Broker::start_in(namespace(1), self.programs, &file).await?;
        let url = |end| format!("{}/{NODE}", broker.url(end));
        let mut command = self.programs.command_in(namespace(0), "hopline-subscribe");
        command.args(&self.subscriber).arg("--timeline").arg(&records).arg(url(1));
        let subscriber = Process::start("hopline-subscribe", command)?;
        let mut command = self.programs.command_in(namespace(0), "hopline-publish");
        if self.side_records {
            command.arg("--side-records").arg(publisher_side);
        }
        command.args(&self.publisher).arg(url(0));
        let publisher = Process::start("hopline-publish", command)?;
        let limit = self.length.saturating_add(GRACE);
        let (published, subscribed) =
            tokio::join!(publisher.finish(limit), subscriber.finish(limit));
        published.and(subscribed)?;
        broker.end().await?;
        let sides = if self.side_records { &sides[..] } else { &[] };
        measure(&records, sides, self.late)
    }
}

/// Reads the records as `hopline-report` does.
fn measure(
    records: &std::path::Path,
    sides: &[PathBuf],
    late: Duration,
) -> Result<Measured, Error> {
    let late_ns = i64::try_from(late.as_nanos()).unwrap_or(i64::MAX);
    let options = Options {
        files: [&[records.to_owned()], sides].concat(),
        format: Format::Json,
        late: Late::Over(late_ns),
        ..Options::default()
    };
    let (mut report, mut complaints) = (Vec::new(), Vec::new());
    hopline_report::run(&options, std::io::empty(), &mut report, &mut complaints)?;
    let report: Value =
        serde_json::from_slice(&report).map_err(|error| Error::Records(error.to_string()))?;
    let entries = report["end_to_end"].as_array();
    let whole = entries.into_iter().flatten().find(|entry| entry["from_stage"] == "CREATE");
    let Some(whole) = whole else {
        let said = String::from_utf8_lossy(&complaints).trim().to_owned();
        return Err(Error::Records(if said.is_empty() { "none came".into() } else { said }));
    };
    let ns = |name: &str| whole[name].as_str().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let causes = causes(&report);
    Ok(Measured {
        messages: whole["count"].as_u64().unwrap_or(0),
        mean_ns: ns("mean_ns"),
        p50_ns: ns("p50_ns"),
        p99_ns: ns("p99_ns"),
        max_ns: ns("max_ns"),
        took_ns: took_ns(records)?,
        late: causes.values().sum(),
        causes,
    })
}

/// From DUE where there is one: a message that was made late has its cause too.
fn causes(report: &Value) -> BTreeMap<String, u64> {
    let rows = report["late"]["causes"].as_array().into_iter().flatten();
    let whole = rows.filter(|row| row["kind"] == "late_end_to_end");
    whole
        .filter_map(|row| Some((row["cause"].as_str()?.to_owned(), row["count"].as_u64()?)))
        .collect()
}

/// The summary is the last record.
fn took_ns(records: &std::path::Path) -> Result<i64, Error> {
    let text = std::fs::read_to_string(records).map_err(Error::file(records))?;
    let summary: Option<Value> =
        text.lines().next_back().and_then(|line| serde_json::from_str(line).ok());
    let took = summary.filter(|record| record["hopline"] == "summary");
    let took = took.and_then(|record| record["duration_ns"].as_str()?.parse().ok());
    took.ok_or_else(|| Error::Records("they have no summary at their end".into()))
}
