//! Detach, end, close: by the peer, by us, by mistake.

use super::{Connection, Reading};
use crate::event::Event;
use crate::fault::Fault;
use crate::link::Half;
use crate::outgoing::give_up;
use crate::tags::Tags;
use crate::{LinkId, SessionId};
use hopline_timeline::Instant;
use hopline_wire::AmqpError;
use hopline_wire::performative::{Close, Detach, End};

impl Connection {
    pub(super) fn answer_fault(&mut self, fault: Fault, now: Instant) {
        match fault {
            Fault::Link(link, error) => self.detach_with(link, error),
            Fault::Session(session, error) => self.end_with(session, error),
            Fault::Connection(error) => self.fail(error, now),
        }
    }

    /// Closes because of a mistake. Before AMQP is spoken there is no frame for it.
    pub(super) fn fail(&mut self, error: AmqpError, now: Instant) {
        match self.reading {
            Reading::Frames => {
                if self.local == Half::Idle && !self.put_open() {
                    self.reading = Reading::Over;
                    return self.tell_closed(false, Some(error));
                }
                if self.local == Half::Active {
                    let error = Some(Box::new(error.clone()));
                    self.put_reason(0, error, |error| Close { error });
                }
                self.local = Half::Ended;
                self.reading = Reading::Discard;
                // What is left of a stream whose frames can't be found is of no use.
                self.start_close_timer(now);
                self.tell_closed(false, Some(error));
            }
            Reading::Discard => self.over(),
            _ => {
                self.reading = Reading::Over;
                self.tell_closed(false, Some(error));
            }
        }
    }

    /// Nothing more is to be read.
    pub(super) fn over(&mut self) {
        self.reading = Reading::Over;
        self.tell_closed(false, None);
    }

    /// The peer's octets have ended. To be called once [`Connection::poll_event`] is `None`.
    pub fn handle_eof(&mut self) {
        if self.reading == Reading::Over {
            return;
        }
        let expected = self.local == Half::Ended;
        self.reading = Reading::Over;
        let text = "the peer closed the socket without a close frame";
        let lost = AmqpError::new(hopline_wire::condition::CONNECTION_FORCED, text);
        // Who has only ended its own side still reads.
        if self.local == Half::Active {
            self.flush_dispositions();
            self.put(&Close { error: Some(Box::new(lost.clone())) }, 0);
            self.local = Half::Ended;
        }
        self.tell_closed(!expected, (!expected).then_some(lost));
    }

    pub(super) fn close_frame(&mut self, close: Close) {
        if self.local == Half::Active {
            self.flush_dispositions();
            self.put(&Close { error: None }, 0);
            self.local = Half::Ended;
        }
        self.remote = Half::Ended;
        self.reading = Reading::Over;
        self.tell_closed(true, close.error.map(|error| *error));
    }

    fn flush_dispositions(&mut self) {
        let ids: Vec<_> = self.sessions.keys().collect();
        ids.into_iter().for_each(|id| self.put_dispositions(id));
    }

    /// Tells the end of all links, all sessions and the connection; once.
    pub(super) fn tell_closed(&mut self, by_peer: bool, error: Option<AmqpError>) {
        if std::mem::replace(&mut self.told_closed, true) {
            return;
        }
        let sessions: Vec<_> = self.sessions.keys().collect();
        let error = error.map(Box::new);
        for session in sessions {
            self.tell_session_ended(session, error.clone());
            if let Some(session) = self.sessions.remove(session) {
                self.waited.no_window_ns += session.gate.shut_ns(self.latest());
            }
        }
        self.by_local_channel.clear();
        self.by_remote_channel.clear();
        self.dirty.clear();
        self.events.push_back(Event::Closed { by_peer, error });
    }

    /// Closes the connection. [`Event::Closed`] comes once the peer has closed too, or not in time.
    pub fn close(&mut self, error: Option<AmqpError>, now: Instant) {
        match (self.reading, self.local) {
            (Reading::Over, _) | (_, Half::Ended) => {}
            (Reading::Frames, Half::Active) => {
                self.flush_dispositions();
                self.put_reason(0, error.map(Box::new), |error| Close { error });
                let sessions: Vec<_> = self.sessions.keys().collect();
                sessions.into_iter().for_each(|id| self.silence(id));
                self.local = Half::Ended;
                self.reading = Reading::Discard;
                self.start_close_timer(now);
            }
            _ => self.over(),
        }
    }

    pub(super) fn end_frame(&mut self, channel: u16, end: End) -> Result<(), Fault> {
        self.session_of(channel)?;
        let slot = self.by_remote_channel.get_mut(usize::from(channel));
        let Some(id) = slot.and_then(Option::take) else { return Ok(()) };
        let answered = self.sessions.get(id).is_some_and(|session| session.local == Half::Ended);
        if !answered {
            self.put_dispositions(id);
            self.put_end(id, None);
        }
        self.tell_session_ended(id, end.error);
        self.forget_session(id);
        Ok(())
    }

    fn put_end(&mut self, id: SessionId, error: Option<Box<AmqpError>>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let channel = session.local_channel;
        self.put_reason(channel, error, |error| End { error });
        self.silence(id);
    }

    /// Nothing goes out on a session after our end or close, whatever its user still asks for.
    fn silence(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.local = Half::Ended;
        give_up(session.pending.take(), &mut self.outbox);
        for link in &session.links {
            if let Some(link) = self.links.get_mut(*link) {
                link.local = Half::Ended;
            }
        }
    }

