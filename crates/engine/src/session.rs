//! One session: its windows, its handles, its unsettled deliveries (part 2, 2.5).

use crate::LinkId;
use crate::SessionId;
use crate::config::Config;
use crate::counts::Gate;
use crate::dispositions::{Allowance, Dispositions};
use crate::fault::Fault;
use crate::link::Half;
use crate::outgoing::PendingSend;
use crate::unsettled::Unsettled;
use hopline_timeline::Instant;
use hopline_wire::performative::{Begin, Flow, Frame};
use hopline_wire::{DeliveryTag, Role, Serial, condition};
use std::collections::BTreeSet;

/// What we keep of a delivery that we sent unsettled.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) link: LinkId,
    pub(crate) token: u64,
}

/// What we keep of a delivery that came unsettled.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) link: LinkId,
    pub(crate) tag: DeliveryTag,
    /// We settle it by its outcome, whatever the mode of its link (2.7.5).
    pub(crate) settles_first: bool,
}

/// Session flow control (2.5.6). Ids are those of transfers, windows count transfers.
#[derive(Debug)]
pub(crate) struct Windows {
    pub(crate) next_incoming_id: Serial,
    pub(crate) incoming_window: u32,
    pub(crate) next_outgoing_id: Serial,
    pub(crate) initial_outgoing_id: Serial,
    pub(crate) remote_incoming_window: u32,
}

impl Windows {
    fn new(incoming_window: u32, first_id: Serial) -> Self {
        Self {
            next_incoming_id: Serial(0),
            incoming_window,
            next_outgoing_id: first_id,
            initial_outgoing_id: first_id,
            remote_incoming_window: 0,
        }
    }

    /// The peer's `begin`.
    pub(crate) const fn begun(&mut self, begin: &Begin) {
        self.next_incoming_id = Serial(begin.next_outgoing_id);
        self.remote_incoming_window = begin.incoming_window;
    }

    /// The peer's flow. An error says what it got wrong.
    pub(crate) fn flow(&mut self, flow: &Flow) -> Result<(), &'static str> {
        let base = flow.next_incoming_id.map_or(self.initial_outgoing_id, Serial);
        let in_flight = self.next_outgoing_id.distance(base);
        if in_flight < 0 {
            return Err("next-incoming-id is ahead of what was sent");
        }
        if Serial(flow.next_outgoing_id).distance(self.next_incoming_id) < 0 {
            return Err("next-outgoing-id is behind what was received");
        }
        self.next_incoming_id = Serial(flow.next_outgoing_id);
        self.remote_incoming_window = flow.incoming_window.saturating_sub(in_flight as u32);
        Ok(())
    }

    /// One transfer came; `false` if the window was closed.
    pub(crate) const fn received(&mut self) -> bool {
        self.next_incoming_id = self.next_incoming_id.add(1);
        match self.incoming_window.checked_sub(1) {
            Some(left) => {
                self.incoming_window = left;
                true
            }
            None => false,
        }
    }

    /// One transfer goes.
    pub(crate) const fn sent(&mut self) {
        self.next_outgoing_id = self.next_outgoing_id.add(1);
        self.remote_incoming_window = self.remote_incoming_window.saturating_sub(1);
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) local_channel: u16,
    pub(crate) remote_channel: Option<u16>,
    pub(crate) local: Half,
    pub(crate) remote: Half,
    pub(crate) windows: Windows,
    /// Shut while the peer's incoming window is used up.
    pub(crate) gate: Gate,
    pub(crate) window_max: u32,
    pub(crate) remote_handle_max: u32,
    /// All links, whatever their state.
    pub(crate) links: BTreeSet<LinkId>,
    /// Names and roles of the links that we attached and the peer has not, in the order of attach.
    pub(crate) unanswered: Vec<(String, Role, LinkId)>,
    pub(crate) by_local_handle: Vec<Option<LinkId>>,
    pub(crate) by_remote_handle: Vec<Option<LinkId>>,
    /// The id of the delivery that is to come next; any for the first.
    pub(crate) next_delivery_in: Option<Serial>,
    pub(crate) next_delivery_out: Serial,
    pub(crate) received: Unsettled<Received>,
    pub(crate) sent: Unsettled<Sent>,
    /// The delivery that waits to go on; no other is begun before it is out.
    pub(crate) pending: Option<PendingSend>,
    pub(crate) dispositions: Dispositions,
    /// What the peer's dispositions may still cost.
    pub(crate) allowance: Allowance,
    /// Unsettled deliveries, at most, of links that are detached.
    pub(crate) ghosts: usize,
    pub(crate) flow_due: bool,
    /// Links whose flow is due.
    pub(crate) flows: Vec<LinkId>,
    /// It is in the connection's list of sessions with something to send.
    pub(crate) is_dirty: bool,
    /// Its end was told by an event.
    pub(crate) told: bool,
}

