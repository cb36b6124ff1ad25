//! Deliveries that come in (part 2, 2.6.12 to 2.6.14, 2.7.5).

use super::Connection;
use crate::config::Config;
use crate::event::{Delivery, Event};
use crate::fault::{CommandError, Fault};
use crate::link::{Half, Link, Partial};
use crate::session::{Received, Session};
use crate::{LinkId, SessionId};
use bytes::{Bytes, BytesMut};
use hopline_wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_wire::performative::Transfer;
use hopline_wire::{DeliveryState, DeliveryTag, Role, Serial, condition};

/// Transfers of one delivery that carry nothing: more than a sender has a use for.
const EMPTY_TRANSFERS_MAX: u32 = 1024;

/// Octets that are set aside at most for a delivery of several transfers, if the last one had as
/// many.
const EXPECTED_MAX: usize = 4 << 20;

impl Connection {
    pub(super) fn transfer(
        &mut self,
        channel: u16,
        mut transfer: Transfer,
        payload: Bytes,
    ) -> Result<(), Fault> {
        self.frames_seen.transfers_in += 1;
        let Some(session_id) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        if !session.windows.received() {
            let text = "a transfer came although the session's window is closed";
            return Err(Fault::session(session_id, condition::WINDOW_VIOLATION, text));
        }
        let id = session.link(session_id, transfer.handle)?;
        if session.windows.incoming_window <= session.window_max / 2 {
            session.flow_due = true;
            if !std::mem::replace(&mut session.is_dirty, true) {
                self.dirty.push(session_id);
            }
        }
        let Some(link) = self.links.get_mut(id) else { return Ok(()) };
        if link.role != Role::Receiver {
            let text = "a transfer came on a link on which the peer receives";
            return Err(Fault::session(session_id, condition::NOT_ALLOWED, text));
        }
        // What crosses our detach is dropped; the session counts it nevertheless.
        if link.local != Half::Active {
            self.skip_delivery(session_id, &transfer);
            return Ok(());
        }
        if link.partial.is_some() {
            return self.go_on(id, transfer, payload);
        }
        let first = begin(&self.config, (session_id, session), (id, link), &transfer)?;
        if transfer.aborted {
            self.events.push_back(Event::CreditUsed { link: id });
            return Ok(());
        }
        let state = transfer.state.take().map(Box::new);
        if transfer.more || transfer.resume {
            return self.begin_partial(id, &transfer, (first, state), payload);
        }
        check_size(&self.config, id, payload.len())?;
        self.whole = Some(Delivery {
            link: id,
            id: first.id,
            tag: first.tag,
            format: transfer.message_format.unwrap_or(0),
            settled: first.settled,
            state,
            payload,
            received: self.received,
            arrived: self.arrival(),
            transfers: 1,
        });
        Ok(())
    }

    fn skip_delivery(&mut self, session: SessionId, transfer: &Transfer) {
        let Some(session) = self.sessions.get_mut(session) else { return };
        let id = transfer.delivery_id.map(Serial);
        if id.is_some() && id == session.next_delivery_in {
            session.next_delivery_in = id.map(|id| id.add(1));
        }
    }

    /// The first transfer of several, or of a delivery that is dropped.
    fn begin_partial(
        &mut self,
        id: LinkId,
        transfer: &Transfer,
        (first, state): (First, Option<Box<DeliveryState>>),
        payload: Bytes,
    ) -> Result<(), Fault> {
        let mut partial = Partial {
            id: first.id,
            tag: first.tag,
            format: transfer.message_format.unwrap_or(0),
            settled: first.settled,
            resumed: transfer.resume,
            state,
            octets: BytesMut::new(),
            transfers: 1,
            empty: u32::from(payload.is_empty()),
        };
        let payload = if partial.resumed { Bytes::new() } else { payload };
        check_size(&self.config, id, payload.len())?;
        if !transfer.more {
            return self.finish(id, partial, payload);
        }
        self.check_partial(id, payload.len())?;
        if self.partial_octets == 0 {
            partial.octets.reserve(self.expected_octets.max(payload.len()));
        }
        partial.octets.extend_from_slice(&payload);
        self.partial_octets += payload.len();
        if let Some(link) = self.links.get_mut(id) {
            link.partial = Some(partial);
        }
        Ok(())
    }

