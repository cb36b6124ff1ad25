//! Trackers: what became of what was put.

use hopline_driver::engine::wire::{AmqpError, DeliveryState};
use std::collections::VecDeque;

/// Stands for one message that was put. Trackers of one messenger grow with each put.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tracker(pub(crate) u64);

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// It fell out of the window, or never was.
    Unknown,
    /// In the store, on its way, or without an outcome yet.
    Pending,
    /// The receiver took it.
    Accepted,
    /// The receiver holds it to be invalid.
    Rejected(Option<AmqpError>),
    /// The receiver did not act upon it.
    Released,
    /// The receiver did not process it.
    Modified,
    /// Its link or connection ended before an outcome came; it may or may not have arrived.
    Aborted,
    /// Sent settled, or settled without an outcome.
    Settled,
}

impl Status {
    pub(crate) fn of(state: Option<DeliveryState>) -> Self {
        match state {
            Some(DeliveryState::Accepted) => Self::Accepted,
            Some(DeliveryState::Rejected(rejected)) => {
                Self::Rejected(rejected.error.map(|error| *error))
            }
            Some(DeliveryState::Released) => Self::Released,
            Some(DeliveryState::Modified(_)) => Self::Modified,
            _ => Self::Settled,
        }
    }
}

/// How many messages ended how, since the messenger was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages put.
    pub put: u64,
    /// Messages handed to a connection.
    pub sent: u64,
    /// Outcome accepted.
    pub accepted: u64,
    /// Outcome rejected.
    pub rejected: u64,
    /// Outcome released.
    pub released: u64,
    /// Outcome modified.
    pub modified: u64,
    /// Sent settled, or settled without an outcome.
    pub settled: u64,
    /// No outcome came before the link ended.
    pub aborted: u64,
    /// Messages received.
    pub received: u64,
}

impl Counts {
    pub(crate) const fn count(&mut self, status: &Status) {
        let counter = match status {
            Status::Accepted => &mut self.accepted,
            Status::Rejected(_) => &mut self.rejected,
            Status::Released => &mut self.released,
            Status::Modified => &mut self.modified,
            Status::Aborted => &mut self.aborted,
            Status::Settled | Status::Unknown | Status::Pending => &mut self.settled,
        };
        *counter += 1;
    }

    /// Messages of which the end is known.
    pub const fn ended(&self) -> u64 {
        self.accepted + self.rejected + self.released + self.modified + self.settled + self.aborted
    }
}

/// The status of the last puts.
#[derive(Debug)]
pub(crate) struct Window {
    statuses: VecDeque<Status>,
    first: u64,
    size: usize,
}

impl Window {
    pub(crate) fn new(size: usize) -> Self {
        Self { statuses: VecDeque::new(), first: 0, size }
    }

    /// A new message; its number.
    pub(crate) fn push(&mut self) -> u64 {
        self.statuses.push_back(Status::Pending);
        let tracker = self.first + self.statuses.len() as u64 - 1;
        while self.statuses.len() > self.size {
            self.statuses.pop_front();
            self.first += 1;
        }
        tracker
    }

    fn at(&self, tracker: u64) -> Option<usize> {
        tracker.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())
    }

    pub(crate) fn get(&self, tracker: u64) -> Status {
        let status = self.at(tracker).and_then(|at| self.statuses.get(at));
        status.cloned().unwrap_or(Status::Unknown)
    }

    pub(crate) fn set(&mut self, tracker: u64, status: Status) {
        if let Some(slot) = self.at(tracker).and_then(|at| self.statuses.get_mut(at)) {
            *slot = status;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_out_of_the_window_is_unknown() {
        let mut window = Window::new(2);
        for n in 0..4 {
            assert_eq!(window.push(), n);
        }
        window.set(0, Status::Accepted);
        window.set(3, Status::Accepted);
        let all: Vec<_> = (0..5).map(|n| window.get(n)).collect();
        let want =
            [Status::Unknown, Status::Unknown, Status::Pending, Status::Accepted, Status::Unknown];
        assert_eq!(all, want);
    }
}
