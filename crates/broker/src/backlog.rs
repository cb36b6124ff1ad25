//! Messages by number: the next one and the end in one step, any other in few.

use crate::message::Message;
use std::collections::{BTreeMap, VecDeque, btree_map};

/// Messages in the order of their numbers.
///
/// Most come with a number above all others and leave from the front: these stand in a row, found
/// by their distance from its front. What was taken from its middle leaves a gap, to which it may
/// come back; the row is rid of gaps once they are the half of it. What comes to a place that the
/// row has not (it came back late, or overtakes) is in a tree.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Neither the first nor the last is a gap.
    row: VecDeque<(u64, Option<Box<Message>>)>,
    /// Those of the row that are no gaps.
    live: usize,
    tree: BTreeMap<u64, Box<Message>>,
}

impl Backlog {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.live + self.tree.len()
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<&Message> {
        let of_row = self.row.front().and_then(|(_, message)| message.as_deref());
        if self.tree.is_empty() {
            return of_row;
        }
        let of_tree = self.tree.first_key_value().map(|(_, message)| &**message);
        [of_row, of_tree].into_iter().flatten().min_by_key(|message| message.seq)
    }

    /// Those from a number on.
    pub(crate) fn since(&self, seq: u64) -> Since<'_> {
        let range = self.row.range(self.place(seq)..);
        Since { row: range, tree: self.tree.range(seq..), next: (None, None) }
    }

    /// The one of a number.
    pub(crate) fn get(&self, seq: u64) -> Option<&Message> {
        let of_row = self.row.get(self.place(seq)).filter(|(found, _)| *found == seq);
        let of_row = of_row.and_then(|(_, message)| message.as_deref());
        of_row.or_else(|| self.tree.get(&seq).map(|message| &**message))
    }

    /// Likewise, to change it.
    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut Message> {
        let place = self.place(seq);
        match self.row.get_mut(place) {
            Some((found, Some(message))) if *found == seq => Some(message),
            _ => self.tree.get_mut(&seq).map(|message| &mut **message),
        }
    }

    /// The last ones that came with a number above all others, the newest first, to change them.
    pub(crate) fn newest_mut(&mut self, n: usize) -> impl Iterator<Item = &mut Message> {
        self.row.iter_mut().rev().take(n).filter_map(|(_, message)| message.as_deref_mut())
    }

    /// Puts in a message whose number no other one has. `true`: behind all others of the row.
    pub(crate) fn insert(&mut self, message: Box<Message>) -> bool {
        let seq = message.seq;
        if self.row.back().is_none_or(|(last, _)| *last < seq) {
            self.row.push_back((seq, Some(message)));
            self.live += 1;
            return true;
        }
        let place = self.place(seq);
        match self.row.get_mut(place) {
            Some((found, gap)) if *found == seq => {
                *gap = Some(message);
                self.live += 1;
            }
            _ => {
                self.tree.insert(seq, message);
            }
        }
        false
    }

    /// Takes the first one out.
    pub(crate) fn pop_first(&mut self) -> Option<Box<Message>> {
        if !self.tree.is_empty() {
            let seq = self.first()?.seq;
            return self.remove(seq);
        }
        let (_, message) = self.row.pop_front()?;
        self.live -= 1;
        self.close_gaps();
        message
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, seq: u64) -> Option<Box<Message>> {
        let place = self.place(seq);
        let found = match self.row.get_mut(place) {
            Some((found, message)) if *found == seq => message.take(),
            _ => None,
        };
        if found.is_none() {
            return self.tree.remove(&seq);
        }
        self.live -= 1;
        self.close_gaps();
        found
    }

    fn close_gaps(&mut self) {
        while matches!(self.row.front(), Some((_, None))) {
            self.row.pop_front();
        }
        while matches!(self.row.back(), Some((_, None))) {
            self.row.pop_back();
        }
        if self.row.len() > 2 * self.live + 64 {
            self.row.retain(|(_, message)| message.is_some());
        }
    }

    /// Where in the row a number is, or would be.
    fn place(&self, seq: u64) -> usize {
        let Some((front, _)) = self.row.front() else { return 0 };
        let Some(distance) = seq.checked_sub(*front) else { return 0 };
        // Numbers grow by one at least, so it is at its distance from the front or before it.
        let guess = usize::try_from(distance).unwrap_or(usize::MAX).min(self.row.len());
        match self.row.get(guess) {
            Some((found, _)) if *found == seq => guess,
            _ => self.row.partition_point(|(other, _)| *other < seq),
        }
    }
}

