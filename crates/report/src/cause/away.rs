//! Whether the receiving process is known to have been away while messages lay in its socket.
//!
//! A read that brings several messages has one stamp of the receiver's kernel, that of the newest
//! segment: earlier messages had arrived then or before. When they arrived is not told. But the
//! sender's kernel knows when they were acknowledged, and octets that were acknowledged have
//! arrived, and all before them. So from the first acknowledgement of what a read brings until the
//! read, the process was away from its socket.

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

/// A read, and how long before it the process is known to have been away.
#[derive(Copy, Clone, Debug)]
struct Read {
    at: Instant,
    away_ns: i64,
}

impl Away {
    /// The verdict, or that the receiver was busy. To be asked of all messages in the order in
    /// which they were received.
    pub(crate) fn judge<'a>(
        &mut self,
        key: &Key,
        way: &Way<'a>,
        leg: &Leg<'a>,
        verdict: Verdict<'a>,
    ) -> Verdict<'a> {
        let Some(away_ns) = self.away_ns(key, way, leg) else { return verdict };
        let undecided = matches!(verdict.cause, Cause::WireOrReceiver | Cause::Hop);
        let part = way.timeline().delay(verdict.from, leg.to);
        let part_ns = part.map_or(i64::MAX, |delay| delay.delay_ns);
        if undecided && away_ns.min(part_ns) > 0 && away_ns.min(part_ns) >= part_ns / ONE_IN {
            return Verdict { cause: Cause::ReceiverBusy, ..verdict };
        }
        verdict
    }

    /// How long the receiver had been away when it read; `None`: nothing tells.
    fn away_ns(&mut self, key: &Key, way: &Way<'_>, leg: &Leg<'_>) -> Option<i64> {
        let at = leg.to.at?;
        let own_ns = own_evidence(way, leg);
        let before = self.last.get(key).filter(|read| read.at == at).map(|read| read.away_ns);
        let away_ns = own_ns.into_iter().chain(before).max()?;
        if self.last.len() < ROW_LIMIT || self.last.contains_key(key) {
            self.last.insert(*key, Read { at, away_ns });
        }
        Some(away_ns)
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
