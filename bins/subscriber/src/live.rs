//! The live line, and the summary at the end.

use hdrhistogram::Histogram;
use hopline_messenger::driver::Clock;
use hopline_messenger::timeline::{Instant, Stage, Timeline};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// One hour in nanoseconds: the longest delay that is told apart.
const DELAY_MAX_NS: u64 = 3_600_000_000_000;

/// Counts, and delays from CREATE to NEXT_EVENT.
pub(crate) struct Live {
    delays: Option<Histogram<u64>>,
    /// Delays that are negative or above an hour: counted, not in the percentiles.
    beyond: u64,
    pub(crate) received: u64,
    pub(crate) timelines: u64,
    pub(crate) malformed: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    shown: Instant,
    shown_at: u64,
    is_on: bool,
}

impl Live {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            delays: Histogram::new_with_bounds(1, DELAY_MAX_NS, 3).ok(),
            beyond: 0,
            received: 0,
            timelines: 0,
            malformed: 0,
            first: None,
            last: None,
            shown: Clock.now(),
            shown_at: 0,
            is_on: !quiet && io::stderr().is_terminal(),
        }
    }

    /// A message came at `now`; `timeline` if it carried one that can be read.
    pub(crate) fn count(&mut self, timeline: Option<&Timeline>, malformed: bool, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.received += 1;
        self.timelines += u64::from(timeline.is_some());
        self.malformed += u64::from(malformed);
        if let Some(delay_ns) = timeline.and_then(end_to_end_ns) {
            let recorded = match (u64::try_from(delay_ns), &mut self.delays) {
                (Ok(ns), Some(delays)) if ns <= DELAY_MAX_NS => delays.record(ns.max(1)).is_ok(),
                _ => false,
            };
            self.beyond += u64::from(!recorded);
        }
    }

    /// Shows the live line, at most once a second.
    pub(crate) fn show(&mut self) {
        let since = Clock.now().saturating_duration_since(self.shown);
        if !self.is_on || since < Duration::from_secs(1) {
            return;
        }
        let rate = (self.received - self.shown_at) as f64 / since.as_secs_f64();
        let mut line = format!("\r{} messages, {rate:.0}/s", self.received);
        if let Some(delays) = self.delays.as_ref().filter(|delays| !delays.is_empty()) {
            let us = |quantile| delays.value_at_quantile(quantile) as f64 / 1000.0;
            line += &format!(", e2e us p50 {:.0} p99 {:.0}", us(0.5), us(0.99));
        }
        let _ = write!(io::stderr(), "{line}   ");
        (self.shown, self.shown_at) = (Clock.now(), self.received);
    }

    /// From the first message to the last.
    pub(crate) fn took(&self) -> Duration {
        match (self.first, self.last) {
            (Some(first), Some(last)) => last.saturating_duration_since(first),
            _ => Duration::ZERO,
        }
    }

    /// The last word, for people.
    pub(crate) fn summary(&self) -> String {
        let seconds = self.took().as_secs_f64();
        let mut text = format!(
            "received {}  with timeline {}  malformed {}  over {seconds:.3} s",
            self.received, self.timelines, self.malformed
        );
        if let Some(delays) = self.delays.as_ref().filter(|delays| !delays.is_empty()) {
            let us = |quantile| delays.value_at_quantile(quantile) as f64 / 1000.0;
            text += &format!(
                "\nCREATE to NEXT_EVENT, us: p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  \
                 max {:.1}",
                us(0.5),
                us(0.9),
                us(0.99),
                us(0.999),
                delays.max() as f64 / 1000.0
            );
        }
        if self.beyond > 0 {
            text += &format!("\n{} delays negative or over an hour", self.beyond);
        }
        text
    }
}

/// From CREATE to NEXT_EVENT, if both are there and on one clock.
fn end_to_end_ns(timeline: &Timeline) -> Option<i64> {
    let find = |stage: Stage| timeline.stamps.iter().find(|stamp| stamp.stage == stage.code());
    let last = timeline.stamps.last()?;
    timeline.delay_ns(find(Stage::Create)?, last)
}
