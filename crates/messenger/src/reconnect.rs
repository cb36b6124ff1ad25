//! Connections that were lost are made again: when, how often, and what is carried over.

use crate::state::{End, Peer, State};
use crate::{Error, PeerId};
use hopline_driver::engine::wire::{AmqpError, condition};
use std::time::Duration;

/// When a lost connection is made again (see [`Builder::reconnect`](crate::Builder::reconnect)).
///
/// The pause before an attempt is doubled from one to the next, from `first` to `most`; of it,
/// anything from half to all is waited, so that the clients of a broker that comes back do not come
/// all at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The pause before the first attempt. 100 ms by default.
    pub first: Duration,
    /// The longest pause. 30 s by default.
    pub most: Duration,
    /// How long a connection must have been open for the pauses to begin anew: a peer that closes
    /// right after open gets longer ones. 10 s by default.
    pub stable: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(30),
            stable: Duration::from_secs(10),
        }
    }
}

impl Reconnect {
    /// The pause before attempt `number`, counted from 0; `share` of it, from 0 to 1, is what
    /// chance adds to its half.
    fn pause(&self, number: u32, share: f64) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(number));
        let whole = doubled.min(self.most);
        whole / 2 + (whole / 2).mul_f64(share)
    }
}

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
        let pause = reconnect.pause(number, fastrand::f64());
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
            incoming.into_iter().partition(|it| it.peer == id && !it.is_settled());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_chance_never_exceeds_it() {
        let reconnect = Reconnect {
            first: Duration::from_millis(100),
            most: Duration::from_secs(1),
            ..Reconnect::default()
        };
        let longest = |number| reconnect.pause(number, 1.0).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5].map(longest), [100, 200, 400, 800, 1000, 1000]);
        let shortest = |number| reconnect.pause(number, 0.0).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5].map(shortest), [50, 100, 200, 400, 500, 500]);
        assert_eq!(longest(u32::MAX), 1000);
    }

    #[test]
    fn pauses_of_many_clients_differ() {
        let reconnect = Reconnect::default();
        let pauses: std::collections::HashSet<_> =
            (0..1_000).map(|_| reconnect.pause(3, fastrand::f64())).collect();
        assert!(pauses.len() > 900, "{}", pauses.len());
    }
}
