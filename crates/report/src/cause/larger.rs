//! Whether a larger message was ahead.

use std::collections::HashMap;

use hopline_timeline::{Node, Stamp, Timeline};

use super::{Cause, Verdict};
use crate::table::{Key, ROW_LIMIT};
use crate::way::Leg;

/// From how many octets on a message can be what others wait behind: some segments, so that it
/// takes its time.
pub(crate) const LARGE_OCTETS: u64 = 16_384;

/// How many times a message's own octets those of the one ahead have to be.
const TIMES: u64 = 4;

/// The last large message of each leg.
#[derive(Debug, Default)]
pub(crate) struct Larger {
    last: HashMap<Key, Passage>,
}

/// A large message, and when it had passed.
#[derive(Debug)]
struct Passage {
    octets: u64,
    node: Node,
    to: Stamp,
}

impl Larger {
    /// The verdict, or that the message was behind a larger one: that left the leg while this one
    /// was in the leg's longest part.
    pub(crate) fn judge<'a>(
        &self,
        key: &Key,
        timeline: &Timeline,
        leg: &Leg<'a>,
        octets: u64,
        verdict: Verdict<'a>,
    ) -> Verdict<'a> {
        if self.last.is_empty() || !can_be_behind(verdict.cause) {
            return verdict;
        }
        match self.last.get(key) {
            Some(large)
                if large.octets >= octets.saturating_mul(TIMES)
                    && large.is_within(timeline, verdict.from, leg.to) =>
            {
                Verdict { cause: Cause::BehindLarger, ..verdict }
            }
            _ => verdict,
        }
    }

    /// Remembers a large message.
    pub(crate) fn note(&mut self, key: Key, timeline: &Timeline, leg: &Leg<'_>, octets: u64) {
        let is_new = || self.last.len() < ROW_LIMIT || self.last.contains_key(&key);
        if octets >= LARGE_OCTETS
            && is_new()
            && let Some(node) = timeline.nodes.get(leg.to.node)
        {
            self.last.insert(key, Passage { octets, node: node.clone(), to: *leg.to });
        }
    }
}

impl Passage {
    /// Whether it left the leg after `from` and not after `to`, by clocks that can be compared
    /// exactly.
    fn is_within(&self, timeline: &Timeline, from: &Stamp, to: &Stamp) -> bool {
        let since = |stamp: &Stamp| {
            let clock = timeline.nodes.get(stamp.node)?.clock;
            let comparable = clock.is_same_as(&self.node.clock);
            let at = stamp.at.filter(|_| comparable)?;
            self.to.at?.as_nanos().checked_sub(at.as_nanos())
        };
        since(from).is_some_and(|ns| ns > 0) && since(to).is_some_and(|ns| ns <= 0)
    }
}

/// Causes that a larger message ahead explains.
fn can_be_behind(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Order
            | Cause::SocketFull
            | Cause::NodeBusy
            | Cause::SenderKernel
            | Cause::Congestion
            | Cause::Wire
            | Cause::SenderKernelOrWire
            | Cause::WireOrReceiver
            | Cause::Hop
    )
}
