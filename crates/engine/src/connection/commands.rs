use super::Connection;
use crate::SessionId;
use crate::fault::CommandError;

impl Connection {
    /// Begins a session. [`crate::Event::SessionBegun`] comes with the peer's answer; links can be
    /// attached at once.
    ///
    /// # Errors
    /// The connection is not open, or all channels are in use.
    pub fn begin(&mut self) -> Result<SessionId, CommandError> {
        if !self.is_open() {
            return Err(CommandError::NotOpen);
        }
        let id = self.new_session().ok_or(CommandError::Full)?;
        self.put_begin(id, None);
        Ok(id)
    }

    /// Deliveries of a session that are not settled: those that came, and those that were sent.
    pub fn unsettled(&self, id: SessionId) -> (usize, usize) {
        self.sessions.get(id).map_or((0, 0), |s| (s.received.len(), s.sent.len()))
    }
}