/// The messages from a number on, in order.
pub(crate) struct Since<'a> {
    row: std::collections::vec_deque::Iter<'a, (u64, Option<Box<Message>>)>,
    tree: btree_map::Range<'a, u64, Box<Message>>,
    /// What each of them has next.
    next: (Option<&'a Message>, Option<&'a Message>),
}

impl<'a> Iterator for Since<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        let (row, tree) = &mut self.next;
        *row = row.or_else(|| self.row.find_map(|(_, message)| message.as_deref()));
        *tree = tree.or_else(|| self.tree.next().map(|(_, message)| &**message));
        match (*row, *tree) {
            (Some(a), Some(b)) if b.seq < a.seq => tree.take(),
            (Some(_), _) => row.take(),
            (None, _) => tree.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hopline_driver::engine::wire::{DeliveryTag, Serial};
    use hopline_driver::engine::{Delivery, LinkId};
    use hopline_driver::timeline::Instant;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn message(seq: u64) -> Box<Message> {
        let mut nothing = Delivery {
            link: LinkId::default(),
            id: Serial(0),
            tag: DeliveryTag::from(0),
            format: 0,
            settled: true,
            state: None,
            payload: Bytes::from_static(&[0x00, 0x53, 0x75, 0xa0, 0]),
            received: Instant::from_nanos(0),
            arrived: None,
            transfers: 1,
        };
        let mut message = Message::read(&mut nothing, 0).unwrap();
        message.seq = seq;
        message
    }

    fn numbers(backlog: &Backlog, from: u64) -> Vec<u64> {
        backlog.since(from).map(|message| message.seq).collect()
    }

    proptest! {
        #[test]
        fn it_is_what_a_tree_is(choices in prop::collection::vec((0..6_u8, 0..40_u64), 0..400)) {
            let (mut backlog, mut model) = (Backlog::default(), BTreeSet::new());
            let mut next = 0;
            for (choice, seq) in choices {
                match choice {
                    // Some numbers are left out, as those of messages with a priority are.
                    0..3 => {
                        next += 1 + seq % 3;
                        backlog.insert(message(next));
                        model.insert(next);
                    }
                    3 => {
                        let seq = next.saturating_sub(seq);
                        if model.insert(seq) {
                            backlog.insert(message(seq));
                        }
                    }
                    4 => {
                        let seq = next.saturating_sub(seq);
                        let removed = backlog.remove(seq).map(|message| message.seq);
                        prop_assert_eq!(removed, model.remove(&seq).then_some(seq));
                    }
                    _ => {
                        let seq = model.first().copied().unwrap_or(seq);
                        prop_assert_eq!(backlog.first().map(|it| it.seq), model.pop_first());
                        backlog.remove(seq);
                    }
                }
                let from = next.saturating_sub(seq);
                prop_assert_eq!(backlog.len(), model.len());
                let wanted: Vec<_> = model.range(from..).copied().collect();
                prop_assert_eq!(numbers(&backlog, from), wanted);
                prop_assert_eq!(backlog.get(from).is_some(), model.contains(&from));
                prop_assert_eq!(backlog.get_mut(from).is_some(), model.contains(&from));
                prop_assert_eq!(backlog.first().map(|it| it.seq), model.first().copied());
            }
        }
    }

    #[test]
    fn the_first_one_does_not_keep_the_places_of_a_million_that_went() {
        let mut backlog = Backlog::default();
        for seq in 0..1_000_000 {
            backlog.insert(message(seq));
            if seq > 0 {
                backlog.remove(seq);
            }
        }
        backlog.insert(message(1_000_000));
        assert!(backlog.row.len() < 100, "{} places", backlog.row.len());
    }

    #[test]
    fn a_gap_is_filled_by_what_comes_back() {
        let mut backlog = Backlog::default();
        (0..9).for_each(|seq| assert!(backlog.insert(message(seq))));
        for seq in [3, 5, 0] {
            backlog.remove(seq);
        }
        for seq in [5, 0, 3] {
            assert!(!backlog.insert(message(seq)));
        }
        assert_eq!(numbers(&backlog, 0), Vec::from_iter(0..9));
        assert_eq!(Vec::from_iter(backlog.tree.keys().copied()), [0]);
        assert_eq!(backlog.newest_mut(2).map(|it| it.seq).collect::<Vec<_>>(), [8, 7]);
    }
}
