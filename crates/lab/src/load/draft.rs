//! The message that a publisher puts again and again.

use bytes::BytesMut;
use hopline_messenger::{Body, Message};
use hopline_timeline::Instant;

/// A message whose first octets say when it was due. Made once: that leaves the load's own work out
/// of what is measured.
pub(super) struct Draft(Message);

impl Draft {
    /// A message with a body of `size` octets, which has room for an instant.
    pub(super) fn new(size: usize) -> Self {
        Self(Message::data(vec![b'.'; size]))
    }

    /// The message as it is due then.
    pub(super) fn due(&mut self, due: Instant) -> &Message {
        if let Body::Data(sections) = &mut self.0.body
            && let Some(section) = sections.first_mut()
        {
            // A copy only while a connection still holds the one before.
            let mut octets = BytesMut::from(std::mem::take(section));
            if let Some(head) = octets.first_chunk_mut() {
                *head = due.as_nanos().to_be_bytes();
            }
            *section = octets.freeze();
        }
        &self.0
    }
}
