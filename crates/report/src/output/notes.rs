//! Doubts about the figures, each with what to do about it.

use crate::distribution::LONGEST_NS;
use crate::duplicates::MEMORY_LIMIT;
use crate::names::{NAME_LIMIT, OTHERS};
use crate::output::REFUSED;
use crate::report::Report;
use crate::table::{ROW_LIMIT, Row};

impl Report {
    /// What a reader should know before trusting the figures.
    pub(crate) fn notes(&self) -> Vec<String> {
        let counts = self.counts();
        let mut notes = Vec::new();
        let mut note = |count: u64, what: &str, so: &str| {
            if count > 0 {
                notes.push(format!("{what} ({count}): {so}"));
            }
        };
        note(counts.negative, "negative differences", "stamps or clocks contradict each other");
        note(counts.missing, "stamps never filled in", "the delays around them are absent");
        let untied = "differences of two clocks that nothing ties together";
        note(counts.no_common_clock, untied, "synchronise the hosts' clocks");
        let seconds = LONGEST_NS / 1_000_000_000;
        note(counts.saturated, "saturated differences", &format!("they exceed {seconds} s"));
        let dropped = format!("{} stamps were dropped", counts.dropped);
        note(counts.overflowed, "full timelines", &dropped);
        note(counts.unknown, "records of unknown kinds", "a newer version may read them");
        let full = format!("the table holds at most {ROW_LIMIT} rows");
        note(counts.unlisted, "samples left out", &full);
        let unused = "not of messages that came after them in the input, or doubled";
        note(counts.kernel_unused, "kernel records left out", unused);
        let so = "the programs that wrote them had no room; they are missing here";
        note(counts.kernel_dropped, "kernel records dropped", so);
        let doubtful = |row: &&Row| {
            let median = row.delays.percentile_ns(500);
            median.is_some_and(|ns| !row.is_significant(ns))
        };
        let refused = self.lines().iter().map(|line| line.row).filter(doubtful).count() as u64;
        let what = format!("legs whose median the clocks may be wrong by, shown as {REFUSED}");
        note(refused, &what, "let the hosts exchange messages for longer, or synchronise them");
        notes.extend(self.nagle_notes());
        notes.extend(self.limits());
        notes
    }

    fn limits(&self) -> impl Iterator<Item = String> {
        let counts = self.counts();
        let (received, recorded) = (counts.received, counts.recorded());
        let forgot = self.recent.is_exceeded().then(|| {
            format!("duplicates more than {MEMORY_LIMIT} messages apart were not looked for")
        });
        let shared = self.names.is_exceeded().then(|| {
            format!("nodes beyond the first {NAME_LIMIT} are shown together as \"{OTHERS}\"")
        });
        let lost = (received > recorded).then(|| {
            format!("the subscribers counted {received} messages, the input holds {recorded}")
        });
        [forgot, shared, lost].into_iter().flatten()
    }
}
