//! One row of figures for each leg of the way.

use std::collections::HashMap;

use hdrhistogram::CreationError;
use hopline_timeline::{Delay, Stamp, Unmeasured};

use crate::cause::Plateau;
use crate::distribution::Distribution;
use crate::names::NameId;
use crate::way::{Leg, LegKind};

/// How many rows are kept; samples of further ones are only counted. A row takes 250 KiB at most.
pub const ROW_LIMIT: usize = 512;

/// A stage, and at which node; end to end, nodes aren't told apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Point {
    pub(crate) node: Option<NameId>,
    pub(crate) stage: u8,
}

/// What a row is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) kind: LegKind,
    pub(crate) from: Point,
    pub(crate) to: Point,
    /// The detail octet of a [`LegKind::Wait`]; in the table of causes, the code of the
    /// [`Cause`](crate::cause::Cause).
    pub(crate) why: Option<u8>,
}

impl Point {
    pub(crate) fn of(names: &[NameId], stamp: &Stamp) -> Self {
        Point { node: names.get(stamp.node).copied(), stage: stamp.stage }
    }
}

impl Key {
    /// End to end, and before the origin, the nodes aren't told apart: it is one row for all.
    pub(crate) fn of(names: &[NameId], leg: &Leg<'_>) -> Self {
        let of_node = !matches!(leg.kind, LegKind::EndToEnd | LegKind::SendLag);
        let names = if of_node { names } else { &[] };
        let why = (leg.kind == LegKind::Wait).then_some(leg.to.detail);
        let (from, to) = (Point::of(names, leg.from), Point::of(names, leg.to));
        Key { kind: leg.kind, from, to, why }
    }
}

/// The figures of one leg.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) delays: Distribution,
    /// Samples without a delay: a stamp wasn't filled in.
    pub(crate) missing: u64,
    /// Samples without a delay: two clocks that nothing ties together.
    pub(crate) no_common_clock: u64,
    /// The greatest error bound of a delay between two clocks; 0 where all were of one clock.
    pub(crate) error_bound_ns: u64,
    out_of_range: u64,
    shared_ns: i128,
    /// Of a [`LegKind::Hop`]: whether its delays look like Nagle's algorithm.
    pub(crate) plateau: Plateau,
    /// Which row was asked for after this one the last time.
    follower: usize,
}

impl Row {
    fn new(key: Key, delays: Distribution) -> Self {
        Self {
            key,
            delays,
            missing: 0,
            no_common_clock: 0,
            error_bound_ns: 0,
            out_of_range: 0,
            shared_ns: 0,
            plateau: Plateau::default(),
            follower: 0,
        }
    }

    fn add(&mut self, delay: Result<Delay, Unmeasured>, shares: bool) {
        match delay {
            Ok(Delay { delay_ns, error_bound_ns }) => {
                self.delays.record(delay_ns);
                self.error_bound_ns = self.error_bound_ns.max(error_bound_ns);
                self.shared_ns += if shares { i128::from(delay_ns) } else { 0 };
            }
            Err(Unmeasured::Missing) => self.missing += 1,
            Err(Unmeasured::Clocks) => self.no_common_clock += 1,
            Err(Unmeasured::Range) => self.out_of_range += 1,
        }
    }

    /// Whether a figure of the row says anything: the clocks can't be wrong by more.
    pub(crate) fn is_significant(&self, ns: i64) -> bool {
        self.error_bound_ns == 0 || self.error_bound_ns <= ns.unsigned_abs()
    }

    /// How often the leg was met, measured or not.
    pub(crate) fn met(&self) -> u64 {
        self.delays.count() + self.missing + self.no_common_clock + self.out_of_range
    }

    /// Delays beyond the range; those beyond 64 bits enter no other figure.
    pub(crate) fn saturated(&self) -> u64 {
        self.delays.saturated() + self.out_of_range
    }

