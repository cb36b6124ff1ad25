//! Deliveries on their way out: whole in one transfer if that can be, else piece by piece.

use crate::config::Config;
use crate::connection::Connection;
use crate::departures::FollowedId;
use crate::link::Link;
use crate::session::{Sent, Session};
use crate::{CommandError, LinkId, Outbox, SessionId, Slot};
use bytes::Bytes;
use hopline_timeline::{TimelineId, Wait};
use hopline_wire::codec::Encode;
use hopline_wire::frame::{self, FrameType};
use hopline_wire::performative::{Frame, Transfer};
use hopline_wire::{DeliveryState, DeliveryTag, Role, Serial};

/// A delivery to be sent. Its header and annotations are written by the caller's own hand.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Tells it from the link's other unsettled deliveries.
    pub tag: DeliveryTag,
    /// Settled from the start: no outcome will come.
    pub settled: bool,
    /// The message format; 0 for messages of part 3.
    pub format: u32,
    /// Comes back in [`crate::Event::Outcome`].
    pub token: u64,
    /// The bare message and footer, or all of the message. Copied if small, else kept by reference.
    pub bare: Bytes,
}

/// A delivery that waits for the session window or the outbox.
#[derive(Debug)]
pub(crate) struct PendingSend {
    pub(crate) link: LinkId,
    transfer: Transfer,
    head: Bytes,
    /// Within `head`.
    slot: Option<Slot>,
    followed: Option<FollowedId>,
    bare: Bytes,
    sent: usize,
}

impl PendingSend {
    fn left(&self) -> usize {
        self.head.len() + self.bare.len() - self.sent
    }
}

impl Connection {
    /// Why the link can't send now; `None`: it can. [`Wait::NoConsumer`]: the link is gone.
    pub fn send_block(&self, link: LinkId) -> Option<Wait> {
        let link = self.links.get(link);
        let session = link.and_then(|link| self.sessions.get(link.session));
        match link.zip(session).filter(|_| self.is_open()) {
            Some((link, session)) => block(link, session, &self.config, &self.outbox),
            None => Some(Wait::NoConsumer),
        }
    }

    /// The state that goes with each delivery sent on a link from here on, such as a transaction's
    /// (4.4.3); none by default.
    pub fn set_delivery_state(&mut self, link: LinkId, state: Option<DeliveryState>) {
        if let Some(link) = self.links.get_mut(link) {
            link.delivery_state = state.map(Box::new);
        }
    }

    /// Sends a delivery. `write_head` appends header, delivery- and message-annotations (or
    /// nothing) to the buffer that it is given, and may return where in it a SEND stamp lies that
    /// is to be filled in as it leaves.
    ///
    /// # Errors
    /// [`CommandError::Blocked`] where [`Connection::send_block`] has a reason, and
    /// [`CommandError::MessageSize`]; nothing is sent then.
    pub fn send(
        &mut self,
        id: LinkId,
        delivery: Outgoing,
        write_head: impl FnOnce(&mut Vec<u8>) -> Option<Slot>,
    ) -> Result<Serial, CommandError> {
        let (now, is_open) = (self.latest(), self.is_open());
        let link = self.links.get_mut(id).ok_or(CommandError::Blocked)?;
        let session = self.sessions.get_mut(link.session).ok_or(CommandError::Blocked)?;
        if !is_open || block(link, session, &self.config, &self.outbox).is_some() {
            return Err(CommandError::Blocked);
        }
        // A receiver that keeps as much unsettled as we do hears first what we have settled.
        let unsaid = session.dispositions.unsaid();
        if unsaid > 0 && session.sent.len() + unsaid >= self.config.max_unsettled {
            self.frames_seen.dispositions_out += session.put_dispositions(self.outbox.tail());
        }
        let delivery_id = session.next_delivery_out;
        let tail = self.outbox.tail();
        let at = tail.len();
        let place = (session.local_channel, link.local_handle);
        let state = link.delivery_state.as_deref();
        let is_plain = state.is_none()
            && delivery.format == 0
            && Transfer::put_plain(tail, place, delivery_id.0, &delivery.tag, delivery.settled);
        if !is_plain {
            frame::start(tail, FrameType::Amqp, session.local_channel);
            transfer(link, delivery_id, &delivery).encode(tail);
        }
        let head_at = tail.len();
        let slot = write_head(tail);
        let message_size = (tail.len() - head_at + delivery.bare.len()) as u64;
        if link.max_message_size > 0 && message_size > link.max_message_size {
            tail.truncate(at);
            return Err(CommandError::MessageSize);
        }
        session.next_delivery_out = delivery_id.add(1);
        link.credit.spend(1);
        if link.credit.link_credit == 0 {
            link.gate.shut(now);
        }
        if !delivery.settled {
            link.unsettled_ever += 1;
            session.sent.push(delivery_id, Sent { link: id, token: delivery.token });
        }
        if tail.len() - at + delivery.bare.len() <= self.peer.frame_size {
            frame::finish(tail, at, delivery.bare.len());
            let id = |slot: Slot| move |tail: &[u8]| TimelineId::of(tail.get(slot.timeline..)?);
            let followed = slot.and_then(|slot| self.outbox.mark_slot(slot.instant, id(slot)));
            self.outbox.push(delivery.bare);
            if let Some(followed) = followed {
                self.outbox.end(followed);
            }
            session.transfer_sent(now);
            self.frames_seen.transfers_out += 1;
        } else {
            let transfer = transfer(link, delivery_id, &delivery);
            let head = Bytes::copy_from_slice(tail.get(head_at..).unwrap_or_default());
            tail.truncate(at);
            let slot = slot.map(|slot| Slot {
                timeline: slot.timeline - head_at,
                instant: slot.instant - head_at,
            });
            let (bare, followed) = (delivery.bare, None);
            let pending = PendingSend { link: id, transfer, head, slot, followed, bare, sent: 0 };
            session.pending = Some(pending);
            let session = link.session;
            self.touch(session);
        }
        Ok(delivery_id)
    }

