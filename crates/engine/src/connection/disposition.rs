//! Dispositions that come in (part 2, 2.7.6).

use super::Connection;
use crate::event::Event;
use crate::fault::Fault;
use crate::link::Half;
use crate::session::Session;
use crate::{LinkId, SessionId};
use hopline_wire::performative::Disposition;
use hopline_wire::{Role, Serial, condition};
use std::vec::IntoIter;

/// How many deliveries are looked at for each one that may have been of a link that is detached.
const LOOKS_PER_GHOST: usize = 64;

/// The deliveries of a disposition that are still to be told: one with each event that is taken, so
/// that its state is not held once for each of them.
#[derive(Debug)]
pub(super) struct Told {
    session: SessionId,
    ids: IntoIter<Serial>,
    disposition: Disposition,
}

impl Connection {
    pub(super) fn disposition(
        &mut self,
        channel: u16,
        disposition: Disposition,
        octets: usize,
    ) -> Result<(), Fault> {
        self.frames_seen.dispositions_in += 1;
        let Some(id) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(id) else { return Ok(()) };
        // Neither settled nor in a new state: nothing can come of it.
        if !disposition.settled && (disposition.role == Role::Sender || disposition.state.is_none())
        {
            return Ok(());
        }
        let (ids, looks) = deliveries(session, &disposition)
            .map_err(|text| Fault::session(id, condition::INVALID_FIELD, text))?;
        if !session.allowance.spend(looks, octets) {
            let text = "dispositions tell of too many deliveries again and again";
            return Err(Fault::session(id, condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        self.told = Some(Told { session: id, ids: ids.into_iter(), disposition });
        Ok(())
    }

    /// Tells of the next delivery for which it comes to something; `None`: of all there were.
    pub(super) fn tell_next(&mut self) -> Option<Event> {
        loop {
            let told = self.told.as_mut()?;
            let id = told.ids.next()?;
            let event = match told.disposition.role {
                Role::Receiver => self.outcome(id),
                Role::Sender => {
                    let session = told.session;
                    self.peer_settled(session, id)
                }
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn peer_settled(&mut self, session: SessionId, id: Serial) -> Option<Event> {
        let link = self.take_received(session, id)?;
        self.sessions.get_mut(session)?.allowance.earn();
        self.is_in_force(link).then_some(Event::PeerSettled { link, id })
    }

    fn outcome(&mut self, id: Serial) -> Option<Event> {
        let told = self.told.as_ref()?;
        let session = self.sessions.get_mut(told.session)?;
        let settled = told.disposition.settled;
        let (link, token) = if settled {
            let sent = session.sent.take(id)?;
            session.allowance.earn();
            (sent.link, sent.token)
        } else {
            session.sent.get_mut(id).map(|sent| (sent.link, sent.token))?
        };
        let state = told.disposition.state.clone();
        if session.ghosts > 0 && !self.is_in_force(link) {
            return None;
        }
        Some(Event::Outcome { link, id, token, state, settled })
    }

    fn is_in_force(&self, link: LinkId) -> bool {
        self.links.get(link).is_some_and(|link| link.local != Half::Ended)
    }

    /// A link is detached, by either end: nothing is settled on it any more. To look through all
    /// that is unsettled on its session has to be paid for by deliveries; until then it stays
    /// behind, as ghosts.
    pub(super) fn drop_unsettled(&mut self, session: SessionId, link: LinkId) {
        let ever = self.links.get_mut(link).map(|link| std::mem::take(&mut link.unsettled_ever));
        let Some(session) = self.sessions.get_mut(session) else { return };
        session.ghosts += ever.unwrap_or_default();
        let looks = session.sent.looks() + session.received.looks();
        if session.ghosts == 0 || session.ghosts * LOOKS_PER_GHOST < looks {
            return;
        }
        let links = &self.links;
        let is_gone =
            |id: LinkId| id == link || links.get(id).is_none_or(|link| link.local == Half::Ended);
        session.sent.remove(|sent| is_gone(sent.link));
        session.received.remove(|received| is_gone(received.link));
        session.ghosts = 0;
    }
}

/// The unsettled deliveries of a range, and how many entries were looked at for them.
fn deliveries(
    session: &Session,
    disposition: &Disposition,
) -> Result<(Vec<Serial>, usize), &'static str> {
    let first = Serial(disposition.first);
    let last = disposition.last.map_or(first, Serial);
    // By serial order the last number is just before the first here; written so it can only be
    // meant as all that there are.
    let all = (first, last) == (Serial(0), Serial(u32::MAX));
    if !all && last.distance(first) < 0 {
        return Err("the last delivery of a disposition is before its first");
    }
    Ok(match (disposition.role, all) {
        (Role::Receiver, true) => session.sent.all(),
        (Role::Receiver, false) => session.sent.ids(first, last),
        (Role::Sender, true) => session.received.all(),
        (Role::Sender, false) => session.received.ids(first, last),
    })
}
