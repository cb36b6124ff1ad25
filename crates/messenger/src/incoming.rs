//! A message that came.

use crate::foreign;
use crate::tracker::Tracker;
use crate::{Error, PeerId};
use bytes::Bytes;
use hopline_driver::engine::wire::Serial;
use hopline_driver::engine::wire::codec::{Reader, read_binary};
use hopline_driver::engine::wire::message::{
    Layout, Message, annotation, message_annotations, section,
};
use hopline_driver::engine::{Delivery, LinkId};
use hopline_driver::timeline::{ANNOTATION, Appender, ClockOffset, Instant, Stage, Timeline};
use hopline_driver::timeline::{is_timeline, receive_detail};
use std::sync::Arc;

/// Which delivery of which link.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    pub(crate) peer: PeerId,
    pub(crate) link: LinkId,
    pub(crate) delivery: Serial,
}

/// What all messages have in common that come by a subscription over one connection.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) peer: PeerId,
    /// The container-id of the peer.
    pub(crate) sender: Arc<str>,
    /// The address of the subscription.
    pub(crate) address: Arc<str>,
    /// Our node record, if we stamp.
    pub(crate) node: Option<Arc<[u8]>>,
}

/// A message that came, and what is needed to settle it.
#[derive(Clone, Debug)]
pub struct Received {
    pub(crate) origin: Arc<Origin>,
    pub(crate) delivery: Delivery,
    /// How far the peer's clock was ahead of ours.
    pub(crate) tie: Option<ClockOffset>,
    pub(crate) number: u64,
    pub(crate) queued_at: Instant,
    pub(crate) taken_at: Instant,
}

impl Received {
    pub(crate) fn place(&self) -> Place {
        Place { peer: self.origin.peer, link: self.delivery.link, delivery: self.delivery.id }
    }

    /// Stands for the message, as long as it is in the incoming window.
    pub const fn tracker(&self) -> Tracker {
        Tracker::incoming(self.number)
    }

    /// The address of the subscription that it came by.
    pub fn address(&self) -> &str {
        &self.origin.address
    }

    /// The encoded message, as it came.
    pub const fn encoded(&self) -> &Bytes {
        &self.delivery.payload
    }

    /// Whether the sender has settled it: no outcome is owed.
    pub const fn is_settled(&self) -> bool {
        self.delivery.settled
    }

    /// The message, decoded anew with each call.
    ///
    /// # Errors
    /// The peer sent something that is no message.
    pub fn message(&self) -> Result<Message, Error> {
        Message::decode(&self.delivery.payload)
            .map_err(|error| Error::Message { reason: error.to_string() })
    }

    /// Deliveries that failed before this one.
    pub fn delivery_count(&self) -> u32 {
        let layout = Layout::scan(&self.delivery.payload).ok();
        layout.and_then(|layout| layout.header).map_or(0, |header| header.delivery_count)
    }

    /// The timeline with our own stamps: KERNEL_RECEIVE if the kernel told it, RECEIVE, DESERIALIZE
    /// (the frame; sections are decoded when asked for), QUEUE_EVENT, NEXT_EVENT; before them
    /// FOREIGN_INGRESS and FOREIGN_SENT, where a broker of another make has left its own
    /// annotations (`x-opt-ingress-time` and the like). The detail of RECEIVE is
    /// [`UNSTAMPED_PEER`](hopline_driver::timeline::UNSTAMPED_PEER) if the peer is not the node
    /// that stamped last, going by its container-id. `None`: the message carries no timeline that
    /// can be read. With
    /// [`Sampling::Off`](crate::Sampling::Off) our own stamps are left out.
    pub fn timeline(&self) -> Option<Timeline> {
        let (carried, foreign) = self.carried()?;
        let via = receive_detail(carried, &self.origin.sender);
        let mut octets = carried.to_vec();
        if let Some(node) = &self.origin.node {
            let mut stamps = Appender::new(&mut octets, 0)?;
            foreign::append(&mut stamps, &foreign);
            stamps.node(node);
            if let Some(tie) = self.tie.filter(|_| via == 0) {
                stamps.tie(tie);
            }
            if let Some(arrived) = self.delivery.arrived {
                stamps.stamp(Stage::KernelReceive, arrived.detail(), arrived.at);
            }
            stamps.stamp(Stage::Receive, via, self.delivery.received);
            stamps.stamp(Stage::Deserialize, 0, self.queued_at);
            stamps.stamp(Stage::QueueEvent, 0, self.queued_at);
            stamps.stamp(Stage::NextEvent, 0, self.taken_at);
        }
        Timeline::parse(&octets).ok()
    }

    /// Whether something is under the timeline's name, readable or not.
    pub fn has_annotation(&self) -> bool {
        self.annotations().0.is_some()
    }

    fn carried(&self) -> Option<(&[u8], Vec<foreign::Stamp>)> {
        let (timeline, foreign) = self.annotations();
        let octets = read_binary(&mut Reader::new(timeline?)).ok()?;
        is_timeline(octets).then_some((octets, foreign))
    }

    /// What is under the timeline's name, and the stamps of others.
    fn annotations(&self) -> (Option<&[u8]>, Vec<foreign::Stamp>) {
        let (mut timeline, mut foreign) = (None, Vec::new());
        if let Some(map) = message_annotations(&self.delivery.payload) {
            annotation(map, |name, _, value| match name {
                Some(name) if name == ANNOTATION.as_bytes() => timeline = Some(value),
                Some(name) => foreign.extend(foreign::stamp(name, value)),
                None => {}
            });
        }
        (timeline, foreign)
    }
}

/// Whether a message may have annotations, by its first section.
pub(crate) fn has_annotations(message: &[u8]) -> bool {
    !matches!(message, [0x00, 0x53, section::PROPERTIES..=section::FOOTER, ..])
}