    /// Sends on what is pending, as far as window and outbox allow.
    pub(crate) fn pump(&mut self, id: SessionId) {
        let now = self.latest();
        let Some(session) = self.sessions.get_mut(id) else { return };
        while self.outbox.len() < self.config.outbox_high_water
            && session.windows.remote_incoming_window > 0
            && let Some(pending) = &mut session.pending
        {
            let tail = self.outbox.tail();
            let at = tail.len();
            let payload = put_transfer(tail, session.local_channel, pending, self.peer.frame_size);
            let head = pending.head.slice(pending.sent.min(pending.head.len())..);
            let from_head = head.len().min(payload);
            let head_at = tail.len();
            tail.extend_from_slice(head.get(..from_head).unwrap_or_default());
            frame::finish(tail.get_mut(at..).unwrap_or_default(), 0, payload - from_head);
            if let Some(slot) = pending.slot
                && slot.instant >= pending.sent
                && slot.instant + 8 <= pending.sent + from_head
            {
                let id = |_: &[u8]| TimelineId::of(pending.head.get(slot.timeline..)?);
                let at = head_at + slot.instant - pending.sent;
                pending.followed = self.outbox.mark_slot(at, id);
            }
            let bare_at = (pending.sent + from_head).saturating_sub(pending.head.len());
            self.outbox.push(pending.bare.slice(bare_at..bare_at + payload - from_head));
            pending.sent += payload;
            if pending.left() == 0 {
                if let Some(followed) = pending.followed {
                    self.outbox.end(followed);
                }
                session.pending = None;
            }
            session.transfer_sent(now);
            self.frames_seen.transfers_out += 1;
        }
    }

    /// Gives up what is pending on a link. If some of it has gone it is aborted; if not, its id
    /// goes to the next delivery, for the peer must see no gap.
    pub(crate) fn abort_pending(&mut self, session: SessionId, link: LinkId) {
        let now = self.latest();
        let Some(session) = self.sessions.get_mut(session) else { return };
        let pending = session.pending.take_if(|pending| pending.link == link);
        let Some(given_up) = give_up(pending, &mut self.outbox) else { return };
        if given_up.sent == 0 {
            session.next_delivery_out = session.next_delivery_out.sub(1);
        } else if session.windows.remote_incoming_window > 0 {
            let handle = given_up.transfer.handle;
            let aborted = Transfer { aborted: true, ..continuation(handle) };
            aborted.put(self.outbox.tail(), session.local_channel);
            session.transfer_sent(now);
            self.frames_seen.transfers_out += 1;
        }
    }
}

/// What was pending and has no end any more.
pub(crate) fn give_up(pending: Option<PendingSend>, outbox: &mut Outbox) -> Option<PendingSend> {
    if let Some(followed) = pending.as_ref().and_then(|pending| pending.followed) {
        outbox.forget(followed);
    }
    pending
}

/// Why a link of an open connection can't send now.
fn block(link: &Link, session: &Session, config: &Config, outbox: &Outbox) -> Option<Wait> {
    if link.role != Role::Sender || !link.is_usable() {
        Some(Wait::NoConsumer)
    } else if link.credit.link_credit == 0 || session.sent.len() >= config.max_unsettled {
        Some(Wait::NoCredit)
    } else if session.windows.remote_incoming_window == 0 {
        Some(Wait::SessionWindow)
    } else if session.pending.is_some() || outbox.len() >= config.outbox_high_water {
        Some(Wait::SocketFull)
    } else {
        None
    }
}

fn transfer(link: &Link, id: Serial, delivery: &Outgoing) -> Transfer {
    Transfer {
        delivery_id: Some(id.0),
        delivery_tag: Some(delivery.tag),
        message_format: Some(delivery.format),
        settled: delivery.settled.then_some(true),
        state: link.delivery_state.as_deref().cloned(),
        ..continuation(link.local_handle)
    }
}

const fn continuation(handle: u32) -> Transfer {
    Transfer {
        handle,
        delivery_id: None,
        delivery_tag: None,
        message_format: None,
        settled: None,
        more: false,
        rcv_settle_mode: None,
        state: None::<DeliveryState>,
        resume: false,
        aborted: false,
        batchable: false,
    }
}

/// Begins the next frame of a pending delivery; returns how many octets of payload fit in it.
fn put_transfer(tail: &mut Vec<u8>, channel: u16, pending: &PendingSend, max: usize) -> usize {
    let at = frame::start(tail, FrameType::Amqp, channel);
    let body = tail.len();
    let mut transfer = match pending.sent {
        0 => pending.transfer.clone(),
        // A transaction has to be named in all transfers of a delivery (4.4.1).
        _ => Transfer {
            state: pending.transfer.state.clone(),
            ..continuation(pending.transfer.handle)
        },
    };
    transfer.more = true;
    transfer.encode(tail);
    let room = max.saturating_sub(tail.len() - at);
    let left = pending.left();
    if left <= room {
        tail.truncate(body);
        transfer.more = false;
        transfer.encode(tail);
    }
    left.min(room)
}
