//! What pictures need beyond the figures: delays over time, and an ordinary message.

use crate::cause::Cause;
use crate::traces::Trace;

/// Columns of the picture of delays over time.
pub(crate) const COLUMN_LIMIT: usize = 256;

/// The slowest messages of a column that are kept.
const POINT_LIMIT: usize = 4;

/// Messages from the whole of the run, of which the most ordinary one is shown.
const SAMPLE_LIMIT: usize = 64;

/// Of bounded size, however long the run.
#[derive(Debug)]
pub(crate) struct Gallery {
    pub(crate) series: Series,
    sample: Sample,
}

impl Gallery {
    pub(crate) fn new() -> Self {
        let series = Series { first_ns: None, width_ns: 1_000_000, columns: Vec::new() };
        Self { series, sample: Sample { every: 1, seen: 0, kept: Vec::new() } }
    }

    /// Takes a message with its time by the wall clock, its delay from end to end and what most of
    /// that went into.
    pub(crate) fn add(&mut self, trace: &Trace, wall_ns: Option<i64>, delay_ns: i64, cause: Cause) {
        if let Some(wall_ns) = wall_ns {
            self.series.add(wall_ns, Point { since_ns: 0, delay_ns, cause });
        }
        self.sample.add(trace, delay_ns);
    }

    /// A message whose delay is close to the median.
    pub(crate) fn ordinary(&self, median_ns: i64) -> Option<&Trace> {
        let kept = self.sample.kept.iter();
        let nearest = kept.min_by_key(|(delay_ns, _)| delay_ns.abs_diff(median_ns));
        nearest.map(|(_, trace)| trace)
    }
}

/// A message in the picture of delays over time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Since the first message.
    pub(crate) since_ns: i64,
    pub(crate) delay_ns: i64,
    pub(crate) cause: Cause,
}

/// The slowest messages of each column; columns become wider as the run becomes longer.
#[derive(Debug)]
pub(crate) struct Series {
    first_ns: Option<i64>,
    width_ns: i64,
    columns: Vec<Vec<Point>>,
}

impl Series {
    fn add(&mut self, wall_ns: i64, point: Point) {
        let first_ns = *self.first_ns.get_or_insert(wall_ns);
        let since_ns = wall_ns.saturating_sub(first_ns).max(0);
        while self.column(since_ns) >= COLUMN_LIMIT {
            self.widen();
        }
        let at = self.column(since_ns);
        if self.columns.len() <= at {
            self.columns.resize(at + 1, Vec::new());
        }
        if let Some(column) = self.columns.get_mut(at) {
            column.push(Point { since_ns, ..point });
            keep_slowest(column);
        }
    }

    fn column(&self, since_ns: i64) -> usize {
        usize::try_from(since_ns / self.width_ns).unwrap_or(usize::MAX)
    }

    /// Makes one column of each two.
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let merged = self.columns.chunks(2).map(|pair| {
            let mut column = pair.concat();
            keep_slowest(&mut column);
            column
        });
        self.columns = merged.collect();
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = &Point> {
        self.columns.iter().flatten()
    }
}

fn keep_slowest(column: &mut Vec<Point>) {
    if column.len() > POINT_LIMIT {
        column.sort_by_key(|point| std::cmp::Reverse(point.delay_ns));
        column.truncate(POINT_LIMIT);
    }
}

/// Every n-th message, with a greater n whenever there are too many.
#[derive(Debug)]
struct Sample {
    every: u64,
    seen: u64,
    kept: Vec<(i64, Trace)>,
}

impl Sample {
    fn add(&mut self, trace: &Trace, delay_ns: i64) {
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == SAMPLE_LIMIT {
                let mut is_odd = true;
                self.kept.retain(|_| {
                    is_odd = !is_odd;
                    !is_odd
                });
                self.every = self.every.saturating_mul(2);
            }
            if self.seen.is_multiple_of(self.every) {
                self.kept.push((delay_ns, trace.clone()));
            }
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_timeline::Timeline;

    fn trace(seq: u64) -> Trace {
        let timeline = Timeline::default();
        Trace { seq, redelivered: false, duplicate: false, octets: 0, timeline, judged: vec![] }
    }

    fn gallery(delays: impl Iterator<Item = (i64, i64)>) -> Gallery {
        let mut gallery = Gallery::new();
        for (seq, (wall_ns, delay_ns)) in (0..).zip(delays) {
            gallery.add(&trace(seq), Some(wall_ns), delay_ns, Cause::Hop);
        }
        gallery
    }

    #[test]
    fn a_long_run_takes_no_more_room_and_keeps_its_slowest() {
        let hour = (0..36_000).map(|n| (n * 100_000_000, if n == 20_000 { 77 } else { 1 }));
        let gallery = gallery(hour);
        assert!(gallery.series.points().count() <= COLUMN_LIMIT * POINT_LIMIT);
        let slowest = gallery.series.points().max_by_key(|point| point.delay_ns).unwrap();
        assert_eq!((slowest.delay_ns, slowest.since_ns), (77, 2_000_000_000_000));
        assert!(gallery.sample.kept.len() <= SAMPLE_LIMIT);
    }

    #[test]
    fn clocks_that_jump_neither_hang_nor_panic() {
        let jumps = [0, i64::MAX, i64::MIN, -5, 5].into_iter().map(|wall| (wall, 1));
        assert_eq!(gallery(jumps).series.points().count(), 5);
    }

    #[test]
    fn the_ordinary_message_is_the_one_nearest_to_the_median() {
        let gallery = gallery((0..1_000).map(|n| (n, n)));
        let seq = gallery.ordinary(500).unwrap().seq;
        assert!(seq.abs_diff(500) <= 16, "{seq}");
    }
}
