use super::Connection;
use super::fit::too_small;
use crate::event::{Event, LinkInfo};
use crate::fault::{CommandError, Fault};
use crate::link::{Half, Link};
use crate::session::set_handle;
use crate::{LinkId, SessionId};
use hopline_wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_wire::performative::{Attach, Detach};
use hopline_wire::terminus::{Source, TargetKind};
use hopline_wire::{AmqpError, Fields, Role, Serial, Symbol, condition};

/// What a link is attached with.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    /// Its name: unique among the links of one direction between the two containers.
    pub name: String,
    /// Our role.
    pub role: Role,
    /// Where messages come from.
    pub source: Source,
    /// Where messages go.
    pub target: TargetKind,
    /// How the sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// Extensions wanted.
    pub desired_capabilities: Vec<Symbol>,
    /// About the link.
    pub properties: Fields,
}

/// The answer to a peer's attach: what is in force.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go.
    pub target: Option<TargetKind>,
    /// How the sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// Extensions offered.
    pub offered_capabilities: Vec<Symbol>,
    /// About the link.
    pub properties: Fields,
}

impl Connection {
    pub(super) fn attach_frame(&mut self, channel: u16, attach: Attach) -> Result<(), Fault> {
        let Some(session_id) = self.session_of(channel)? else { return Ok(()) };
        self.check_handle(session_id, attach.handle)?;
        let (handle, role) = (attach.handle, attach.role.peer());
        let Some(session) = self.sessions.get_mut(session_id) else { return Ok(()) };
        let id = match session.take_unanswered(&attach.name, role) {
            Some(id) => {
                self.attach_answered(id, attach);
                id
            }
            None => {
                if let Some(old) = self.names.get(&(attach.name.clone(), role)) {
                    self.steal(*old);
                }
                self.attach_by_peer(session_id, attach)
            }
        };
        if let Some(session) = self.sessions.get_mut(session_id) {
            set_handle(&mut session.by_remote_handle, handle, Some(id));
        }
        Ok(())
    }

    fn check_handle(&self, id: SessionId, handle: u32) -> Result<(), Fault> {
        if handle > self.config.handle_max {
            let text = format!("handle {handle} is above handle-max {}", self.config.handle_max);
            return Err(Fault::connection(condition::FRAMING_ERROR, text));
        }
        let table = self.sessions.get(id).map(|session| &session.by_remote_handle);
        if table.and_then(|table| table.get(handle as usize)).is_some_and(Option::is_some) {
            let text = format!("handle {handle} is attached already");
            return Err(Fault::session(id, condition::HANDLE_IN_USE, text));
        }
        Ok(())
    }

    /// The older of two links with one name goes (2.6.1).
    fn steal(&mut self, old: LinkId) {
        let Some(link) = self.links.get(old) else { return };
        match (link.local, link.remote) {
            (Half::Ended, _) => {}
            (_, Half::Ended) => self.detach(old, true, None),
            _ => {
                let text = "another link with the same name was attached";
                self.detach_with(old, AmqpError::new(condition::STOLEN, text));
            }
        }
    }

