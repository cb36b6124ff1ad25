//! Connections that were lost are made again: when, how often, and what is carried over.

use crate::state::{End, Peer, State};
use crate::{Error, PeerId};
use hopline_driver::engine::wire::{AmqpError, condition};

/// Why a connection is gone.
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) error: Error,
    /// Another attempt would end likewise.
    pub(crate) is_permanent: bool,
}

/// Whether what a peer closed with will be said again, whenever it is asked.
pub(crate) fn is_permanent(error: &AmqpError) -> bool {
    [
        condition::UNAUTHORIZED_ACCESS,
        condition::NOT_ALLOWED,
        condition::NOT_FOUND,
        condition::NOT_IMPLEMENTED,
        condition::INVALID_FIELD,
        condition::DECODE_ERROR,
        condition::FRAMING_ERROR,
        condition::CONNECTION_REDIRECT,
    ]
    .contains(&error.condition)
}

/// What is known of earlier attempts to reach a peer.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Attempts {
    /// It has been open once: from then on it is made again.
    pub(crate) was_open: bool,
    /// Attempts since it was last open for long enough.
    pub(crate) number: u32,
}

impl State {
    /// Puts another peer in the place of one that is gone, with its senders and subscriptions, if
    /// it is to be connected to again. What was on its way has no outcome then; what was not sent
    /// stays.
    ///
    /// Another id, as what came by the old connection can't be settled by the new one.
    pub(crate) fn succeed(&mut self, id: PeerId, loss: &Loss) -> bool {
        let Some(reconnect) = self.options.reconnect else { return false };
        let Some(peer) = self.peers.get(id) else { return false };
        let is_ours = self.hosts.values().any(|host| *host == id);
        if !is_ours || loss.is_permanent || !peer.attempts.was_open || self.is_closed {
            return false;
        }
        let now = self.clock.now();
        let open_ns = peer.opened_at.map_or(0, |opened| now.since_ns(opened));
        let is_stable = u128::try_from(open_ns).is_ok_and(|ns| ns >= reconnect.stable.as_nanos());
        let number = if is_stable { 0 } else { peer.attempts.number };
        let attempts = Attempts { number: number.saturating_add(1), ..peer.attempts };
        let name = peer.name.clone();
        let pause = reconnect.pause(number);
        tracing::warn!(peer = name, ?pause, error = %loss.error, "lost; connecting again");
        let next = self.peers.insert(Peer { attempts, ..Peer::new(name, false) });
        self.hosts.values_mut().filter(|host| **host == id).for_each(|host| *host = next);
        self.successors.insert(id, (next, pause));
        self.move_senders(id, next, &loss.error);
        self.move_subscriptions(id, next);
        true
    }

    fn move_senders(&mut self, id: PeerId, next: PeerId, error: &Error) {
        for sender in self.senders.values_mut().filter(|sender| sender.peer == Some(id)) {
            sender.peer = Some(next);
            sender.links.clear();
        }
        if self.abort(Vec::new(), |sent| sent.link.0 == id) > 0 {
            self.send_failures.push(error.clone());
        }
    }

    /// What came unsettled and was not taken comes again, and so is dropped.
    fn move_subscriptions(&mut self, id: PeerId, next: PeerId) {
        let incoming = std::mem::take(&mut self.incoming);
        let (dropped, stays): (Vec<_>, Vec<_>) =
            incoming.into_iter().partition(|it| it.origin.peer == id && !it.is_settled());
        self.incoming = stays.into();
        for received in dropped {
            if let Some(End::Subscription(subscription)) = self.end(id, received.delivery.link)
                && let Some(subscription) = self.subscriptions.get_mut(subscription)
            {
                subscription.demand = subscription.demand.saturating_add(1);
            }
        }
        for subscription in self.subscriptions.values_mut().filter(|s| s.peer == id) {
            subscription.peer = next;
            subscription.link = None;
            subscription.is_resumed |= subscription.is_attached;
            (subscription.is_attached, subscription.is_draining) = (false, false);
            subscription.unsettled.clear();
            // What came settled is counted no more, which costs some messages ahead at most.
            subscription.waiting = 0;
        }
    }
}
