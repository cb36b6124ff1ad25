//! The messenger's way out, as the application sees it.

use crate::messenger::{Messenger, node_of, parse};
use crate::outgoing::PutOptions;
use crate::state::{Outcome, State};
use crate::tracker::Tracker;
use crate::{Error, SenderId};
use hopline_driver::engine::wire::message::Message;
use std::borrow::Borrow;

impl Messenger {
    /// Puts a message into the store; it leaves as soon as its connection, its link's credit and
    /// the socket let it. Never blocks. A message that is lent, not given, can be put again: that
    /// spares making each one anew.
    ///
    /// # Errors
    /// A full store, or an address that can't be used. A peer that can't be reached, or that
    /// refuses the address, shows as [`Status::Aborted`](crate::Status::Aborted) and in
    /// [`Messenger::send`]; to know before the first put, [`Messenger::connect`].
    pub fn put(&self, address: &str, message: impl Borrow<Message>) -> Result<Tracker, Error> {
        self.put_with(address, message, PutOptions::default())
    }

    /// Puts a message with more said of it.
    ///
    /// # Errors
    /// As [`Messenger::put`].
    pub fn put_with(
        &self,
        address: &str,
        message: impl Borrow<Message>,
        how: PutOptions,
    ) -> Result<Tracker, Error> {
        let mut state = self.shared().lock();
        let sender = self.sender(&mut state, address)?;
        state.put(sender, message.borrow(), how).map(Tracker::outgoing)
    }

    fn sender(&self, state: &mut State, address: &str) -> Result<SenderId, Error> {
        if state.is_stopping {
            return Err(Error::Stopped);
        }
        if let Some(sender) = state.by_address.get(address) {
            return Ok(*sender);
        }
        let routed = state.options.routes.resolve(address);
        if !routed.contains("://") {
            return Ok(state.local_sender(&routed));
        }
        let url = parse(&routed)?;
        if url.listen {
            let reason = "it is one to listen on: Messenger::subscribe to it, and put to the plain \
                          names that peers receive from";
            return Err(Error::Address { address: url.to_string(), reason: reason.into() });
        }
        let node = node_of(&url)?;
        let peer = self.peer(state, &url);
        let id = state.new_sender(address, &node, Some(peer));
        state.attach_sender(id);
        Ok(id)
    }

    /// Makes sure that messages for `address` can be sent: connects and attaches, or, for an
    /// address of our own, waits until a peer receives from it.
    ///
    /// # Errors
    /// The peer can't be reached, or refuses the address; [`Error::Timeout`].
    pub async fn connect(&self, address: &str) -> Result<(), Error> {
        let (id, fate) = {
            let mut state = self.shared().lock();
            let id = self.sender(&mut state, address)?;
            let fate = state.senders.get(id).map(|sender| sender.fate.clone());
            (id, fate.unwrap_or_default())
        };
        let attached = |state: &mut State| match (fate.get(), state.senders.get(id)) {
            (Some(error), _) => Some(Err(error.clone())),
            (None, Some(sender)) => (!sender.links.is_empty()).then_some(Ok(())),
            (None, None) => Some(Err(Error::Stopped)),
        };
        self.shared().wait_a_while(attached, |_| "the peer has not answered".into()).await
    }

    /// Waits until all that was put has an outcome.
    ///
    /// # Errors
    /// [`Error::Timeout`], or why messages were aborted: what happened while this waits, or else
    /// what no call has reported yet.
    pub async fn send(&self) -> Result<(), Error> {
        self.settled(0).await
    }

    /// Waits until `messages` more of those put have an outcome, or all.
    ///
    /// # Errors
    /// As [`Messenger::send`].
    pub async fn send_n(&self, messages: usize) -> Result<(), Error> {
        let ended = self.counts().ended() + messages as u64;
        self.outcomes(|state| state.counts.ended() >= ended || state.stored.0 == 0).await
    }

    /// Waits until at most `messages` of those put are without an outcome.
    ///
    /// # Errors
    /// As [`Messenger::send`].
    pub async fn settled(&self, messages: usize) -> Result<(), Error> {
        self.outcomes(|state| state.stored.0 <= messages).await
    }

    async fn outcomes(&self, are_there: impl Fn(&State) -> bool) -> Result<(), Error> {
        let mark = self.shared().lock().send_failures.mark();
        let done = |state: &mut State| match state.send_failures.tell(mark) {
            Some(error) => Some(Err(error)),
            None => are_there(state).then_some(Ok(())),
        };
        self.shared().wait_a_while(done, State::outgoing_summary).await
    }

    /// Messages put that have no outcome.
    pub fn outgoing(&self) -> usize {
        self.shared().lock().stored.0
    }

    /// Messages put that no connection has taken yet. One that is not here need not be on the wire.
    pub fn buffered(&self) -> usize {
        self.shared().lock().unsent()
    }

    /// Whether no connection has taken this message yet. `false` too for what the window does not
    /// hold any more.
    pub fn is_buffered(&self, tracker: Tracker) -> bool {
        self.shared().lock().is_stored(tracker)
    }

    /// Messages that were sent and have no outcome.
    pub fn unsettled(&self) -> usize {
        self.shared().lock().in_flight.len()
    }

    /// Hands out the outcomes that came since the last call, oldest first; of more than 65,536
    /// only the latest. The messenger is locked meanwhile: `each` must not call it.
    pub fn take_outcomes(&self, each: impl FnMut(Outcome)) {
        self.shared().lock().outcomes.drain(..).for_each(each);
    }
}
