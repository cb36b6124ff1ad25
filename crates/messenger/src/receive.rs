//! The messenger's way in, as the application sees it.

use crate::connection::take_in;
use crate::incoming::Received;
use crate::messenger::{Messenger, Span, node_of, parse};
use crate::shared::Shared;
use crate::state::{Demand, State, Subscription};
use crate::tracker::{Number, Status, Tracker};
use crate::{Error, SubscriptionId};
use hopline_driver::engine::wire::outcome::Rejected;
use hopline_driver::engine::wire::{AmqpError, DeliveryState};
use hopline_driver::{Listener, Url, chain, listen};
use std::sync::{Arc, Weak};

impl Messenger {
    /// Takes messages from `address`, or, for `amqp://~host:port`, from peers that connect to us;
    /// returns the address: for one to listen on, as peers call it, with the port that was free if
    /// 0 was asked for.
    ///
    /// Cancel-safe: a future that is dropped leaves no subscription.
    ///
    /// # Errors
    /// The address can't be used, the peer can't be reached or refuses, or the port is in use.
    pub async fn subscribe(&self, address: &str) -> Result<String, Error> {
        let routed = self.shared().lock().options.routes.resolve(address);
        let url = parse(&routed)?;
        if url.listen {
            return self.listen(&url).await;
        }
        let (id, fate) = {
            let mut state = self.shared().lock();
            if state.is_stopping {
                return Err(Error::Stopped);
            }
            let subscription =
                Subscription::new(address, node_of(&url)?, self.peer(&mut state, &url));
            let fate = subscription.fate.clone();
            let id = state.subscriptions.insert(subscription);
            state.attach_subscription(id);
            (id, fate)
        };
        let mut attempt = Attempt { shared: self.shared(), id: Some(id) };
        let attached = |state: &mut State| match (fate.get(), state.subscriptions.get(id)) {
            (Some(error), _) => Some(Err(error.clone())),
            (None, Some(subscription)) => subscription.is_attached.then_some(Ok(())),
            (None, None) => Some(Err(Error::Stopped)),
        };
        let what = |_: &State| "the peer has not answered".to_owned();
        self.shared().wait_a_while(attached, what).await?;
        attempt.id = None;
        Ok(address.to_owned())
    }

    async fn listen(&self, url: &Url) -> Result<String, Error> {
        if url.tls {
            let reason = "a messenger listens without TLS only: write amqp://~host:port, or put a \
                          broker between";
            return Err(Error::Address { address: url.to_string(), reason: reason.into() });
        }
        let options = self.shared().lock().options.socket.clone();
        let listener = listen(&url.host_port(), &options)
            .await
            .map_err(|error| Error::Listen { reason: chain(&error) })?;
        let address = format!("amqp://{}", listener.local_addr());
        let mut state = self.shared().lock();
        if state.is_stopping {
            return Err(Error::Stopped);
        }
        let task = self.shared().runtime().spawn(accept(Arc::downgrade(self.shared()), listener));
        state.listeners.push(task);
        Ok(address)
    }

    /// Ends the subscriptions to `address`; what they brought and has no outcome yet goes back to
    /// its sender.
    ///
    /// # Errors
    /// [`Error::NotSubscribed`].
    pub fn unsubscribe(&self, address: &str) -> Result<(), Error> {
        let mut state = self.shared().lock();
        let mine = state.subscriptions.iter().filter(|(_, s)| *s.address == *address);
        let ids: Vec<_> = mine.map(|(id, _)| id).collect();
        if ids.is_empty() {
            return Err(Error::NotSubscribed { address: address.to_owned() });
        }
        ids.into_iter().for_each(|id| state.unsubscribe(id));
        Ok(())
    }

    /// How many messages each subscription may be sent, also those that are made later: `Some(n)`,
    /// that many from now on and no more until the next call; `None`, as many as the builder's
    /// credit says, topped up. Each call replaces the one before; `Some(0)` cancels. What a sender
    /// has on its way for an earlier, greater demand still comes.
    pub fn recv(&self, messages: Option<u32>) {
        let demand = messages.map_or(Demand::Auto, Demand::Each);
        self.shared().lock().set_demand(demand);
    }

    /// Takes the oldest message that came. Never blocks.
    pub fn get(&self) -> Option<Received> {
        let mut taken = None;
        self.shared().lock().get(1, |received| taken = Some(received));
        taken
    }

    /// Takes the oldest messages that came, at most `max`, and appends them to `into`; returns how
    /// many. Never blocks. All are taken at one instant (NEXT_EVENT): for programs that handle many
    /// messages at once, at a fraction of the cost of as many [`Messenger::get`].
    pub fn get_many(&self, into: &mut Vec<Received>, max: usize) -> usize {
        self.shared().lock().get(max, |received| into.push(received))
    }

