//! Trackers: what became of what was put.

use hopline_driver::engine::wire::{AmqpError, DeliveryState};

/// Set in trackers of messages that came.
const INCOMING: u64 = 1 << 63;

/// Stands for one message that was put, or that came. Of one kind, later ones are greater.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tracker(u64);

/// A tracker's number in its window.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Outgoing(u64),
    Incoming(u64),
}

impl Tracker {
    pub(crate) const fn outgoing(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn incoming(number: u64) -> Self {
        Self(number | INCOMING)
    }

    pub(crate) const fn number(self) -> Number {
        match self.0 & INCOMING {
            0 => Number::Outgoing(self.0),
            _ => Number::Incoming(self.0 & !INCOMING),
        }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// It fell out of the window, never was, or came and was not taken yet.
    Unknown,
    /// In the store, on its way, or without an outcome yet.
    Pending,
    /// The receiver took it. (For a message that came, the receiver is this messenger.)
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
