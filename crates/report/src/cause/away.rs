//! Whether the receiving process is known to have been away while messages lay in its socket.
//!
//! A read that brings several messages has one stamp of the receiver's kernel, that of the newest
//! segment: earlier messages had arrived then or before. When they arrived is not told. But the
//! sender's kernel knows when they were acknowledged, and octets that were acknowledged have
//! arrived, and all before them. So from the first acknowledgement of what a read brings until the
//! read, the process was away from its socket.
//!
//! Where octets were sent again, the read may have waited for a segment that was lost, and the
//! others of the read, which had arrived, waited behind it: the receiver's stamps prove nothing
//! then. Acknowledgements still do, as TCP acknowledges only what has no gap before it. A process
//! that is away makes its peer send again, too: its kernel delays acknowledgements, and the peer
//! probes for a loss that isn't one.

use std::collections::HashMap;

use hopline_timeline::{Instant, Stage, Stamp};

use super::{Cause, Verdict};
use crate::join::{is_retransmitted, is_upper_bound};
use crate::table::{Key, ROW_LIMIT};
use crate::way::{Leg, Way};

/// The process is to blame if it is known to have been away for one part in so many of the time
/// that was spent either on the wire or in its socket. Nothing shows the other parts to be the
/// wire's; a wire that is known to be slow has another cause.
const ONE_IN: i64 = 8;

/// What each leg's last read is known of.
#[derive(Debug, Default)]
pub(crate) struct Away {
    last: HashMap<Key, Read>,
}

/// A read, and what is known of the messages that it brought.
#[derive(Copy, Clone, Debug)]
struct Read {
    at: Instant,
    /// How long before it the sender had the first acknowledgement of what it brought.
    acknowledged_ns: i64,
    /// How long before it, or more, the first of what it brought arrived, by the receiver's stamps.
    arrived_ns: i64,
    /// Some octets were sent again.
    sent_again: bool,
}

impl Read {
    /// What one message alone tells of the read at `at` that brought it.
    fn of(way: &Way<'_>, leg: &Leg<'_>, at: Instant) -> Read {
        let stamps = way.between(leg);
        let since = |is_it: &dyn Fn(&Stamp) -> bool| {
            let delays = stamps.iter().filter(|stamp| is_it(stamp)).filter_map(|stamp| {
                way.timeline().delay(stamp, leg.to).ok().map(|delay| delay.delay_ns)
            });
            delays.max().unwrap_or(0)
        };
        let is = |stamp: &Stamp, stage| stamp.known_stage() == Some(stage);
        Read {
            at,
            acknowledged_ns: since(&|stamp| is(stamp, Stage::KernelAck)),
            arrived_ns: since(&|stamp| is(stamp, Stage::KernelReceive) && is_upper_bound(stamp)),
            sent_again: stamps.iter().any(is_retransmitted),
        }
    }

    /// With what an earlier message of the same read told.
    fn and(self, before: Read) -> Read {
        Read {
            at: self.at,
            acknowledged_ns: self.acknowledged_ns.max(before.acknowledged_ns),
            arrived_ns: self.arrived_ns.max(before.arrived_ns),
            sent_again: self.sent_again || before.sent_again,
        }
    }

    /// How long before it the process is known to have been away from its socket.
    fn away_ns(&self) -> i64 {
        if self.sent_again {
            self.acknowledged_ns
        } else {
            self.acknowledged_ns.max(self.arrived_ns)
        }
    }
}

impl Away {
    /// The verdict, or that the receiver was busy, or that it was the wire's loss. To be asked of
    /// all messages in the order in which they were received.
    pub(crate) fn judge<'a>(
        &mut self,
        key: &Key,
        way: &Way<'a>,
        leg: &Leg<'a>,
        verdict: Verdict<'a>,
    ) -> Verdict<'a> {
        let Some(read) = self.read(key, way, leg) else { return verdict };
        let is_undecided = match verdict.cause {
            Cause::WireOrReceiver | Cause::Hop => true,
            Cause::Wire | Cause::ReceiverBusy => read.sent_again,
            _ => false,
        };
        if !is_undecided {
            return verdict;
        }
        let part = way.timeline().delay(verdict.from, leg.to);
        let part_ns = part.map_or(i64::MAX, |delay| delay.delay_ns);
        let away_ns = read.away_ns().min(part_ns);
        let cause = match away_ns > 0 && away_ns >= part_ns / ONE_IN {
            true => Cause::ReceiverBusy,
            false if read.sent_again => Cause::Wire,
            false => verdict.cause,
        };
        Verdict { cause, ..verdict }
    }

    /// What this message and those before it in the same read tell; `None`: it was not received.
    fn read(&mut self, key: &Key, way: &Way<'_>, leg: &Leg<'_>) -> Option<Read> {
        let at = leg.to.at?;
        let own = Read::of(way, leg, at);
        let before = self.last.get(key).filter(|read| read.at == at);
        let read = before.map_or(own, |before| own.and(*before));
        if self.last.len() < ROW_LIMIT || self.last.contains_key(key) {
            self.last.insert(*key, read);
        }
        Some(read)
    }
}
