//! One end of a link (part 2, 2.6).
//!
//! ```text
//!             +----------+  attach   +----------+  detach   +----------+
//!   each half | Detached |---------->| Attached |---------->|  Ended   |
//!             +----------+           +----------+           +----------+
//! ```

use crate::SessionId;
use crate::counts::Gate;
use crate::tags::Tags;
use bytes::BytesMut;
use hopline_wire::definitions::{DeliveryTag, ReceiverSettleMode, SenderSettleMode};
use hopline_wire::performative::Flow;
use hopline_wire::{DeliveryState, Role, Serial};

/// One half of an endpoint: what one side has said of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum Half {
    /// Nothing yet.
    #[default]
    Idle,
    /// open, begin, attach.
    Active,
    /// close, end, detach.
    Ended,
}

/// A delivery of which not all transfers have come.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) id: Serial,
    pub(crate) tag: DeliveryTag,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    /// It goes on from an attachment of which nothing is kept, and is dropped (2.7.5, `resume`).
    pub(crate) resumed: bool,
    pub(crate) state: Option<Box<DeliveryState>>,
    pub(crate) octets: BytesMut,
    pub(crate) transfers: u32,
    /// How many of them had no payload.
    pub(crate) empty: u32,
}

/// Credit of a link, kept alike at both ends (part 2, 2.6.7).
#[derive(Debug, Default)]
pub(crate) struct Credit {
    pub(crate) delivery_count: Serial,
    pub(crate) link_credit: u32,
    /// What the receiver took back; the sender may have used it before it knew.
    pub(crate) recalled: u32,
    pub(crate) drain: bool,
}

impl Credit {
    /// Credit for `n` deliveries is used.
    pub(crate) const fn spend(&mut self, n: u32) {
        self.delivery_count = self.delivery_count.add(n);
        let beyond = n.saturating_sub(self.link_credit);
        self.link_credit = self.link_credit.saturating_sub(n);
        self.recalled = self.recalled.saturating_sub(beyond);
    }

    /// Whether nothing may come any more.
    pub(crate) const fn is_used_up(&self) -> bool {
        self.link_credit == 0 && self.recalled == 0
    }

    /// The receiver grants `credit` in place of what is left.
    pub(crate) const fn grant(&mut self, credit: u32) {
        let before = self.link_credit.saturating_add(self.recalled);
        self.link_credit = credit;
        self.recalled = before.saturating_sub(credit);
        self.drain = false;
    }

    /// What a receiver's flow leaves to its sender: what it granted, less what was sent since.
    pub(crate) fn granted(&mut self, flow: &Flow, initial: Serial) {
        let base = flow.delivery_count.map_or(initial, Serial);
        let sent_since = self.delivery_count.distance(base).max(0) as u32;
        self.link_credit = flow.link_credit.unwrap_or(0).saturating_sub(sent_since);
        self.drain = flow.drain;
    }

    /// Uses up all credit, as a drain asks.
    pub(crate) const fn use_up(&mut self) {
        self.delivery_count = self.delivery_count.add(self.link_credit);
        self.link_credit = 0;
    }
}

/// What we keep of a link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) session: SessionId,
    pub(crate) local: Half,
    pub(crate) remote: Half,
    pub(crate) local_handle: u32,
    pub(crate) snd_settle_mode: SenderSettleMode,
    pub(crate) rcv_settle_mode: ReceiverSettleMode,
    pub(crate) credit: Credit,
    /// Shut while credit that was there is used up.
    pub(crate) gate: Gate,
    pub(crate) initial_count: Serial,
    /// Messages that wait at us, the sender.
    pub(crate) available: u32,
    /// Octets of the largest message that the receiver takes; 0 for no limit.
    pub(crate) max_message_size: u64,
    pub(crate) partial: Option<Partial>,
    /// Deliveries that ever were unsettled.
    pub(crate) unsettled_ever: usize,
    /// Tags of deliveries that came and are not settled.
    pub(crate) tags: Tags,
    /// What goes with each delivery that we send.
    pub(crate) delivery_state: Option<Box<DeliveryState>>,
    /// A flow of this link is due.
    pub(crate) flow_due: bool,
    /// A drain is to be answered once nothing is pending.
    pub(crate) drained_due: bool,
    /// Its end was told by an event.
    pub(crate) told: bool,
}

impl Link {
    /// A link of whose other end nothing is known; a sender counts from `first_id`.
    pub(crate) fn new(name: String, role: Role, session: SessionId, first_id: u32) -> Self {
        let initial_count = Serial(if role == Role::Sender { first_id } else { 0 });
        Self {
            name,
            role,
            session,
            local: Half::Idle,
            remote: Half::Idle,
            local_handle: u32::MAX,
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            credit: Credit { delivery_count: initial_count, ..Credit::default() },
            gate: Gate::default(),
            initial_count,
            available: 0,
            max_message_size: 0,
            partial: None,
            unsettled_ever: 0,
            tags: Tags::default(),
            delivery_state: None,
            flow_due: false,
            drained_due: false,
            told: false,
        }
    }

    /// Whether frames may be sent on it.
    pub(crate) fn is_usable(&self) -> bool {
        self.local == Half::Active && self.remote != Half::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(delivery_count: Option<u32>, link_credit: u32) -> Flow {
        Flow { delivery_count, link_credit: Some(link_credit), ..Flow::default() }
    }

    #[test]
    fn credit_counts_from_the_receivers_count_across_the_wraps() {
        for start in [0, 0x7fff_fff0_u32, 0xffff_fff0] {
            let mut credit = Credit { delivery_count: Serial(start), ..Credit::default() };
            credit.granted(&flow(Some(start), 30), Serial(start));
            (0..20).for_each(|_| credit.spend(1));
            assert_eq!(credit.link_credit, 10);
            credit.granted(&flow(Some(start), 30), Serial(start));
            assert_eq!(credit.link_credit, 10, "the same flow again gives nothing");
            credit.granted(&flow(None, 30), Serial(start));
            assert_eq!(credit.link_credit, 10, "without a count the initial one holds");
            credit.granted(&flow(Some(start), 5), Serial(start));
            assert_eq!(credit.link_credit, 0, "lowered below what was sent");
            credit.granted(&flow(Some(start), u32::MAX), Serial(start));
            assert_eq!(credit.link_credit, u32::MAX - 20);
            credit.use_up();
            assert_eq!((credit.link_credit, credit.delivery_count), (0, Serial(start).sub(1)));
        }
    }

    #[test]
    fn credit_that_is_taken_back_may_have_been_used_and_no_more_than_that() {
        let mut credit = Credit::default();
        credit.grant(10);
        credit.spend(3);
        credit.grant(2);
        credit.grant(4);
        for left in (0..7).rev() {
            assert!(!credit.is_used_up());
            credit.spend(1);
            assert_eq!(credit.link_credit + credit.recalled, left);
        }
        assert!(credit.is_used_up() && credit.delivery_count == Serial(10));
        credit.grant(u32::MAX);
        credit.grant(0);
        assert!(!credit.is_used_up());
    }
}