    /// The time that the leg took of messages whose delay from end to end is known.
    pub(crate) fn shared_ns(&self) -> i128 {
        self.shared_ns
    }
}

/// The rows, in the order in which they were first met.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
    index: HashMap<Key, usize>,
    /// The row asked for last.
    last: usize,
    blank: Distribution,
    unlisted: u64,
}

impl Table {
    pub(crate) fn new() -> Result<Self, CreationError> {
        let blank = Distribution::new()?;
        Ok(Self { rows: Vec::new(), index: HashMap::new(), last: 0, blank, unlisted: 0 })
    }

    /// Adds a sample. `shares`: its message's delay from end to end is known.
    pub(crate) fn add(&mut self, key: Key, delay: Result<Delay, Unmeasured>, shares: bool) {
        match self.row(key) {
            Some(row) => row.add(delay, shares),
            None => self.unlisted += 1,
        }
    }

    /// Most messages take the way of the one before: the row is looked for where it was then.
    fn row(&mut self, key: Key) -> Option<&mut Row> {
        let guess = self.rows.get(self.last).map_or(0, |last| last.follower);
        let at = match self.rows.get(guess) {
            Some(row) if row.key == key => guess,
            _ => self.look_up(key)?,
        };
        if let Some(last) = self.rows.get_mut(self.last) {
            last.follower = at;
        }
        self.last = at;
        self.rows.get_mut(at)
    }

    fn look_up(&mut self, key: Key) -> Option<usize> {
        let next = self.rows.len();
        if let Some(&at) = self.index.get(&key) {
            return Some(at);
        }
        (next < ROW_LIMIT).then(|| {
            self.index.insert(key, next);
            self.rows.push(Row::new(key, self.blank.fresh()));
            next
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// The row of a leg that was met before.
    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Row> {
        self.rows.get_mut(*self.index.get(key)?)
    }

    /// The row of a leg.
    pub(crate) fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(*self.index.get(key)?)
    }

    pub(crate) fn of(&self, kind: LegKind) -> impl Iterator<Item = &Row> {
        self.rows().filter(move |row| row.key.kind == kind)
    }

    /// Samples for which there was no row left.
    pub(crate) fn unlisted(&self) -> u64 {
        self.unlisted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    fn key(stage: u8, node: &str, names: &mut Names) -> Key {
        let point = Point { node: Some(names.id(node)), stage };
        Key { kind: LegKind::Stage, from: point, to: point, why: None }
    }

    #[test]
    fn rows_beyond_the_limit_are_counted_and_cost_nothing() {
        let mut names = Names::default();
        let mut table = Table::new().unwrap();
        let nanosecond = Ok(Delay { delay_ns: 1, error_bound_ns: 0 });
        for n in 0..ROW_LIMIT + 3 {
            let key = key(1, &format!("node-{n}"), &mut names);
            table.add(key, nanosecond, true);
            table.add(key, nanosecond, true);
        }
        assert_eq!(table.rows().count(), ROW_LIMIT);
        assert_eq!(table.unlisted(), 6);
    }

    #[test]
    fn a_row_counts_what_it_could_not_measure() {
        let mut names = Names::default();
        let mut table = Table::new().unwrap();
        let key = key(1, "node", &mut names);
        table.add(key, Ok(Delay { delay_ns: 5, error_bound_ns: 30 }), true);
        table.add(key, Ok(Delay { delay_ns: -7, error_bound_ns: 20 }), false);
        table.add(key, Err(Unmeasured::Missing), true);
        table.add(key, Err(Unmeasured::Clocks), true);
        table.add(key, Err(Unmeasured::Range), true);
        let row = table.rows().next().unwrap();
        assert_eq!((row.met(), row.delays.count(), row.delays.negative()), (5, 2, 1));
        assert_eq!((row.missing, row.no_common_clock, row.saturated()), (1, 1, 1));
        assert_eq!((row.error_bound_ns, row.shared_ns()), (30, 5));
    }
}