    /// Waits for a message, for as long as it takes. Cancel-safe: a future that is dropped takes no
    /// message with it.
    ///
    /// # Errors
    /// A failure of a subscription since the last call; [`Error::Stopped`].
    pub async fn next(&self) -> Result<Received, Error> {
        let get = |state: &mut State| {
            let mut taken = None;
            state.get(1, |received| taken = Some(received));
            taken
        };
        self.wait_for(get).await
    }

    /// Waits for messages, for as long as it takes, then is as [`Messenger::get_many`]; with a
    /// `max` of 0 as with 1. Cancel-safe: a future that is dropped takes no message with it.
    ///
    /// # Errors
    /// As [`Messenger::next`].
    pub async fn next_many(&self, into: &mut Vec<Received>, max: usize) -> Result<usize, Error> {
        self.wait_for(|state| {
            let taken = state.get(max.max(1), |received| into.push(received));
            (taken > 0).then_some(taken)
        })
        .await
    }

    async fn wait_for<T>(&self, mut get: impl FnMut(&mut State) -> Option<T>) -> Result<T, Error> {
        let mark = self.shared().lock().receive_failures.mark();
        self.shared()
            .wait(|state| {
                if let Some(taken) = get(state) {
                    return Some(Ok(taken));
                }
                let error = state.receive_failures.tell(mark);
                error.or(state.is_stopping.then_some(Error::Stopped)).map(Err)
            })
            .await
    }

    /// Messages that came and were not taken.
    pub fn incoming(&self) -> usize {
        self.shared().lock().incoming.len()
    }

    /// Tells the sender that the message was taken.
    ///
    /// # Errors
    /// [`Error::Tracker`]: it has an outcome already; [`Error::LinkGone`].
    pub fn accept(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, DeliveryState::Accepted, Span::One)
    }

    /// Tells the sender that the message is invalid.
    ///
    /// # Errors
    /// As [`Messenger::accept`].
    pub fn reject(&self, received: &Received, error: Option<AmqpError>) -> Result<(), Error> {
        let rejected = Rejected { error: error.map(Box::new) };
        self.settle(received, DeliveryState::Rejected(rejected), Span::One)
    }

    /// Gives the message back, as if it had not come.
    ///
    /// # Errors
    /// As [`Messenger::accept`].
    pub fn release(&self, received: &Received) -> Result<(), Error> {
        self.settle(received, DeliveryState::Released, Span::One)
    }

    /// Gives the message back: as one whose delivery failed, or not; to be offered here again, or
    /// not.
    ///
    /// # Errors
    /// As [`Messenger::accept`].
    pub fn modify(
        &self,
        received: &Received,
        delivery_failed: bool,
        undeliverable_here: bool,
    ) -> Result<(), Error> {
        let outcome = DeliveryState::modified(delivery_failed, undeliverable_here);
        self.settle(received, outcome, Span::One)
    }

    /// Tells the sender the outcome of one message, or of all up to it. The first outcome of a
    /// message holds. Messages that came settled need none: nothing is done for them.
    ///
    /// # Errors
    /// As [`Messenger::accept`].
    pub fn settle(
        &self,
        received: &Received,
        outcome: DeliveryState,
        span: Span,
    ) -> Result<(), Error> {
        if received.is_settled() {
            return Ok(());
        }
        self.shared().lock().settle(received.place(), &outcome, span)
    }

    /// [`Messenger::settle`] by tracker, for messages in the incoming window.
    ///
    /// # Errors
    /// [`Error::Tracker`]: it has an outcome already, fell out of the window, or stands for a
    /// message that was put; [`Error::LinkGone`].
    pub fn settle_tracker(
        &self,
        tracker: Tracker,
        outcome: DeliveryState,
        span: Span,
    ) -> Result<(), Error> {
        let mut state = self.shared().lock();
        let Number::Incoming(number) = tracker.number() else { return Err(Error::Tracker) };
        match state.incoming_window.get(number) {
            Some((_, Status::Settled)) => Ok(()),
            Some((place, Status::Pending)) => {
                let place = *place;
                state.settle(place, &outcome, span)
            }
            _ => Err(Error::Tracker),
        }
    }
}

/// A subscription that is not in force yet, and won't be if this is dropped.
struct Attempt<'a> {
    shared: &'a Shared,
    id: Option<SubscriptionId>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.shared.lock().unsubscribe(id);
        }
    }
}

async fn accept(shared: Weak<Shared>, listener: Listener) {
    loop {
        let (socket, peer) = listener.accept().await;
        let Some(shared) = shared.upgrade().filter(|shared| !shared.lock().is_stopping) else {
            return;
        };
        take_in(&shared, socket, peer.to_string());
    }
}
