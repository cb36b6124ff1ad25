//! Doubts about the figures, each with what to do about it.

use crate::distribution::LONGEST_NS;
use crate::duplicates::MEMORY_LIMIT;
use crate::names::{NAME_LIMIT, OTHERS};
use crate::report::Report;
use crate::table::ROW_LIMIT;

impl Report {
    /// What a reader should know before trusting the figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let counts = self.counts();
        let seconds = LONGEST_NS / 1_000_000_000;
        let counted = [
            (
                counts.negative,
                "differences are negative: clocks or stamps disagree; they are in \
              every figure with their sign"
                    .to_owned(),
            ),
            (
                counts.missing,
                "stamps were never filled in; the delays they bound are absent".to_owned(),
            ),
            (
                counts.no_common_clock,
                "differences are of two clocks that nothing ties together: \
              synchronise the hosts' clocks"
                    .to_owned(),
            ),
            (
                counts.saturated,
                format!(
                    "differences exceed {seconds} s; percentiles take them as \
              {seconds} s"
                ),
            ),
            (
                counts.overflowed,
                format!("timelines were full: {} stamps were dropped", counts.dropped),
            ),
            (counts.unknown, "records are of kinds that this version doesn't know".to_owned()),
            (
                counts.unlisted,
                format!(
                    "samples are left out: the table is full with {ROW_LIMIT} \
              rows; give fewer nodes at a time"
                ),
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let mut notes: Vec<_> = counted.map(|(count, what)| format!("{count} {what}")).collect();
        notes.extend(self.limits());
        notes
    }

    fn limits(&self) -> impl Iterator<Item = String> {
        let counts = self.counts();
        let (received, recorded) = (counts.received, counts.recorded());
        let forgot = self.recent.is_exceeded().then(|| {
            format!("duplicates more than {MEMORY_LIMIT} messages apart were not looked for")
        });
        let shared = self
            .names
            .is_exceeded()
            .then(|| format!("nodes beyond {NAME_LIMIT} are shown together as \"{OTHERS}\""));
        let lost = (received > recorded).then(|| {
            format!("the subscribers counted {received} messages, but the input holds {recorded}")
        });
        [forgot, shared, lost].into_iter().flatten()
    }
}
