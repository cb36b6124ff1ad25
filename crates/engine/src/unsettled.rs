//! Deliveries that are not settled yet, by delivery-id.

use hopline_wire::Serial;
use std::collections::VecDeque;
use std::ops::Range;

/// A map whose keys only ever grow (by serial order) as they are put in.
///
/// Ids mostly come without gaps and leave from the front, so that looking one up is one step.
/// Memory stays in proportion to what is unsettled: settled entries between others are compacted.
#[derive(Debug)]
pub(crate) struct Unsettled<T> {
    entries: VecDeque<(Serial, Option<T>)>,
    live: usize,
}

impl<T> Default for Unsettled<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), live: 0 }
    }
}

impl<T> Unsettled<T> {
    /// How many are unsettled.
    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// How many entries a look at all of them takes.
    pub(crate) fn looks(&self) -> usize {
        self.entries.len()
    }

    /// Puts in an id that is ahead of all others.
    pub(crate) fn push(&mut self, id: Serial, value: T) {
        self.entries.push_back((id, Some(value)));
        self.live += 1;
    }

    /// All of them, the newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().rev().filter_map(|(_, value)| value.as_ref())
    }

    /// Where `id` is, or would be.
    fn position(&self, id: Serial) -> usize {
        let Some((front, _)) = self.entries.front() else { return 0 };
        let distance = id.distance(*front);
        if distance <= 0 {
            return 0;
        }
        // Ids grow by one at least, so the entry is at its distance from the front or before it.
        let guess = (distance as usize).min(self.entries.len());
        match self.entries.get(guess) {
            Some((found, _)) if *found == id => guess,
            _ => self.entries.partition_point(|(other, _)| other.distance(id) < 0),
        }
    }

    /// Looks at one.
    pub(crate) fn get_mut(&mut self, id: Serial) -> Option<&mut T> {
        let at = self.position(id);
        match self.entries.get_mut(at) {
            Some((found, value)) if *found == id => value.as_mut(),
            _ => None,
        }
    }

    /// Takes one out.
    #[inline]
    pub(crate) fn take(&mut self, id: Serial) -> Option<T> {
        // Most are settled in order.
        match self.entries.front() {
            Some((front, Some(_))) if *front == id => {
                self.live -= 1;
                let (_, value) = self.entries.pop_front()?;
                self.drop_gaps();
                value
            }
            _ => self.take_any(id),
        }
    }

    fn take_any(&mut self, id: Serial) -> Option<T> {
        let at = self.position(id);
        let value = match self.entries.get_mut(at) {
            Some((found, value)) if *found == id => value.take(),
            _ => None,
        };
        if value.is_some() {
            self.live -= 1;
            self.compact();
        }
        value
    }

    #[inline]
    fn drop_gaps(&mut self) {
        while matches!(self.entries.front(), Some((_, None))) {
            self.entries.pop_front();
        }
    }

    fn compact(&mut self) {
        self.drop_gaps();
        if self.entries.len() > 2 * self.live + 64 {
            self.entries.retain(|(_, value)| value.is_some());
        }
    }

    /// The unsettled ids from `first` to `last`, and at how many entries it looked for them.
    pub(crate) fn ids(&self, first: Serial, last: Serial) -> (Vec<Serial>, usize) {
        let from = self.position(first);
        let range = self.entries.range(from..);
        let looks = range.take_while(|(id, _)| id.distance(last) <= 0).count();
        self.among(from..from + looks)
    }

    /// All unsettled ids, and at how many entries it looked for them.
    pub(crate) fn all(&self) -> (Vec<Serial>, usize) {
        self.among(0..self.entries.len())
    }

    fn among(&self, range: Range<usize>) -> (Vec<Serial>, usize) {
        let looks = range.len();
        let live = self.entries.range(range).filter(|(_, value)| value.is_some());
        (live.map(|(id, _)| *id).collect(), looks)
    }

    /// Takes out all that `gone` says.
    pub(crate) fn remove(&mut self, mut gone: impl FnMut(&T) -> bool) {
        self.entries.retain(|(_, value)| value.as_ref().is_some_and(|value| !gone(value)));
        self.live = self.entries.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_across_the_wrap_with_gaps_and_out_of_order() {
        for start in [0xffff_fff0_u32, 0x7fff_fff0, 0] {
            let mut map = Unsettled::default();
            let ids: Vec<_> =
                (0..64).filter(|n| n % 3 != 1).map(|n| Serial(start).add(n)).collect();
            for id in &ids {
                map.push(*id, id.0);
            }
            assert_eq!(map.ids(Serial(start).sub(9), Serial(start).add(99)), (ids.clone(), 43));
            assert_eq!(map.all(), (ids.clone(), 43));
            assert_eq!(map.ids(Serial(start).add(3), Serial(start).add(6)).0.len(), 3);
            for id in ids.iter().rev() {
                assert_eq!(map.take(*id), Some(id.0));
                assert_eq!(map.take(*id), None);
            }
            assert_eq!((map.len(), map.entries.len()), (0, 0));
        }
    }

    #[test]
    fn one_that_stays_does_not_keep_the_memory_of_a_million_that_went() {
        let mut map = Unsettled::default();
        map.push(Serial(0), ());
        for n in 1..1_000_000 {
            map.push(Serial(n), ());
            map.take(Serial(n));
        }
        assert!(map.entries.len() < 100, "{} entries", map.entries.len());
    }
}
