//! Credit and windows, both ways (part 2, 2.5.6, 2.6.7, 2.7.4).

use super::Connection;
use crate::event::Event;
use crate::fault::{CommandError, Fault};
use crate::link::Half;
use crate::{LinkId, SessionId};
use hopline_timeline::Instant;
use hopline_wire::performative::{Flow, Frame};
use hopline_wire::{Role, Serial, condition};

impl Connection {
    pub(super) fn flow(&mut self, channel: u16, flow: Flow, now: Instant) -> Result<(), Fault> {
        self.frames_seen.flows_in += 1;
        let Some(session_id) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        if let Err(text) = session.windows.flow(&flow) {
            return Err(Fault::session(session_id, condition::WINDOW_VIOLATION, text));
        }
        session.gate.set(session.windows.remote_incoming_window > 0, self.received);
        let link = match flow.handle {
            Some(handle) => Some(session.link(session_id, handle)?),
            None => None,
        };
        let echo = flow.echo;
        match link {
            Some(link) => self.link_flow(link, flow),
            None if self.exchange.is_some() => self.clock_flow(session_id, &flow),
            None => {}
        }
        if echo {
            self.echo(session_id, link, now);
        }
        self.touch(session_id);
        Ok(())
    }

    fn link_flow(&mut self, id: LinkId, flow: Flow) {
        let Some(link) = self.links.get_mut(id).filter(|l| l.local != Half::Ended) else { return };
        match link.role {
            Role::Sender => {
                link.credit.granted(&flow, link.initial_count);
                link.gate.set(link.credit.link_credit > 0, self.received);
                let properties = flow.properties.map(Box::new);
                self.events.push_back(Event::Credit { link: id, properties });
            }
            Role::Receiver => {
                let count = flow.delivery_count.map(Serial);
                let ahead = count.filter(|c| c.distance(link.credit.delivery_count) > 0);
                if let Some(count) = ahead {
                    link.credit.spend(count.steps_from(link.credit.delivery_count));
                }
                if link.credit.drain && link.credit.link_credit == 0 {
                    link.credit.drain = false;
                    self.events.push_back(Event::Drained { link: id });
                } else if ahead.is_some() {
                    self.events.push_back(Event::CreditUsed { link: id });
                }
            }
        }
    }

    /// A flow of this link goes out with the next transmit; however often it is asked for, once.
    pub(super) fn flow_due(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else { return };
        if std::mem::replace(&mut link.flow_due, true) {
            return;
        }
        let session_id = link.session;
        if let Some(session) = self.sessions.get_mut(session_id) {
            session.flows.push(id);
        }
        self.touch(session_id);
    }

    /// Grants the sender credit for `credit` deliveries from here, in place of what it has left.
    ///
    /// # Errors
    /// The link is gone, or we are its sender.
    pub fn set_credit(&mut self, id: LinkId, credit: u32) -> Result<(), CommandError> {
        self.update_credit(id, |link| link.credit.grant(credit))
    }

    /// Asks the sender to use up its credit now; [`Event::Drained`] tells when it has.
    ///
    /// # Errors
    /// The link is gone, or we are its sender.
    pub fn drain(&mut self, id: LinkId) -> Result<(), CommandError> {
        self.update_credit(id, |link| link.credit.drain = true)
    }

    fn update_credit(
        &mut self,
        id: LinkId,
        change: impl FnOnce(&mut crate::link::Link),
    ) -> Result<(), CommandError> {
        let link = self.links.get_mut(id).filter(|l| l.is_usable()).ok_or(CommandError::NoLink)?;
        if link.role != Role::Receiver {
            return Err(CommandError::Role);
        }
        change(link);
        self.flow_due(id);
        Ok(())
    }

    /// Credit that is left on a link: what the sender may send still, at either end.
    pub fn credit(&self, id: LinkId) -> u32 {
        self.links.get(id).map_or(0, |link| link.credit.link_credit)
    }

    /// Whether the receiver of a link on which we send asks to use up the credit: send what is
    /// there, then call [`Connection::drained`].
    pub fn wants_drain(&self, id: LinkId) -> bool {
        self.links.get(id).is_some_and(|link| link.credit.drain && link.role == Role::Sender)
    }

    /// Uses up the credit of a link on which nothing is left to send, if that is still wanted. The
    /// receiver is told once all that was sent is in the outbox.
    pub fn drained(&mut self, id: LinkId) {
        if !self.wants_drain(id) {
            return;
        }
        let Some(link) = self.links.get_mut(id).filter(|link| link.is_usable()) else { return };
        link.credit.use_up();
        link.credit.drain = false;
        link.drained_due = true;
        self.flow_due(id);
    }

    /// Says how many messages wait for a link on which we send; it is told with the next flow.
    pub fn set_available(&mut self, id: LinkId, available: u32) {
        if let Some(link) = self.links.get_mut(id) {
            link.available = available;
        }
    }

    /// Writes what is due on a session: outcomes, then transfers, then flows.
    pub(super) fn flush_session(&mut self, id: SessionId) {
        self.put_dispositions(id);
        self.pump(id);
        self.put_flows(id);
    }

    pub(super) fn put_dispositions(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|s| s.local == Half::Active) else {
            return;
        };
        if !session.dispositions.is_empty() {
            self.frames_seen.dispositions_out += session.put_dispositions(self.outbox.tail());
        }
    }

    fn put_flows(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|s| s.local == Half::Active) else {
            return;
        };
        let channel = session.local_channel;
        let sending = session.pending.as_ref().map(|pending| pending.link);
        for link_id in std::mem::take(&mut session.flows) {
            let Some(link) = self.links.get_mut(link_id) else { continue };
            if link.drained_due && sending == Some(link_id) {
                session.flows.push(link_id);
                continue;
            }
            link.flow_due = false;
            // Before the peer's attach came its delivery-count is not known.
            if !link.is_usable() || (link.role == Role::Receiver && link.remote == Half::Idle) {
                continue;
            }
            session.windows.incoming_window = session.window_max;
            session.flow_due = false;
            let drained = std::mem::take(&mut link.drained_due);
            let flow = Flow {
                handle: Some(link.local_handle),
                delivery_count: Some(link.credit.delivery_count.0),
                link_credit: Some(link.credit.link_credit),
                available: (link.role == Role::Sender).then_some(link.available),
                drain: drained || link.credit.drain,
                ..session.flow()
            };
            flow.put(self.outbox.tail(), channel);
            self.frames_seen.flows_out += 1;
        }
        if std::mem::take(&mut session.flow_due) {
            session.windows.incoming_window = session.window_max;
            session.flow().put(self.outbox.tail(), channel);
            self.frames_seen.flows_out += 1;
        }
    }
}
