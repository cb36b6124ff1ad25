//! Whether the receiving process is known to have been away while messages lay in its socket.
//!
//! A read that brings several messages has one stamp of the receiver's kernel, that of the newest
//! segment: earlier messages had arrived then or before. When they arrived is not told. But the
//! sender's kernel knows when they were acknowledged, and octets that were acknowledged have
//! arrived, and all before them. So from the first acknowledgement of what a read brings until the
//! read, the process was away from its socket.
//!
//! Unless octets were sent again: then the read waited for a segment that was lost, and the others
//! of the read, which had arrived, waited behind it.

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
    /// How long before it the process is known to have been away.
    away_ns: i64,
    /// Some octets were sent again.
    waited_for_lost: bool,
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
        let is_behind_sender = matches!(
            verdict.cause,
            Cause::Wire | Cause::WireOrReceiver | Cause::ReceiverBusy | Cause::Hop
        );
        if read.waited_for_lost && is_behind_sender {
            return Verdict { cause: Cause::Wire, ..verdict };
        }
        let away_ns = read.away_ns;
        let undecided = matches!(verdict.cause, Cause::WireOrReceiver | Cause::Hop);
        let part = way.timeline().delay(verdict.from, leg.to);
        let part_ns = part.map_or(i64::MAX, |delay| delay.delay_ns);
        if undecided && away_ns.min(part_ns) > 0 && away_ns.min(part_ns) >= part_ns / ONE_IN {
            return Verdict { cause: Cause::ReceiverBusy, ..verdict };
        }
        verdict
    }

    /// What this message and those before it in the same read tell of that; `None`: nothing.
    fn read(&mut self, key: &Key, way: &Way<'_>, leg: &Leg<'_>) -> Option<Read> {
        let at = leg.to.at?;
        let before = self.last.get(key).filter(|read| read.at == at);
        let own_ns = own_evidence(way, leg);
        let away_ns = own_ns.into_iter().chain(before.map(|read| read.away_ns)).max();
        let waited_for_lost = before.is_some_and(|read| read.waited_for_lost)
            || way.between(leg).iter().any(is_retransmitted);
        if away_ns.is_none() && !waited_for_lost {
            return None;
        }
        let read = Read { at, away_ns: away_ns.unwrap_or(0), waited_for_lost };
        if self.last.len() < ROW_LIMIT || self.last.contains_key(key) {
            self.last.insert(*key, read);
        }
        Some(read)
    }
}

/// By what one message alone tells: it had been acknowledged, or arrived, that long before.
fn own_evidence(way: &Way<'_>, leg: &Leg<'_>) -> Option<i64> {
    let is_there = |stamp: &&Stamp| match stamp.known_stage() {
        Some(Stage::KernelAck) => !is_retransmitted(stamp),
        Some(Stage::KernelReceive) => is_upper_bound(stamp),
        _ => false,
    };
    let there = way.between(leg).iter().filter(is_there);
    let since = |stamp: &Stamp| Some(way.timeline().delay(stamp, leg.to).ok()?.delay_ns);
    there.filter_map(since).max()
}
