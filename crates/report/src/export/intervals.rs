//! HdrHistogram's interval log, written while the records are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use hopline_timeline::{Delay, Stage};

use super::{failed, plain, v2};
use crate::distribution::LONGEST_NS;
use crate::error::Error;
use crate::names::Names;
use crate::table::Key;
use crate::units::Millis;
use crate::way::{Leg, LegKind, Way};

const NS_PER_SECOND: i64 = 1_000_000_000;

/// How many hops and stays get a tag; further ones aren't logged.
const TAG_LIMIT: usize = 64;

/// The log of one run.
///
/// A second begins with the first message that arrived in it. Messages of an earlier one that come
/// later, as from another file, count to the second that is being written.
#[derive(Debug)]
pub(crate) struct Intervals {
    path: PathBuf,
    out: BufWriter<File>,
    tags: Vec<(Key, String)>,
    /// Of the second that is being written, by the tag's place.
    histograms: BTreeMap<usize, Histogram<u64>>,
    /// The wall-clock second of the first message, and the second that is being written.
    seconds: Option<(i64, i64)>,
    error: Option<io::Error>,
}

impl Intervals {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(failed(path))?;
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            tags: Vec::new(),
            histograms: BTreeMap::new(),
            seconds: None,
            error: None,
        })
    }

    /// Logs a message.
    pub(crate) fn add(&mut self, way: &Way<'_>, key: impl Fn(&Leg<'_>) -> Key, names: &Names) {
        if let Some(wall_ns) = way.end_wall_ns() {
            self.go_to(wall_ns.div_euclid(NS_PER_SECOND));
        }
        way.legs().for_each(|leg| {
            let is_logged =
                matches!(leg.kind, LegKind::EndToEnd | LegKind::Hop | LegKind::Gap | LegKind::Stay);
            if is_logged && let Ok(delay) = way.delay(&leg) {
                self.record(key(&leg), delay, names);
            }
        });
    }

    fn record(&mut self, key: Key, Delay { delay_ns, .. }: Delay, names: &Names) {
        let known = self.tags.iter().position(|(known, _)| *known == key);
        let at = known.unwrap_or(self.tags.len());
        if at == TAG_LIMIT || delay_ns < 0 {
            return;
        }
        if known.is_none() {
            self.tags.push((key, tag(&key, names)));
        }
        let longest = LONGEST_NS.unsigned_abs();
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.histograms.entry(at)
            && let Ok(fresh) = Histogram::new_with_bounds(1, longest, 3)
        {
            vacant.insert(fresh);
        }
        if let Some(histogram) = self.histograms.get_mut(&at) {
            histogram.saturating_record(delay_ns.unsigned_abs());
        }
    }

    fn go_to(&mut self, second: i64) {
        let Some((first, now)) = self.seconds else {
            self.seconds = Some((second, second));
            self.attempt(|out, _| write_head(out, second));
            return;
        };
        if second > now {
            self.write_second();
            self.seconds = Some((first, second));
        }
    }

    fn write_second(&mut self) {
        let (first, now) = self.seconds.unwrap_or_default();
        for (at, mut histogram) in std::mem::take(&mut self.histograms) {
            if !histogram.is_empty() {
                self.attempt(|out, tags| {
                    let tag = tags.get(at).map_or("", |(_, tag)| tag.as_str());
                    write_line(out, tag, now.saturating_sub(first), &histogram)
                });
            }
            histogram.reset();
            self.histograms.insert(at, histogram);
        }
    }

    /// After the first error nothing more is written.
    fn attempt(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>, &[(Key, String)]) -> io::Result<()>,
    ) {
        if self.error.is_none() {
            self.error = write(&mut self.out, &self.tags).err();
        }
    }

    /// Writes the last second.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if self.seconds.is_none() {
            // Without a wall clock all is one second, the first of all.
            self.go_to(0);
        }
        self.write_second();
        self.attempt(|out, _| out.flush());
        self.error.map_or(Ok(()), |error| Err(failed(&self.path)(error)))
    }
}

fn write_head(out: &mut impl Write, second: i64) -> io::Result<()> {
    writeln!(out, "#[Logged by hopline-report]")?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    writeln!(out, "#[StartTime: {second}.000 (seconds since epoch)]")?;
    writeln!(out, "#[BaseTime: {second}.000 (seconds since epoch)]")?;
    let columns = ["StartTimestamp", "Interval_Length", "Interval_Max"];
    columns.iter().try_for_each(|column| write!(out, "\"{column}\","))?;
    writeln!(out, "\"Interval_Compressed_Histogram\"")
}

/// The greatest value is in milliseconds by the format's own convention.
fn write_line(
    out: &mut impl Write,
    tag: &str,
    second: i64,
    histogram: &Histogram<u64>,
) -> io::Result<()> {
    let max = Millis(i64::try_from(histogram.max()).unwrap_or(i64::MAX));
    writeln!(out, "Tag={tag},{second}.000,1.000,{max},{}", v2::encode(histogram)?)
}

/// Such as `hop-broker-subscriber` and `stay-broker-RECEIVE-SEND`.
pub(super) fn tag(key: &Key, names: &Names) -> String {
    let name = |node| names.text(node);
    let (from, to) = (key.from.node.map(name), key.to.node.map(name));
    let stages = [key.from.stage, key.to.stage].map(Stage::name_of);
    let parts = match key.kind {
        LegKind::Hop => ["hop", from.unwrap_or_default(), to.unwrap_or_default(), ""],
        LegKind::Gap => ["gap", from.unwrap_or_default(), to.unwrap_or_default(), ""],
        LegKind::Stay => ["stay", from.unwrap_or_default(), &stages[0], &stages[1]],
        _ => ["end_to_end", &stages[0], &stages[1], ""],
    };
    let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| plain(part));
    parts.collect::<Vec<_>>().join("-")
}
