//! Messages that come to a place in their queue that consumers have passed already.

use std::collections::BTreeMap;

/// The numbers of messages that came back, or overtook others, in the order that they did so:
/// consumers that have passed their places find them here. Each waiting message is here once at
/// most.
#[derive(Debug, Default)]
pub(crate) struct Late {
    places: BTreeMap<u64, u64>,
    by_seq: BTreeMap<u64, u64>,
    end: u64,
}

impl Late {
    /// The place of the next entry.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The first entry at a place or behind it, and its place.
    pub(crate) fn since(&self, place: u64) -> Option<(u64, u64)> {
        self.places.range(place..).next().map(|(place, seq)| (*place, *seq))
    }

    /// A message has come late.
    pub(crate) fn push(&mut self, seq: u64) {
        if let Some(before) = self.by_seq.insert(seq, self.end) {
            self.places.remove(&before);
        }
        self.places.insert(self.end, seq);
        self.end += 1;
    }

    /// A message is not there any more.
    pub(crate) fn remove(&mut self, seq: u64) {
        if let Some(place) = self.by_seq.remove(&seq) {
            self.places.remove(&place);
        }
    }

    /// Nobody looks for any of them.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.by_seq.clear();
    }
}
