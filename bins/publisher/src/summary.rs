//! What came of the run.

use hdrhistogram::Histogram;
use hopline_messenger::Counts;
use hopline_messenger::timeline::record::{ConnectionRecord, SideSummaryRecord};
use std::fmt;
use std::io;
use std::time::Duration;

/// One hour in nanoseconds: the longest delay that is told apart.
const DELAY_MAX_NS: u64 = 3_600_000_000_000;

/// Connections whose accounts are shown.
const SHOWN_MAX: usize = 4;

/// Counts and delays of a run.
#[derive(Debug)]
pub(crate) struct Summary {
    delays: Option<Histogram<u64>>,
    /// Delays above an hour, and negative ones: counted, not in the percentiles.
    beyond: u64,
    rate: Option<f64>,
    settled: bool,
    counts: Counts,
    put: u64,
    wanted: Option<u64>,
    took: Duration,
    failure: Option<String>,
    connections: Vec<ConnectionRecord>,
    side_records: Option<SideSummaryRecord>,
}

impl Summary {
    pub(crate) fn new(rate: Option<f64>, settled: bool) -> Self {
        Self {
            delays: Histogram::new_with_bounds(1, DELAY_MAX_NS, 3).ok(),
            beyond: 0,
            rate,
            settled,
            counts: Counts::default(),
            put: 0,
            wanted: None,
            took: Duration::ZERO,
            failure: None,
            connections: Vec::new(),
            side_records: None,
        }
    }

    /// One message ended after `delay_ns`.
    pub(crate) fn outcome(&mut self, delay_ns: i64) {
        let recorded = match (u64::try_from(delay_ns), &mut self.delays) {
            (Ok(ns), Some(delays)) if ns <= DELAY_MAX_NS => delays.record(ns.max(1)).is_ok(),
            _ => false,
        };
        self.beyond += u64::from(!recorded);
    }

    /// The run is over.
    pub(crate) fn end(
        &mut self,
        counts: impl Iterator<Item = Counts>,
        (put, wanted): (u64, Option<u64>),
        took: Duration,
        failure: Option<String>,
    ) {
        (self.put, self.wanted, self.took, self.failure) = (put, wanted, took, failure);
        for one in counts {
            self.counts.sent += one.sent;
            self.counts.accepted += one.accepted;
            self.counts.rejected += one.rejected;
            self.counts.released += one.released;
            self.counts.modified += one.modified;
            self.counts.settled += one.settled;
            self.counts.aborted += one.aborted;
        }
    }

    /// The accounts of the connections that were used.
    pub(crate) fn connections(&mut self, accounts: impl Iterator<Item = ConnectionRecord>) {
        self.connections.extend(accounts);
    }

    /// How many side records were written.
    pub(crate) fn side_records(&mut self, written: io::Result<SideSummaryRecord>) {
        match written {
            Ok(written) => self.side_records = Some(written),
            Err(error) => {
                self.failure.get_or_insert_with(|| format!("side records were lost: {error}"));
            }
        }
    }

    /// What passed over the first of the connections, for people who look closer.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &ConnectionRecord> {
        self.connections.iter().take(SHOWN_MAX)
    }

    fn unsettled(&self) -> u64 {
        self.put.saturating_sub(self.counts.ended() - self.counts.aborted)
    }

    /// Whether all that was asked for happened: all sent, and all taken.
    pub(crate) fn is_complete(&self) -> bool {
        let good = if self.settled { self.counts.settled } else { self.counts.accepted };
        self.failure.is_none() && good == self.put && self.wanted.is_none_or(|n| n == self.put)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(
            f,
            "sent {}  accepted {}  rejected {}  released {}  modified {}  settled {}  unsettled {}",
            counts.sent,
            counts.accepted,
            counts.rejected,
            counts.released,
            counts.modified,
            counts.settled,
            self.unsettled()
        )?;
        let seconds = self.took.as_secs_f64();
        let achieved = if seconds > 0.0 { self.put as f64 / seconds } else { 0.0 };
        write!(f, "rate {achieved:.1}/s over {seconds:.3} s")?;
        if let Some(rate) = self.rate {
            write!(f, " (wanted {rate}/s)")?;
        }
        if let Some(delays) = self.delays.as_ref().filter(|delays| !delays.is_empty()) {
            let us = |quantile| delays.value_at_quantile(quantile) as f64 / 1000.0;
            let what = if self.settled { "handed over" } else { "settled" };
            write!(
                f,
                "\nput until {what}, us: p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1}",
                us(0.5),
                us(0.9),
                us(0.99),
                us(0.999),
                delays.max() as f64 / 1000.0
            )?;
        }
        if self.beyond > 0 {
            write!(f, "\n{} delays out of range, not in the percentiles", self.beyond)?;
        }
        if let Some(SideSummaryRecord { records, dropped, .. }) = &self.side_records {
            write!(f, "\nside records {records}, dropped for want of room {dropped}")?;
        }
        if let Some(failure) = &self.failure {
            write!(f, "\nfailed: {failure}")?;
        }
        Ok(())
    }
}
