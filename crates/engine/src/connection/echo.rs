//! Answers to `echo` (part 2, 2.7.4). A flow tells the state as it is, so one answer serves all
//! requests before it; and there is a limit to how many go out in a second. The last request is
//! always answered, if need be late.

use super::Connection;
use crate::{LinkId, SessionId};
use hopline_timeline::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// How many answers may go out: a bucket that holds those of a second, and that time fills.
#[derive(Debug)]
pub(super) struct EchoLimit {
    per_second: u32,
    left: u32,
    filled: Instant,
    /// Whose answer has to wait.
    late: BTreeSet<(SessionId, Option<LinkId>)>,
}

impl EchoLimit {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let per_second = per_second.max(1);
        Self { per_second, left: per_second, filled: now, late: BTreeSet::new() }
    }

    fn every(&self) -> Duration {
        Duration::from_nanos(SECOND.div_ceil(self.per_second.into()))
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_nanos();
        let due = passed / self.every().as_nanos();
        let room = self.per_second - self.left;
        if due >= u128::from(room) {
            (self.left, self.filled) = (self.per_second, now);
        } else {
            self.left += due as u32;
            self.filled = self.filled.saturating_add(self.every() * due as u32);
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        if self.left == 0 {
            self.fill(now);
        }
        let free = self.left > 0;
        self.left -= u32::from(free);
        free
    }

    /// Nobody is there any more to be answered.
    pub(super) fn forget(&mut self, session: SessionId, link: Option<LinkId>) {
        self.late.remove(&(session, link));
    }

    /// When the next late answer may go out.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.late.is_empty()).then(|| self.filled.saturating_add(self.every()))
    }
}

impl Connection {
    /// The peer asks for a flow of a session, or of one of its links.
    pub(super) fn echo(&mut self, session: SessionId, link: Option<LinkId>, now: Instant) {
        let is_due = match link {
            Some(link) => self.links.get(link).is_some_and(|link| link.flow_due),
            None => self.sessions.get(session).is_some_and(|session| session.flow_due),
        };
        if is_due {
            return;
        }
        if self.echoes.take(now) {
            self.answer_echo(session, link);
        } else {
            self.echoes.late.insert((session, link));
        }
    }

    fn answer_echo(&mut self, session: SessionId, link: Option<LinkId>) {
        match link {
            Some(link) => self.flow_due(link),
            None => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.flow_due = true;
                }
                self.touch(session);
            }
        }
    }

    /// Answers what is late, as far as the limit allows by now.
    pub(super) fn answer_late_echoes(&mut self, now: Instant) {
        while !self.echoes.late.is_empty() && self.echoes.take(now) {
            if let Some((session, link)) = self.echoes.late.pop_first() {
                self.answer_echo(session, link);
            }
        }
    }
}
