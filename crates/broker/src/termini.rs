//! What outlives a link: its subscription, or the node that was made for it (2.6.4, 3.5.6).
//!
//! ```text
//!  attach            the last link leaves            its scope ends
//!  ------> Held(links) -----------------> Kept(scope) ------------> Expiring(at) ---> gone
//!             ^                               |                         |     timeout
//!             +-------------------------------+-------------------------+
//!                          attach with the same name
//! ```

use crate::dynamic::Dynamic;
use crate::expiry::{Expiry, Policy, Scope};
use crate::links::LinkKey;
use crate::{ConnId, QueueId, TerminusId};
use hopline_driver::engine::SessionId;
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::timeline::Instant;
use slotmap::SlotMap;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// The node of a terminus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    Queue(QueueId),
    Topic(Rc<str>),
}

/// What a terminus is there for.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Messages of a topic. The source is as it was asked for.
    Subscription { asked: Box<Source>, is_shared: bool },
    /// A node that was made for a link.
    Dynamic(Box<Dynamic>),
}

#[derive(Copy, Clone, Debug)]
enum State {
    /// So many links are attached to it.
    Held(usize),
    /// It waits for an end (`None`: it has no end), and then for its timeout.
    Kept(Option<Scope>),
    Expiring(Instant),
}

/// What outlives a link.
#[derive(Debug)]
pub(crate) struct Terminus {
    pub(crate) key: LinkKey,
    pub(crate) node: Owned,
    pub(crate) kind: Kind,
    expiry: Expiry,
    state: State,
}

impl Terminus {
    /// Held by the link that it is made for.
    pub(crate) const fn new(key: LinkKey, node: Owned, kind: Kind, expiry: Expiry) -> Self {
        Self { key, node, kind, expiry, state: State::Held(1) }
    }

    pub(crate) const fn is_held(&self) -> bool {
        matches!(self.state, State::Held(_))
    }
}

/// All termini. There are no more of them than nodes.
#[derive(Debug, Default)]
pub(crate) struct Termini {
    all: SlotMap<TerminusId, Terminus>,
    by_key: HashMap<LinkKey, TerminusId>,
    kept: HashMap<Scope, BTreeSet<TerminusId>>,
    expiring: BTreeSet<(Instant, TerminusId)>,
}

impl Termini {
    #[cfg(feature = "simulation")]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn find(&self, key: &LinkKey) -> Option<(TerminusId, &Terminus)> {
        let id = *self.by_key.get(key)?;
        self.all.get(id).map(|terminus| (id, terminus))
    }

    pub(crate) fn get(&self, id: TerminusId) -> Option<&Terminus> {
        self.all.get(id)
    }

    pub(crate) fn insert(&mut self, terminus: Terminus) -> TerminusId {
        let key = terminus.key.clone();
        let id = self.all.insert(terminus);
        self.by_key.insert(key, id);
        id
    }

    pub(crate) fn remove(&mut self, id: TerminusId) -> Option<Terminus> {
        self.unwait(id);
        let terminus = self.all.remove(id)?;
        if self.by_key.get(&terminus.key) == Some(&id) {
            self.by_key.remove(&terminus.key);
        }
        Some(terminus)
    }

    /// A link comes, or comes back; from now on this expiry holds.
    pub(crate) fn join(&mut self, id: TerminusId, expiry: Expiry) {
        self.unwait(id);
        let Some(terminus) = self.all.get_mut(id) else { return };
        terminus.expiry = expiry;
        terminus.state = match terminus.state {
            State::Held(links) => State::Held(links + 1),
            State::Kept(_) | State::Expiring(_) => State::Held(1),
        };
    }

    /// A link has left. Whoever calls this looks for what is due then.
    pub(crate) fn leave(
        &mut self,
        id: TerminusId,
        (conn, session): (ConnId, SessionId),
        at: Instant,
    ) {
        let Some(terminus) = self.all.get_mut(id) else { return };
        let State::Held(links) = terminus.state else { return };
        if links > 1 {
            terminus.state = State::Held(links - 1);
            return;
        }
        let scope = match terminus.expiry.policy {
            Policy::LinkDetach => return self.expire(id, at),
            Policy::SessionEnd => Some(Scope::Session(conn, session)),
            Policy::ConnectionClose => Some(Scope::Connection(conn)),
            Policy::Never => None,
        };
        terminus.state = State::Kept(scope);
        if let Some(scope) = scope {
            self.kept.entry(scope).or_default().insert(id);
        }
    }

    /// A session or connection is over. Whoever calls this looks for what is due then.
    pub(crate) fn end(&mut self, scope: Scope, at: Instant) {
        for id in self.kept.remove(&scope).unwrap_or_default() {
            self.expire(id, at);
        }
    }

    fn expire(&mut self, id: TerminusId, at: Instant) {
        let Some(terminus) = self.all.get_mut(id) else { return };
        let at = at.saturating_add(terminus.expiry.timeout());
        terminus.state = State::Expiring(at);
        self.expiring.insert((at, id));
    }

    /// The next one whose time is over.
    pub(crate) fn due(&self, now: Instant) -> Option<TerminusId> {
        self.expiring.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    /// What it waited for counts no more.
    fn unwait(&mut self, id: TerminusId) {
        match self.all.get(id).map(|terminus| terminus.state) {
            Some(State::Kept(Some(scope))) => {
                if let Some(ids) = self.kept.get_mut(&scope) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.kept.remove(&scope);
                    }
                }
            }
            Some(State::Expiring(at)) => {
                self.expiring.remove(&(at, id));
            }
            Some(State::Held(_) | State::Kept(None)) | None => {}
        }
    }
}
