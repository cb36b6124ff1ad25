//! Dispositions that are due, as ranges: what happened alike to neighbours goes in one frame. And
//! what those of the peer may cost.

use hopline_wire::performative::Disposition;
use hopline_wire::{DeliveryState, Role, Serial};

/// Ranges in the order in which they came up.
#[derive(Debug, Default)]
pub(crate) struct Dispositions {
    due: Vec<Disposition>,
    /// Deliveries that we sent and have settled, and the receiver does not know it yet.
    unsaid: usize,
}

impl Dispositions {
    /// Adds deliveries whose ids follow one another; they join the last range if they are its
    /// neighbours and fared the same.
    pub(crate) fn push(
        &mut self,
        role: Role,
        (first, count): (Serial, u32),
        settled: bool,
        state: Option<&DeliveryState>,
    ) {
        let Some(more) = count.checked_sub(1) else { return };
        let end = first.add(more);
        if role == Role::Sender {
            self.unsaid += count as usize;
        }
        if let Some(last) = self.due.last_mut()
            && last.role == role
            && last.settled == settled
            && Serial(last.last.unwrap_or(last.first)).add(1) == first
            && last.state.as_ref() == state
        {
            last.last = Some(end.0);
            return;
        }
        self.due.push(Disposition {
            role,
            first: first.0,
            last: (end != first).then_some(end.0),
            settled,
            state: state.cloned(),
            batchable: false,
        });
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    pub(crate) const fn unsaid(&self) -> usize {
        self.unsaid
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Disposition> + '_ {
        self.unsaid = 0;
        self.due.drain(..)
    }
}

/// Deliveries that a disposition may look at without being charged.
const FREE: usize = 64;

/// Looks at deliveries that each unsettled delivery pays for.
const PER_DELIVERY: usize = 8;

/// Octets of a disposition whose copy, made for each of its deliveries, costs as much as one look.
const OCTETS_PER_LOOK: usize = 1024;

/// What the dispositions of a peer may cost: as much work as the deliveries that they settle make
/// up for. Who settles is never refused; who tells of all deliveries over and over is.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: usize,
    max: usize,
}

impl Allowance {
    pub(crate) const fn new(max_unsettled: usize) -> Self {
        let max = max_unsettled.saturating_mul(PER_DELIVERY).saturating_add(FREE);
        Self { left: max, max }
    }

    /// A disposition of so many octets looked at `looks` deliveries.
    pub(crate) const fn spend(&mut self, looks: usize, octets: usize) -> bool {
        let copies = looks.saturating_sub(1).saturating_mul(octets / OCTETS_PER_LOOK);
        let cost = looks.saturating_sub(FREE).saturating_add(copies);
        match self.left.checked_sub(cost) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// A delivery was settled.
    pub(crate) const fn earn(&mut self) {
        let left = self.left.saturating_add(PER_DELIVERY);
        self.left = if left < self.max { left } else { self.max };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_fared_alike_share_a_frame_across_the_wrap() {
        let mut due = Dispositions::default();
        for n in 0..8 {
            due.push(
                Role::Receiver,
                (Serial(0xffff_fffc).add(n), 1),
                true,
                Some(&DeliveryState::Accepted),
            );
        }
        due.push(Role::Receiver, (Serial(9), 1), true, Some(&DeliveryState::Accepted));
        due.push(Role::Receiver, (Serial(10), 1), true, Some(&DeliveryState::Released));
        due.push(Role::Sender, (Serial(11), 1), true, Some(&DeliveryState::Released));
        due.push(Role::Sender, (Serial(12), 3), true, Some(&DeliveryState::Released));
        due.push(Role::Sender, (Serial(20), 4), true, None);
        due.push(Role::Sender, (Serial(24), 0), true, None);
        assert_eq!(due.unsaid(), 8);
        let ranges: Vec<_> = due.drain().map(|d| (d.first, d.last)).collect();
        assert_eq!(
            ranges,
            [(0xffff_fffc, Some(3)), (9, None), (10, None), (11, Some(14)), (20, Some(23))]
        );
    }
}
