//! Whether a timeline was seen before.

use std::collections::{HashSet, VecDeque};

use hopline_timeline::TimelineId;

use crate::names::NameId;

/// How many of the latest timelines are remembered: a duplicate that comes later isn't recognised.
/// Takes about 70 MiB when full.
pub const MEMORY_LIMIT: usize = 1 << 20;

/// A timeline at the node where it ended: copies for several subscribers are no duplicates.
type Arrival = (TimelineId, NameId);

/// The latest arrivals.
#[derive(Debug)]
pub(crate) struct Recent {
    seen: HashSet<Arrival>,
    order: VecDeque<Arrival>,
    limit: usize,
    forgetful: bool,
}

impl Recent {
    pub(crate) fn new(limit: usize) -> Self {
        Self { seen: HashSet::new(), order: VecDeque::new(), limit, forgetful: false }
    }

    /// Remembers an arrival; false where it is remembered already.
    pub(crate) fn is_new(&mut self, id: TimelineId, at: NameId) -> bool {
        if !self.seen.insert((id, at)) {
            return false;
        }
        self.order.push_back((id, at));
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.forgetful = true;
            self.seen.remove(&oldest);
        }
        true
    }

    /// Whether anything had to be forgotten.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.forgetful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn the_latest_are_remembered_and_the_oldest_forgotten() {
        let here = Names::default().id("sub");
        let mut recent = Recent::new(2);
        let [a, b, c] = [1, 2, 3].map(|n| TimelineId([n; 16]));
        assert!(recent.is_new(a, here) && recent.is_new(b, here));
        assert!(!recent.is_new(a, here));
        assert!(!recent.is_exceeded());
        assert!(recent.is_new(c, here));
        assert!(recent.is_exceeded());
        assert!(!recent.is_new(b, here));
        assert!(recent.is_new(a, here), "forgotten");
    }

    #[test]
    fn copies_for_two_subscribers_are_no_duplicates() {
        let mut names = Names::default();
        let (one, two) = (names.id("sub-1"), names.id("sub-2"));
        let mut recent = Recent::new(2);
        assert!(recent.is_new(TimelineId([1; 16]), one));
        assert!(recent.is_new(TimelineId([1; 16]), two));
    }
}
