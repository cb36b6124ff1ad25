//! Names of links: unique between two containers for each direction (part 2, 2.6.1).

use crate::ConnId;
use crate::broker::{Broker, Conn};
use hopline_driver::engine::wire::{AmqpError, Role, condition};
use hopline_driver::engine::{LinkId, SessionId};
use std::rc::Rc;

/// The user of those who are let in without a name: what SASL ANONYMOUS says, and for no SASL too.
pub(crate) const ANYBODY: &str = "anonymous";

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// Whom SASL let in. What belongs to one user is out of reach of another one, whatever its
    /// container-id says.
    pub(crate) user: Rc<str>,
    pub(crate) id: Rc<str>,
    /// Its container-id is empty: no two such connections are of one container.
    pub(crate) is_nameless: bool,
}

impl Container {
    pub(crate) fn new(user: Option<&str>, id: &str) -> Self {
        let is_nameless = id.is_empty();
        let id = match is_nameless {
            true => uuid::Uuid::new_v4().simple().to_string().into(),
            false => id.into(),
        };
        Self { user: user.unwrap_or(ANYBODY).into(), id, is_nameless }
    }
}

/// What a link is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    pub(crate) user: Rc<str>,
    /// `None`: whichever container of the user.
    pub(crate) container: Option<Rc<str>>,
    pub(crate) name: Rc<str>,
    /// Ours.
    pub(crate) role: Role,
    /// The shared subscription of that name that goes with its last link.
    pub(crate) is_volatile: bool,
}

impl LinkKey {
    pub(crate) fn new(container: &Container, name: &str, role: Role) -> Self {
        Self {
            user: container.user.clone(),
            container: Some(container.id.clone()),
            name: name.into(),
            role,
            is_volatile: false,
        }
    }
}

/// What a connection keeps of the name of each of its links.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: LinkKey,
    pub(crate) session: SessionId,
}

impl Broker {
    /// Takes a link's name. If a link of another connection has it, that one is stolen; the engine
    /// has seen to those of the same connection.
    pub(crate) fn take_name(&mut self, id: ConnId, link: LinkId, name: &str, role: Role) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(session) = conn.io.engine().link_info(link).map(|info| info.session) else {
            return;
        };
        let key = LinkKey::new(&conn.container, name, role);
        conn.names.insert(link, Named { key: key.clone(), session });
        let Some((old_conn, old)) = self.names.insert(key, (id, link)) else { return };
        if let Some(conn) = self.conns.get_mut(old_conn) {
            let text = "another link with the same name was attached on another connection";
            conn.io.engine_mut().detach(old, true, Some(AmqpError::new(condition::STOLEN, text)));
            self.forget_link(old_conn, old, true);
            self.mark_dirty(old_conn);
        }
    }

    /// Gives a link's name back.
    pub(crate) fn free_name(&mut self, id: ConnId, link: LinkId) -> Option<Named> {
        let named = self.conns.get_mut(id)?.names.remove(link)?;
        if self.names.get(&named.key) == Some(&(id, link)) {
            self.names.remove(&named.key);
        }
        Some(named)
    }
}

impl Conn {
    /// The key of a link that is being attached.
    pub(crate) fn key(&self, link: LinkId) -> Option<LinkKey> {
        self.names.get(link).map(|named| named.key.clone())
    }
}