    fn attach_answered(&mut self, id: LinkId, attach: Attach) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.remote = Half::Active;
        link.snd_settle_mode = attach.snd_settle_mode;
        link.rcv_settle_mode = attach.rcv_settle_mode;
        match link.role {
            Role::Sender => link.max_message_size = attach.max_message_size,
            Role::Receiver => {
                link.initial_count = Serial(attach.initial_delivery_count.unwrap_or(0));
                link.credit.delivery_count = link.initial_count;
            }
        }
        if link.local == Half::Ended {
            return;
        }
        let asked = link.credit.link_credit > 0 || link.credit.drain;
        let wants_flow = link.role == Role::Receiver && asked;
        let attach = Box::new(attach);
        self.events.push_back(Event::Attached { link: id, attach });
        if wants_flow {
            self.flow_due(id);
        }
    }

    fn attach_by_peer(&mut self, session: SessionId, attach: Attach) -> LinkId {
        let role = attach.role.peer();
        let mut link = Link::new(attach.name.clone(), role, session, self.config.first_id);
        link.remote = Half::Active;
        link.max_message_size = attach.max_message_size;
        if role == Role::Receiver {
            // A sender owes its count; one that is silent about it counts from 0.
            link.initial_count = Serial(attach.initial_delivery_count.unwrap_or(0));
            link.credit.delivery_count = link.initial_count;
        }
        let id = self.add_link(link);
        self.events.push_back(Event::AttachRequest { link: id, attach: Box::new(attach) });
        id
    }

    fn add_link(&mut self, link: Link) -> LinkId {
        let (key, session) = ((link.name.clone(), link.role), link.session);
        let id = self.links.insert(Box::new(link));
        self.names.insert(key, id);
        if let Some(session) = self.sessions.get_mut(session) {
            session.links.insert(id);
        }
        id
    }

    /// Takes a local handle for a link; `None` if none is free.
    fn take_handle(&mut self, id: LinkId) -> Option<(u32, u16)> {
        let link = self.links.get_mut(id)?;
        let session = self.sessions.get_mut(link.session)?;
        let handle = session.free_handle(self.config.handle_max)?;
        set_handle(&mut session.by_local_handle, handle, Some(id));
        link.local_handle = handle;
        link.local = Half::Active;
        Some((handle, session.local_channel))
    }

    /// Attaches a link. [`Event::Attached`] comes with the peer's answer.
    ///
    /// # Errors
    /// The session is gone, no handle is free, or it does not fit in a frame of the peer.
    pub fn attach(
        &mut self,
        session: SessionId,
        options: AttachOptions,
    ) -> Result<LinkId, CommandError> {
        let active = self.sessions.get(session).is_some_and(|s| s.local == Half::Active);
        if !active {
            return Err(CommandError::NoSession);
        }
        let (name, role) = (options.name.clone(), options.role);
        let mut link = Link::new(name.clone(), role, session, self.config.first_id);
        link.snd_settle_mode = options.snd_settle_mode;
        link.rcv_settle_mode = options.rcv_settle_mode;
        let id = self.add_link(link);
        let Some((handle, channel)) = self.take_handle(id) else {
            self.forget_link(id);
            return Err(CommandError::Full);
        };
        let attach = Attach {
            desired_capabilities: options.desired_capabilities,
            properties: (!options.properties.is_empty()).then_some(options.properties),
            ..self.attach_of(
                (options.name, handle, options.role),
                (options.snd_settle_mode, options.rcv_settle_mode),
                (Some(options.source), Some(options.target)),
            )
        };
        if !self.put_if_fits(&attach, channel) {
            self.free_link(id);
            return Err(CommandError::FrameSize);
        }
        if let Some(session) = self.sessions.get_mut(session) {
            session.unanswered.push((name, role, id));
        }
        Ok(id)
    }

    fn attach_of(
        &self,
        (name, handle, role): (String, u32, Role),
        (snd_settle_mode, rcv_settle_mode): (SenderSettleMode, ReceiverSettleMode),
        (source, target): (Option<Source>, Option<TargetKind>),
    ) -> Attach {
        Attach {
            name,
            handle,
            role,
            snd_settle_mode,
            rcv_settle_mode,
            source: source.map(Box::new),
            target: target.map(Box::new),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: (role == Role::Sender).then_some(self.config.first_id),
            max_message_size: match role {
                Role::Receiver => self.config.max_message_size,
                Role::Sender => 0,
            },
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }

    /// Answers a peer's attach: the link is in force.
    ///
    /// # Errors
    /// The link is gone, no handle is free (the session is ended then), or the answer does not fit
    /// in a frame of the peer even without its properties and capabilities (the link is refused
    /// then, and [`Event::Detached`] says so).
    pub fn accept(&mut self, id: LinkId, answer: Answer) -> Result<(), CommandError> {
        let (name, role) = self.unanswered(id)?;
        let Some((handle, channel)) = self.take_handle(id) else {
            let text = "all handles are in use: detach a link first";
            self.refuse_session(id, AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
            return Err(CommandError::Full);
        };
        if let Some(link) = self.links.get_mut(id) {
            link.snd_settle_mode = answer.snd_settle_mode;
            link.rcv_settle_mode = answer.rcv_settle_mode;
        }
        let refusal = (name.clone(), handle, role);
        let mut attach = Attach {
            offered_capabilities: answer.offered_capabilities,
            properties: (!answer.properties.is_empty()).then_some(answer.properties),
            ..self.attach_of(
                (name, handle, role),
                (answer.snd_settle_mode, answer.rcv_settle_mode),
                (answer.source, answer.target),
            )
        };
        if !self.put_if_fits(&attach, channel) {
            attach.offered_capabilities.clear();
            attach.properties = None;
            if !self.put_if_fits(&attach, channel) {
                let error = too_small("the answer to its attach");
                self.tell_detached(id, true, false, Some(Box::new(error.clone())));
                self.put_refusal(id, refusal, channel, (true, Some(error)));
                return Err(CommandError::FrameSize);
            }
        }
        Ok(())
    }

    fn unanswered(&self, id: LinkId) -> Result<(String, Role), CommandError> {
        let link = self.links.get(id).filter(|link| link.local == Half::Idle);
        link.map(|link| (link.name.clone(), link.role)).ok_or(CommandError::NoLink)
    }

    /// Refuses a peer's attach: an attach without terminus, then a closing detach (2.6.3).
    pub fn refuse(&mut self, id: LinkId, error: AmqpError) {
        self.refuse_with(id, true, Some(error));
    }

    pub(super) fn refuse_with(&mut self, id: LinkId, closed: bool, error: Option<AmqpError>) {
        let Ok((name, role)) = self.unanswered(id) else { return };
        let Some((handle, channel)) = self.take_handle(id) else {
            let text = "all handles are in use: detach a link first";
            let full = || AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text);
            return self.refuse_session(id, error.unwrap_or_else(full));
        };
        if let Some(link) = self.links.get_mut(id) {
            link.told = true;
        }
        self.put_refusal(id, (name, handle, role), channel, (closed, error));
    }

    fn put_refusal(
        &mut self,
        id: LinkId,
        (name, handle, role): (String, u32, Role),
        channel: u16,
        (closed, error): (bool, Option<AmqpError>),
    ) {
        let modes = (SenderSettleMode::Mixed, ReceiverSettleMode::First);
        let attach = self.attach_of((name, handle, role), modes, (None, None));
        if !self.put_if_fits(&attach, channel) {
            // Not even the link's name can be said.
            return self.refuse_session(id, too_small("the name of its link"));
        }
        let error = error.map(Box::new);
        self.put_reason(channel, error, |error| Detach { handle, closed, error });
        let Some(link) = self.links.get_mut(id) else { return };
        link.local = Half::Ended;
        if link.remote == Half::Ended {
            self.free_link(id);
        }
    }

    fn refuse_session(&mut self, id: LinkId, error: AmqpError) {
        if let Some(session) = self.links.get(id).map(|link| link.session) {
            self.end(session, Some(error));
        }
    }

    /// What is known of a link that is not gone.
    pub fn link_info(&self, id: LinkId) -> Option<LinkInfo> {
        self.links.get(id).map(|link| LinkInfo {
            name: link.name.clone(),
            role: link.role,
            session: link.session,
            snd_settle_mode: link.snd_settle_mode,
            rcv_settle_mode: link.rcv_settle_mode,
        })
    }
}