    fn end_with(&mut self, id: SessionId, error: AmqpError) {
        self.put_dispositions(id);
        self.put_end(id, Some(Box::new(error.clone())));
        self.tell_session_ended(id, Some(Box::new(error)));
    }

    /// Ends a session. [`Event::SessionEnded`] comes once the peer has ended it too.
    pub fn end(&mut self, id: SessionId, error: Option<AmqpError>) {
        if self.sessions.get(id).is_some_and(|session| session.local == Half::Active) {
            self.flush_session(id);
            self.put_end(id, error.map(Box::new));
        }
    }

    /// Tells the end of a session's links and of itself; once.
    fn tell_session_ended(&mut self, id: SessionId, error: Option<Box<AmqpError>>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if std::mem::replace(&mut session.told, true) {
            return;
        }
        let links = std::mem::take(&mut session.links);
        session.by_local_handle.clear();
        session.by_remote_handle.clear();
        session.unanswered.clear();
        give_up(session.pending.take(), &mut self.outbox);
        for link in links {
            self.tell_detached(link, false, false, error.clone());
            self.forget_link(link);
        }
        self.events.push_back(Event::SessionEnded { session: id, error });
    }

    fn forget_session(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(id) else { return };
        self.waited.no_window_ns += session.gate.shut_ns(self.latest());
        self.echoes.forget(id, None);
        if let Some(slot) = self.by_local_channel.get_mut(usize::from(session.local_channel)) {
            *slot = None;
        }
    }

    pub(super) fn detach_frame(&mut self, channel: u16, detach: Detach) -> Result<(), Fault> {
        let Some(session_id) = self.session_of(channel)? else { return Ok(()) };
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        let id = session.link(session_id, detach.handle)?;
        if let Some(slot) = session.by_remote_handle.get_mut(detach.handle as usize) {
            *slot = None;
        }
        // The peer counts its deliveries no more: it may send as many anew before our answer comes.
        self.drop_unsettled(session_id, id);
        let Some(link) = self.links.get_mut(id) else { return Ok(()) };
        link.remote = Half::Ended;
        let answered = link.local == Half::Ended;
        self.drop_partial(id);
        self.tell_detached(id, detach.closed, !answered, detach.error);
        if answered {
            self.free_link(id);
        }
        Ok(())
    }

    pub(super) fn tell_detached(
        &mut self,
        link: LinkId,
        closed: bool,
        by_peer: bool,
        error: Option<Box<AmqpError>>,
    ) {
        if let Some(known) = self.links.get_mut(link)
            && !std::mem::replace(&mut known.told, true)
        {
            self.events.push_back(Event::Detached { link, closed, by_peer, error });
        }
    }

    pub(super) fn detach_with(&mut self, id: LinkId, error: AmqpError) {
        self.tell_detached(id, true, false, Some(Box::new(error.clone())));
        self.detach(id, true, Some(error));
    }

    /// Detaches a link: of our own accord ([`Event::Detached`] comes with the peer's answer) or in
    /// answer to the peer. Its deliveries are settled no more; what is half sent is aborted. An
    /// attach that was not answered yet is refused.
    pub fn detach(&mut self, id: LinkId, closed: bool, error: Option<AmqpError>) {
        let Some(link) = self.links.get(id) else { return };
        match link.local {
            Half::Idle => return self.refuse_with(id, closed, error),
            Half::Active => {}
            Half::Ended => return,
        }
        let (session, handle) = (link.session, link.local_handle);
        self.flush_session(session);
        self.abort_pending(session, id);
        self.drop_unsettled(session, id);
        let Some(session) = self.sessions.get_mut(session) else { return };
        let channel = session.local_channel;
        self.put_reason(channel, error.map(Box::new), |error| Detach { handle, closed, error });
        self.drop_partial(id);
        let Some(link) = self.links.get_mut(id) else { return };
        link.local = Half::Ended;
        link.tags = Tags::default();
        if link.remote == Half::Ended {
            self.free_link(id);
        }
    }

    /// Both ends have detached: handle and name are free.
    pub(super) fn free_link(&mut self, id: LinkId) {
        let Some(link) = self.links.get(id) else { return };
        let (session, handle) = (link.session, link.local_handle);
        if let Some(session) = self.sessions.get_mut(session)
            && let Some(slot) = session.by_local_handle.get_mut(handle as usize)
            && *slot == Some(id)
        {
            *slot = None;
        }
        self.forget_link(id);
    }

    pub(super) fn forget_link(&mut self, id: LinkId) {
        self.drop_partial(id);
        let Some(link) = self.links.remove(id) else { return };
        self.waited.no_credit_ns += link.gate.shut_ns(self.latest());
        self.echoes.forget(link.session, Some(id));
        if let Some(session) = self.sessions.get_mut(link.session) {
            session.links.remove(&id);
        }
        let key = (link.name, link.role);
        if self.names.get(&key) == Some(&id) {
            self.names.remove(&key);
        }
    }

    pub(super) fn drop_partial(&mut self, id: LinkId) {
        if let Some(partial) = self.links.get_mut(id).and_then(|link| link.partial.take()) {
            self.partial_octets -= partial.octets.len();
        }
    }
}