impl Session {
    pub(crate) fn new(local_channel: u16, config: &Config) -> Self {
        let (window, first_id) = (config.incoming_window.max(2), Serial(config.first_id));
        Self {
            local_channel,
            remote_channel: None,
            local: Half::Idle,
            remote: Half::Idle,
            windows: Windows::new(window, first_id),
            gate: Gate::default(),
            window_max: window,
            remote_handle_max: u32::MAX,
            links: BTreeSet::new(),
            unanswered: Vec::new(),
            by_local_handle: Vec::new(),
            by_remote_handle: Vec::new(),
            next_delivery_in: None,
            next_delivery_out: first_id,
            received: Unsettled::default(),
            sent: Unsettled::default(),
            pending: None,
            dispositions: Dispositions::default(),
            allowance: Allowance::new(config.max_unsettled),
            ghosts: 0,
            flow_due: false,
            flows: Vec::new(),
            is_dirty: false,
            told: false,
        }
    }

    /// A transfer frame goes.
    pub(crate) fn transfer_sent(&mut self, now: Instant) {
        self.windows.sent();
        if self.windows.remote_incoming_window == 0 {
            self.gate.shut(now);
        }
    }

    /// The link behind a handle of the peer.
    pub(crate) fn link(&self, id: SessionId, handle: u32) -> Result<LinkId, Fault> {
        let found = self.by_remote_handle.get(handle as usize).copied().flatten();
        found.ok_or_else(|| {
            let text = format!("handle {handle} is not attached");
            Fault::session(id, condition::UNATTACHED_HANDLE, text)
        })
    }

    /// The lowest free handle, if one below the limits of both ends is free.
    pub(crate) fn free_handle(&self, handle_max: u32) -> Option<u32> {
        let taken = &self.by_local_handle;
        let free = taken.iter().position(Option::is_none).unwrap_or(taken.len());
        u32::try_from(free).ok().filter(|h| *h <= handle_max.min(self.remote_handle_max))
    }

    /// Takes the link whose attach an attach of the peer answers.
    pub(crate) fn take_unanswered(&mut self, name: &str, role: Role) -> Option<LinkId> {
        let answered = |(n, r, _): &(String, Role, LinkId)| *r == role && n == name;
        let at = self.unanswered.iter().position(answered)?;
        Some(self.unanswered.remove(at).2)
    }

    /// Writes what is due of outcomes and settlements; returns in how many frames.
    pub(crate) fn put_dispositions(&mut self, out: &mut Vec<u8>) -> u64 {
        let mut frames = 0;
        for disposition in self.dispositions.drain() {
            disposition.put(out, self.local_channel);
            frames += 1;
        }
        frames
    }

    /// The session's part of a flow.
    pub(crate) fn flow(&self) -> Flow {
        Flow {
            next_incoming_id: (self.remote != Half::Idle)
                .then_some(self.windows.next_incoming_id.0),
            incoming_window: self.windows.incoming_window,
            next_outgoing_id: self.windows.next_outgoing_id.0,
            outgoing_window: self.window_max,
            ..Flow::default()
        }
    }
}

/// Puts `link` under `handle`.
pub(crate) fn set_handle(table: &mut Vec<Option<LinkId>>, handle: u32, link: Option<LinkId>) {
    let at = handle as usize;
    if table.len() <= at {
        table.resize(at + 1, None);
    }
    if let Some(slot) = table.get_mut(at) {
        *slot = link;
    }
}
