//! What the engine tells its user.

use crate::{LinkId, SessionId};
use bytes::Bytes;
use hopline_timeline::{Instant, UPPER_BOUND};
use hopline_wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_wire::performative::{Attach, Open};
use hopline_wire::{AmqpError, DeliveryState, DeliveryTag, Fields, Role, Serial};

/// What happened on a connection. The order is that of the peer's frames.
#[derive(Debug)]
pub enum Event {
    /// The peer's `open` came; sessions can begin.
    Opened(Box<Open>),
    /// A session is in force at both ends: the peer began it, or answered ours.
    SessionBegun(SessionId),
    /// A session is gone; each of its links was told by [`Event::Detached`] before.
    SessionEnded {
        /// Which.
        session: SessionId,
        /// Why, if it was no plain end.
        error: Option<Box<AmqpError>>,
    },
    /// The peer attaches a link; answer with `accept` or `refuse`.
    AttachRequest {
        /// The link.
        link: LinkId,
        /// What the peer wants.
        attach: Box<Attach>,
    },
    /// The peer answers our attach. Without a terminus where one was wanted, it refuses, and
    /// [`Event::Detached`] says why.
    Attached {
        /// The link.
        link: LinkId,
        /// What is in force.
        attach: Box<Attach>,
    },
    /// A flow came for a link on which we send: credit, drain or echo may have changed.
    Credit {
        /// The link.
        link: LinkId,
        /// The flow's properties, such as the transaction that the credit belongs to (4.4.3).
        properties: Option<Box<Fields>>,
    },
    /// A whole delivery came.
    Delivery(Delivery),
    /// The sender used credit for what comes to nothing: a delivery that it aborted, or that goes
    /// on from an attachment of which nothing is kept (2.7.5), or it has skipped some (2.7.4).
    CreditUsed {
        /// The link.
        link: LinkId,
    },
    /// The peer told the state of a delivery that we sent.
    Outcome {
        /// The link.
        link: LinkId,
        /// The delivery, for `settle_sent`.
        id: Serial,
        /// What `send` was given.
        token: u64,
        /// The state; `None` means the default outcome of the source.
        state: Option<DeliveryState>,
        /// Whether the peer has settled. If so, the delivery is forgotten here.
        settled: bool,
    },
    /// The peer settled a delivery that it had sent to us.
    PeerSettled {
        /// The link.
        link: LinkId,
        /// The delivery.
        id: Serial,
    },
    /// The sender used up its credit as we asked by `drain`.
    Drained {
        /// The link.
        link: LinkId,
    },
    /// A link is gone. If the peer asked for it, answer with `detach`; nothing is owed otherwise.
    Detached {
        /// The link.
        link: LinkId,
        /// Whether the terminus is given up too.
        closed: bool,
        /// Whether the peer's detach is the cause; its answer is owed.
        by_peer: bool,
        /// Why.
        error: Option<Box<AmqpError>>,
    },
    /// The connection is over; each link and session was told before. What is in the outbox is
    /// still to be written.
    Closed {
        /// Whether the peer closed (or left) first.
        by_peer: bool,
        /// Why, if it was no plain close.
        error: Option<Box<AmqpError>>,
    },
}

/// A delivery that came whole.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The link.
    pub link: LinkId,
    /// Its id on the session.
    pub id: Serial,
    /// The sender's tag.
    pub tag: DeliveryTag,
    /// The message format.
    pub format: u32,
    /// Whether the sender has settled it; if not, `settle` is owed.
    pub settled: bool,
    /// The sender's state, such as a transaction's.
    pub state: Option<Box<DeliveryState>>,
    /// The encoded message: a slice of the read buffer if it came in one frame.
    pub payload: Bytes,
    /// When the read that held its last octet returned.
    pub received: Instant,
    /// When its last octet arrived at the host, if the host's kernel told.
    pub arrived: Option<Arrival>,
    /// Transfers that it came in.
    pub transfers: u32,
}

/// When octets arrived at the host.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the newest octets of their read did.
    pub at: Instant,
    /// They are not the newest of the read: they arrived then or before.
    pub is_upper_bound: bool,
}

impl Arrival {
    /// The detail octet of the stamp KERNEL_RECEIVE.
    pub fn detail(self) -> u8 {
        if self.is_upper_bound { UPPER_BOUND } else { 0 }
    }
}

/// What is known of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Its name.
    pub name: String,
    /// Our role.
    pub role: Role,
    /// Its session.
    pub session: SessionId,
    /// In force for the sender.
    pub snd_settle_mode: SenderSettleMode,
    /// In force for the receiver.
    pub rcv_settle_mode: ReceiverSettleMode,
}
