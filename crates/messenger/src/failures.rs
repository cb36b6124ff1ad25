//! Failures of connections and links, until the calls that they concern have told them.

use crate::Error;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Failures that are kept; the oldest go first.
const FAILURES_MAX: usize = 16;

/// How one sender or subscription ended, for the call that waits for it to begin.
pub(crate) type Fate = Arc<OnceLock<Error>>;

#[derive(Debug)]
struct Failure {
    number: u64,
    error: Error,
    is_told: bool,
}

/// A failure is told to every call that waits when it happens; if there is none, to the next one.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    kept: VecDeque<Failure>,
    next: u64,
}

impl Failures {
    pub(crate) fn push(&mut self, error: Error) {
        if self.kept.len() == FAILURES_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Failure { number: self.next, error, is_told: false });
        self.next += 1;
    }

    /// What a call that begins now is to give to [`Failures::tell`].
    pub(crate) const fn mark(&self) -> u64 {
        self.next
    }

    /// A failure that no call has told, or that happened since `mark`.
    pub(crate) fn tell(&mut self, mark: u64) -> Option<Error> {
        let mut kept = self.kept.iter_mut();
        let failure = kept.find(|failure| !failure.is_told || failure.number >= mark)?;
        failure.is_told = true;
        Some(failure.error.clone())
    }

    /// All that no call has told.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Error> + '_ {
        self.kept.drain(..).filter(|failure| !failure.is_told).map(|failure| failure.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_to_all_who_wait_and_to_nobody_later() {
        let mut failures = Failures::default();
        failures.push(Error::Stopped);
        let late = failures.mark();
        assert!(failures.tell(late).is_some());
        assert!(failures.tell(late).is_none());
        failures.push(Error::LinkGone);
        assert!(failures.tell(late).is_some());
        assert!(failures.tell(late).is_some(), "another call that waited too");
        assert!(failures.tell(failures.mark()).is_none());
        assert_eq!(failures.take().count(), 0);
    }

    #[test]
    fn the_oldest_go_first() {
        let mut failures = Failures::default();
        for _ in 0..FAILURES_MAX + 3 {
            failures.push(Error::Stopped);
        }
        assert_eq!(failures.take().count(), FAILURES_MAX);
    }
}
