//! What is kept of the latest messages, by number.

use std::collections::VecDeque;

/// The latest `size` things, numbered from 0.
#[derive(Debug)]
pub(crate) struct Window<T> {
    entries: VecDeque<T>,
    first: u64,
    size: usize,
}

impl<T> Window<T> {
    pub(crate) const fn new(size: usize) -> Self {
        Self { entries: VecDeque::new(), first: 0, size }
    }

    /// A new thing; its number, and what fell out for it (itself, if there is no room at all).
    pub(crate) fn push(&mut self, entry: T) -> (u64, Option<T>) {
        let number = self.next();
        self.entries.push_back(entry);
        if self.entries.len() <= self.size {
            return (number, None);
        }
        self.first += 1;
        (number, self.entries.pop_front())
    }

    /// The number of the next thing.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn at(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        self.at(number).and_then(|at| self.entries.get(at))
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.at(number).and_then(|at| self.entries.get_mut(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_out_is_unknown() {
        let mut window = Window::new(2);
        let fallen = ["a", "b", "c", "d"].map(|entry| window.push(entry));
        assert_eq!(fallen, [(0, None), (1, None), (2, Some("a")), (3, Some("b"))]);
        assert_eq!(
            [1, 2, 3, 4].map(|n| window.get(n).copied()),
            [None, Some("c"), Some("d"), None]
        );
    }

    #[test]
    fn a_window_of_nothing_keeps_nothing() {
        let mut window = Window::new(0);
        assert_eq!(window.push("a"), (0, Some("a")));
        assert_eq!(window.push("b"), (1, Some("b")));
        assert_eq!(window.get(1), None);
    }
}