    fn go_on(&mut self, id: LinkId, transfer: Transfer, payload: Bytes) -> Result<(), Fault> {
        let Some(link) = self.links.get_mut(id) else { return Ok(()) };
        check_modes(id, link, &transfer)?;
        let session = link.session;
        let Some(partial) = &mut link.partial else { return Ok(()) };
        check_continuation(id, partial, &transfer)?;
        partial.transfers += 1;
        partial.settled |= transfer.settled == Some(true);
        let delivery_id = partial.id;
        if transfer.rcv_settle_mode == Some(ReceiverSettleMode::First)
            && let Some(session) = self.sessions.get_mut(session)
            && let Some(received) = session.received.get_mut(delivery_id)
        {
            received.settles_first = true;
        }
        partial.empty += u32::from(payload.is_empty());
        let payload = if partial.resumed { Bytes::new() } else { payload };
        let size = partial.octets.len() + payload.len();
        if partial.transfers > self.config.max_transfers || partial.empty > EMPTY_TRANSFERS_MAX {
            let text = "the delivery has too many transfers";
            return Err(Fault::link(id, condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        if transfer.aborted {
            self.drop_partial(id);
            self.take_received(session, delivery_id);
            self.events.push_back(Event::CreditUsed { link: id });
            return Ok(());
        }
        check_size(&self.config, id, size)?;
        self.check_partial(id, payload.len())?;
        let Some(link) = self.links.get_mut(id) else { return Ok(()) };
        let Some(partial) = &mut link.partial else { return Ok(()) };
        partial.octets.extend_from_slice(&payload);
        self.partial_octets += payload.len();
        if transfer.more {
            return Ok(());
        }
        let Some(mut partial) = link.partial.take() else { return Ok(()) };
        self.partial_octets -= partial.octets.len();
        let octets = std::mem::take(&mut partial.octets);
        self.expected_octets = octets.len().min(EXPECTED_MAX);
        self.finish(id, partial, without_waste(octets))
    }

    fn check_partial(&self, id: LinkId, more: usize) -> Result<(), Fault> {
        if self.partial_octets + more > self.config.max_partial_octets {
            let text = "unfinished deliveries take up too much memory";
            return Err(Fault::link(id, condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        Ok(())
    }

    fn finish(&mut self, id: LinkId, partial: Partial, payload: Bytes) -> Result<(), Fault> {
        if partial.resumed {
            self.events.push_back(Event::CreditUsed { link: id });
            return Ok(());
        }
        let link = self.links.get(id);
        if let Some(link) = link {
            check_settled(id, link, partial.settled)?;
        }
        let session = link.map(|link| link.session);
        if partial.settled
            && partial.transfers > 1
            && let Some(session) = session
        {
            self.take_received(session, partial.id);
        }
        self.whole = Some(Delivery {
            link: id,
            id: partial.id,
            tag: partial.tag,
            format: partial.format,
            settled: partial.settled,
            state: partial.state,
            payload,
            received: self.received,
            arrived: self.arrival(),
            transfers: partial.transfers,
        });
        Ok(())
    }

    /// Forgets a delivery that came unsettled; returns its link. Its tag may be used again.
    pub(super) fn take_received(&mut self, session: SessionId, id: Serial) -> Option<LinkId> {
        let received = self.sessions.get_mut(session)?.received.take(id)?;
        if let Some(link) = self.links.get_mut(received.link) {
            link.tags.remove(&received.tag);
        }
        Some(received.link)
    }

    /// Tells the outcome of a delivery that came unsettled. A receiver of mode `first` settles by
    /// it; one of mode `second` waits for [`Event::PeerSettled`].
    ///
    /// # Errors
    /// The link is gone: the sender has, or will get, the delivery back. Or the state does not fit
    /// in a frame of the peer.
    pub fn settle(
        &mut self,
        id: LinkId,
        delivery: Serial,
        state: DeliveryState,
    ) -> Result<(), CommandError> {
        self.settle_run(id, delivery, 1, &state)
    }

    /// Tells the same outcome of `count` deliveries of a link whose ids follow one another, as
    /// [`Connection::settle`] does for each.
    ///
    /// # Errors
    /// As those of [`Connection::settle`].
    pub fn settle_run(
        &mut self,
        id: LinkId,
        first: Serial,
        count: u32,
        state: &DeliveryState,
    ) -> Result<(), CommandError> {
        let state = self.fit_state(state.clone())?;
        let link = self.links.get_mut(id).filter(|l| l.is_usable()).ok_or(CommandError::NoLink)?;
        let session_id = link.session;
        let session = self.sessions.get_mut(session_id).ok_or(CommandError::NoSession)?;
        let link_settles = link.rcv_settle_mode == ReceiverSettleMode::First;
        let mut alike = (first, 0, link_settles);
        for delivery in (0..count).map(|n| first.add(n)) {
            let received = session.received.get_mut(delivery);
            let Some(received) = received.filter(|received| received.link == id) else { continue };
            let settles = link_settles || received.settles_first;
            if settles {
                link.tags.remove(&received.tag);
                session.received.take(delivery);
            }
            if alike.0.add(alike.1) != delivery || alike.2 != settles {
                let before = (alike.0, alike.1);
                session.dispositions.push(Role::Receiver, before, alike.2, Some(&state));
                alike = (delivery, 0, settles);
            }
            alike.1 += 1;
        }
        let (first, count, settles) = alike;
        session.dispositions.push(Role::Receiver, (first, count), settles, Some(&state));
        self.touch(session_id);
        Ok(())
    }

    /// Settles a delivery that we sent, in answer to an outcome of a receiver that has not settled.
    ///
    /// # Errors
    /// The link is gone, or the state does not fit in a frame of the peer.
    pub fn settle_sent(
        &mut self,
        id: LinkId,
        delivery: Serial,
        state: Option<DeliveryState>,
    ) -> Result<(), CommandError> {
        let link = self.links.get(id).filter(|l| l.is_usable()).ok_or(CommandError::NoLink)?;
        let session_id = link.session;
        let state = state.map(|state| self.fit_state(state)).transpose()?;
        let session = self.sessions.get_mut(session_id).ok_or(CommandError::NoSession)?;
        if session.sent.take(delivery).is_some() {
            session.allowance.earn();
            session.dispositions.push(Role::Sender, (delivery, 1), true, state.as_ref());
            self.touch(session_id);
        }
        Ok(())
    }
}

/// What is set aside in vain is not kept for as long as the message is.
fn without_waste(octets: BytesMut) -> Bytes {
    match octets.capacity() > 2 * octets.len() {
        true => Bytes::copy_from_slice(&octets),
        false => octets.freeze(),
    }
}

/// What the first transfer of a delivery says of it.
struct First {
    id: Serial,
    tag: DeliveryTag,
    settled: bool,
}

/// The first transfer of a delivery counts for session and link, and may be kept as unsettled.
#[inline]
fn begin(
    config: &Config,
    (session_id, session): (SessionId, &mut Session),
    (id, link): (LinkId, &mut Link),
    transfer: &Transfer,
) -> Result<First, Fault> {
    let first = first_transfer(session_id, session, transfer)?;
    session.next_delivery_in = Some(first.id.add(1));
    check_modes(id, link, transfer)?;
    if link.credit.is_used_up() {
        let text = "a transfer came although the link has no credit";
        return Err(Fault::link(id, condition::TRANSFER_LIMIT_EXCEEDED, text));
    }
    link.credit.spend(1);
    if transfer.aborted || transfer.resume {
        return Ok(first);
    }
    if !transfer.more {
        check_settled(id, link, first.settled)?;
    }
    if !first.settled {
        let settles_first = transfer.rcv_settle_mode == Some(ReceiverSettleMode::First);
        keep(config, (session_id, session), (id, link), &first, settles_first)?;
    }
    Ok(first)
}

/// A delivery is unsettled until we have told its outcome.
fn keep(
    config: &Config,
    (session_id, session): (SessionId, &mut Session),
    (id, link): (LinkId, &mut Link),
    first: &First,
    settles_first: bool,
) -> Result<(), Fault> {
    if session.received.len() >= config.max_unsettled {
        let text = "too many deliveries are unsettled on this session";
        return Err(Fault::session(session_id, condition::RESOURCE_LIMIT_EXCEEDED, text));
    }
    let of_link = || {
        let received = session.received.newest_first();
        received.filter(|received| received.link == id).map(|received| received.tag)
    };
    if !link.tags.insert(first.tag, of_link) {
        let text = "the delivery-tag is that of an unsettled delivery of the same link";
        return Err(Fault::link(id, condition::INVALID_FIELD, text));
    }
    link.unsettled_ever += 1;
    session.received.push(first.id, Received { link: id, tag: first.tag, settles_first });
    Ok(())
}

#[inline]
fn first_transfer(id: SessionId, session: &Session, transfer: &Transfer) -> Result<First, Fault> {
    let invalid = |text: &str| Fault::session(id, condition::INVALID_FIELD, text);
    let Some(delivery_id) = transfer.delivery_id.map(Serial) else {
        return Err(invalid("the first transfer has no delivery-id"));
    };
    let Some(tag) = transfer.delivery_tag else {
        return Err(invalid("the first transfer has no delivery-tag"));
    };
    if session.next_delivery_in.is_some_and(|next| next != delivery_id) {
        return Err(invalid("the delivery-id does not follow the one before"));
    }
    Ok(First { id: delivery_id, tag, settled: transfer.settled == Some(true) })
}

fn check_size(config: &Config, id: LinkId, size: usize) -> Result<(), Fault> {
    if size as u64 > config.max_message_size {
        let text = format!("the message exceeds {} octets", config.max_message_size);
        return Err(Fault::link(id, condition::MESSAGE_SIZE_EXCEEDED, text));
    }
    Ok(())
}

fn check_settled(id: LinkId, link: &Link, settled: bool) -> Result<(), Fault> {
    if link.snd_settle_mode == SenderSettleMode::Settled && !settled {
        let text = "an unsettled delivery came on a link whose sender settles all";
        return Err(Fault::link(id, condition::INVALID_FIELD, text));
    }
    Ok(())
}

fn check_continuation(id: LinkId, partial: &Partial, transfer: &Transfer) -> Result<(), Fault> {
    let same = transfer.delivery_id.is_none_or(|delivery| Serial(delivery) == partial.id)
        && transfer.delivery_tag.is_none_or(|tag| tag == partial.tag)
        && transfer.message_format.is_none_or(|format| format == partial.format)
        && transaction(transfer.state.as_ref()).is_none_or(|id| {
            transaction(partial.state.as_deref()).is_some_and(|begun| begun == id)
        });
    if same {
        return Ok(());
    }
    let text = "a delivery began, or changed its id, tag, format or transaction, before the last \
                one was whole";
    Err(Fault::link(id, condition::INVALID_FIELD, text))
}

/// The transaction that a delivery is part of.
fn transaction(state: Option<&DeliveryState>) -> Option<&Bytes> {
    match state {
        Some(DeliveryState::Transactional(state)) => Some(&state.txn_id),
        _ => None,
    }
}

fn check_modes(id: LinkId, link: &Link, transfer: &Transfer) -> Result<(), Fault> {
    if link.snd_settle_mode == SenderSettleMode::Unsettled && transfer.settled == Some(true) {
        let text = "a settled delivery came on a link whose sender settles none";
        return Err(Fault::link(id, condition::INVALID_FIELD, text));
    }
    // Of a settled delivery this field is to be ignored (2.7.5).
    if link.rcv_settle_mode == ReceiverSettleMode::First
        && transfer.settled != Some(true)
        && transfer.rcv_settle_mode == Some(ReceiverSettleMode::Second)
    {
        let text = "rcv-settle-mode second came on a link that was attached with first";
        return Err(Fault::link(id, condition::INVALID_FIELD, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_set_aside_half_may_be_in_vain_and_no_more() {
        for (octets, is_copied) in [(1000, false), (500, false), (499, true), (1, true)] {
            let mut aside = BytesMut::with_capacity(1000);
            aside.resize(octets, 7);
            let place = aside.as_ptr();
            let kept = without_waste(aside);
            assert_eq!((kept.len(), kept.as_ptr() != place), (octets, is_copied));
        }
    }
}
