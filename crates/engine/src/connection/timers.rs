use super::{Connection, Reading};
use crate::config::Config;
use crate::link::Half;
use hopline_timeline::Instant;
use hopline_wire::frame::{self, FrameType};
use hopline_wire::{AmqpError, condition};
use std::time::Duration;

/// The shortest idle-time-out of a peer that we undertake to honour.
const HEARTBEAT_MIN: Duration = Duration::from_millis(10);

/// When what was last done, and what is due.
#[derive(Debug)]
pub(super) struct Timers {
    pub(super) last_read: Instant,
    pub(super) last_write: Instant,
    handshake: Option<Instant>,
    pub(super) close: Option<Instant>,
    heartbeat: Option<Duration>,
}

impl Timers {
    pub(super) fn new(now: Instant, config: &Config) -> Self {
        Self {
            last_read: now,
            last_write: now,
            handshake: Some(now.saturating_add(config.handshake_timeout)),
            close: None,
            heartbeat: None,
        }
    }

    /// The peer's `open` came. `Err`: it asks for more heartbeats than we can promise.
    pub(super) fn opened(&mut self, idle_time_out_ms: Option<u32>) -> Result<(), AmqpError> {
        self.handshake = None;
        self.heartbeat =
            idle_time_out_ms.filter(|ms| *ms > 0).map(|ms| Duration::from_millis(ms.into()) / 2);
        if self.heartbeat.is_some_and(|every| every * 2 < HEARTBEAT_MIN) {
            let text = "the idle-time-out is too short to be honoured: use 10 ms or more";
            return Err(AmqpError::new(condition::INVALID_FIELD, text));
        }
        Ok(())
    }
}

impl Connection {
    fn idle_deadline(&self) -> Option<Instant> {
        let watched = self.remote != Half::Idle && self.reading == Reading::Frames;
        let timeout = self.config.idle_timeout.filter(|_| watched)?;
        Some(self.timers.last_read.saturating_add(timeout))
    }

    fn heartbeat_deadline(&self) -> Option<Instant> {
        let every = self.timers.heartbeat.filter(|_| self.is_open())?;
        Some(self.timers.last_write.saturating_add(every))
    }

    /// When [`Connection::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.reading == Reading::Over {
            return None;
        }
        let deadlines = [
            self.timers.handshake,
            self.timers.close,
            self.idle_deadline(),
            self.heartbeat_deadline(),
            self.echoes.deadline(),
            self.exchange_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due at `now`: a heartbeat, or the end of a peer that is silent for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        if self.reading == Reading::Over {
            return;
        }
        if is_due(self.echoes.deadline()) {
            self.answer_late_echoes(now);
        }
        if is_due(self.exchange_deadline()) {
            self.ask_clock();
        }
        if is_due(self.timers.close) {
            self.over();
        } else if is_due(self.timers.handshake) {
            self.timers.handshake = None;
            let text = "the peer did not open the connection in time";
            self.fail(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text), now);
        } else if is_due(self.idle_deadline()) {
            let text = "the peer has been idle for longer than the idle timeout";
            self.fail(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text), now);
        } else if is_due(self.heartbeat_deadline()) {
            self.timers.last_write = now;
            // Octets that wait are a sign of life themselves, once the peer reads them.
            if self.outbox.is_empty() {
                let tail = self.outbox.tail();
                let at = frame::start(tail, FrameType::Amqp, 0);
                frame::finish(tail, at, 0);
            }
        }
    }

    pub(super) fn start_close_timer(&mut self, now: Instant) {
        self.timers.handshake = None;
        self.timers.close = Some(now.saturating_add(self.config.close_timeout));
    }
}
