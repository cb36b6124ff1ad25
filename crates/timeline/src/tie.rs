//! What ties the clock of one node to that of the node before, within a timeline.

use crate::append::Appender;
use crate::peer_clock::ClockOffset;
use crate::{Delay, Reserved, Timeline};

/// The type octet of the record that stands behind a node's and says how far the clock of the node
/// before is ahead of it.
const TIE_TYPE: u8 = 0x82;

impl Appender<'_> {
    /// Appends how far the clock of the node before was ahead of this node's, as this node has
    /// found out by exchanging instants with it. To stand right behind the node's record.
    pub fn tie(&mut self, offset: ClockOffset) {
        self.reserved(TIE_TYPE, &content(offset));
    }
}

impl Timeline {
    /// How far the clock of the node before `node` is ahead of that of `node`, if that has said so.
    pub fn tie(&self, node: usize) -> Option<ClockOffset> {
        let of_node = |it: &&Reserved| it.kind == TIE_TYPE && it.nodes_before == node + 1;
        let (ahead, bound) =
            self.reserved.iter().find(of_node)?.content.split_first_chunk::<8>()?;
        Some(ClockOffset {
            ahead_ns: i64::from_be_bytes(*ahead),
            error_bound_ns: u64::from_be_bytes(bound.try_into().ok()?),
        })
    }

    /// The record of what [`tie`](Self::tie) reads.
    pub(crate) fn tie_record(node: usize, stamps: usize, offset: ClockOffset) -> Reserved {
        let content = content(offset).to_vec();
        Reserved { nodes_before: node + 1, stamps_before: stamps, kind: TIE_TYPE, content }
    }

    /// How far the clock of node `from` is ahead of that of node `to`, by what ties each node in
    /// between to the one before: one clock, a tie, or wall clocks that are right within a bound.
    pub(crate) fn ahead(&self, from: usize, to: usize) -> Option<ClockOffset> {
        if from > to {
            let ClockOffset { ahead_ns, error_bound_ns } = self.ahead(to, from)?;
            return Some(ClockOffset { ahead_ns: ahead_ns.checked_neg()?, error_bound_ns });
        }
        let none = ClockOffset { ahead_ns: 0, error_bound_ns: 0 };
        (from..to).try_fold(none, |sum, before| {
            let step = self.step(before)?;
            Some(ClockOffset {
                ahead_ns: sum.ahead_ns.checked_add(step.ahead_ns)?,
                error_bound_ns: sum.error_bound_ns.checked_add(step.error_bound_ns)?,
            })
        })
    }

    /// How far the clock of a node is ahead of that of the next one.
    fn step(&self, before: usize) -> Option<ClockOffset> {
        let (a, b) = (self.nodes.get(before)?.clock, self.nodes.get(before + 1)?.clock);
        if a.is_same_as(&b) {
            return Some(ClockOffset { ahead_ns: 0, error_bound_ns: 0 });
        }
        let ties = [self.tie(before + 1), a.ahead_by_walls(&b)];
        ties.into_iter().flatten().min_by_key(|offset| offset.error_bound_ns)
    }
}

fn content(offset: ClockOffset) -> [u8; 16] {
    let mut content = [0; 16];
    let (ahead, bound) = content.split_at_mut(8);
    ahead.copy_from_slice(&offset.ahead_ns.to_be_bytes());
    bound.copy_from_slice(&offset.error_bound_ns.to_be_bytes());
    content
}

impl Delay {
    /// Whether the delay says anything: its bound is not larger than itself. `false` only of
    /// clocks of two hosts.
    pub fn is_significant(&self) -> bool {
        self.error_bound_ns <= self.delay_ns.unsigned_abs()
    }
}
