//! The way in: from the links to the application, credit for more, and outcomes.

use crate::incoming::{Origin, Place, Received, has_annotations};
use crate::messenger::Span;
use crate::options::{Sampling, TopUp};
use crate::state::{Demand, End, State, Subscription};
use crate::tracker::Status;
use crate::{Error, PeerId, SubscriptionId};
use hopline_driver::Io;
use hopline_driver::engine::wire::{DeliveryState, Serial};
use hopline_driver::engine::{Delivery, LinkId};
use std::sync::Arc;

/// Messages of one subscription that may be without outcome before it gets no more credit.
const UNSETTLED_MAX: usize = 16_384;

impl State {
    /// A whole delivery came.
    pub(crate) fn arrived(&mut self, id: PeerId, delivery: Delivery) {
        let Some(peer) = self.peers.get(id) else { return };
        let Some(End::Subscription(to)) = peer.links.get(delivery.link).copied() else { return };
        let Some(subscription) = self.subscriptions.get_mut(to) else { return };
        let origin = match &subscription.origin {
            Some(origin) if origin.peer == id => origin.clone(),
            _ => {
                let (sender, address) = (peer.container.clone(), subscription.address.clone());
                let stamps = self.options.sampling != Sampling::Off;
                let node = stamps.then(|| self.node.clone());
                let origin = Arc::new(Origin { peer: id, sender, address, node });
                subscription.origin.insert(origin).clone()
            }
        };
        let engine = peer.io.as_ref().map(Io::engine);
        let tie = engine.and_then(|engine| engine.peer_clock(delivery.received));
        // Only what is stamped has a use for it.
        let is_stamped = origin.node.is_some() && has_annotations(&delivery.payload);
        let queued_at = if is_stamped { self.clock.now() } else { delivery.received };
        let number = self.counts.received;
        self.counts.received += 1;
        subscription.waiting += 1;
        subscription.demand = subscription.demand.saturating_sub(1);
        if !delivery.settled {
            subscription.unsettled.push_back((delivery.id, number));
        }
        let taken_at = queued_at;
        let received = Received { origin, delivery, tie, number, queued_at, taken_at };
        self.incoming.push_back(received);
        self.is_changed = true;
    }

    /// Takes the oldest messages, at most so many; returns how many.
    pub(crate) fn get(&mut self, max: usize, mut each: impl FnMut(Received)) -> usize {
        let taken = max.min(self.incoming.len());
        if taken == 0 {
            return 0;
        }
        let now = self.clock.now();
        let mut last = None;
        for _ in 0..taken {
            let Some(mut received) = self.incoming.pop_front() else { break };
            received.taken_at = now;
            let end = self.taken(&received);
            if end != last
                && let Some(id) = std::mem::replace(&mut last, end)
            {
                self.grant(id);
            }
            each(received);
        }
        if let Some(id) = last {
            self.grant(id);
        }
        taken
    }

    /// A message is taken; the subscription that it came by, if that is there.
    fn taken(&mut self, received: &Received) -> Option<SubscriptionId> {
        let place = received.place();
        let status = if received.is_settled() { Status::Settled } else { Status::Pending };
        // What was released without being taken has numbers too.
        while self.incoming_window.next() < received.number {
            self.incoming_window.push((place, Status::Released));
        }
        let (_, fallen) = self.incoming_window.push((place, status));
        if let Some((place, Status::Pending)) = fallen
            && self.options.accepts_beyond_window
        {
            // Gone with its link: then nothing is owed.
            let _ = self.settle(place, &DeliveryState::Accepted, Span::One);
        }
        let Some(End::Subscription(id)) = self.end(place.peer, place.link) else { return None };
        let subscription = self.subscriptions.get_mut(id)?;
        subscription.waiting = subscription.waiting.saturating_sub(1);
        Some(id)
    }

    /// Grants what the demand says: in auto mode once half of the credit is used and half of what
    /// came is taken.
    pub(crate) fn grant(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.get_mut(id) else { return };
        let Some(link) = subscription.link else { return };
        if !subscription.is_attached || subscription.is_draining {
            return;
        }
        let Some(peer) = self.peers.get_mut(subscription.peer) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        let left = io.engine().credit(link);
        let room = UNSETTLED_MAX.saturating_sub(subscription.unsettled.len());
        let (wanted, is_due) = match self.demand {
            Demand::Auto => {
                let credit = self.options.credit;
                let is_due = self.options.top_up == TopUp::Each || left <= credit / 2;
                (credit.saturating_sub(subscription.waiting), is_due)
            }
            Demand::Each(_) => (subscription.demand, true),
        };
        let wanted = wanted.min(u32::try_from(room).unwrap_or(u32::MAX));
        if is_due && wanted > left && io.engine_mut().set_credit(link, wanted).is_ok() {
            peer.wake();
        }
    }

    /// Sets the demand anew.
    pub(crate) fn set_demand(&mut self, demand: Demand) {
        self.demand = demand;
        let ids: Vec<_> = self.subscriptions.keys().collect();
        for id in ids {
            self.start_demand(id);
        }
    }

    /// A subscription is attached: the demand is as it was before if it was attached before.
    pub(crate) fn resume_demand(&mut self, id: SubscriptionId) {
        match self.subscriptions.get(id) {
            Some(subscription) if subscription.is_resumed => self.grant(id),
            _ => self.start_demand(id),
        }
    }

    /// A subscription comes under the demand. Credit can't be taken back, since messages may be on
    /// their way for it: the sender is asked to use it up first.
    pub(crate) fn start_demand(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.get_mut(id) else { return };
        let Demand::Each(n) = self.demand else { return self.grant(id) };
        subscription.demand = n;
        let link = subscription.link.filter(|_| subscription.is_attached);
        let Some((link, peer)) = link.zip(self.peers.get_mut(subscription.peer)) else { return };
        let Some(io) = peer.io.as_mut() else { return };
        if !subscription.is_draining && io.engine().credit(link) > n {
            subscription.is_draining = io.engine_mut().drain(link).is_ok();
            peer.wake();
        }
        self.grant(id);
    }

    /// The sender has used credit for nothing: it gets more of it all the same.
    pub(crate) fn credit_used(&mut self, peer: PeerId, link: LinkId) {
        if let Some(End::Subscription(id)) = self.end(peer, link) {
            self.grant(id);
        }
    }

    /// The sender has used up its credit.
    pub(crate) fn drained(&mut self, peer: PeerId, link: LinkId) {
        let Some(End::Subscription(id)) = self.end(peer, link) else { return };
        if let Some(subscription) = self.subscriptions.get_mut(id) {
            subscription.is_draining = false;
        }
        self.is_changed = true;
        self.grant(id);
    }

    /// Tells the outcome of one delivery, or of all of its link up to it.
    pub(crate) fn settle(
        &mut self,
        place: Place,
        outcome: &DeliveryState,
        span: Span,
    ) -> Result<(), Error> {
        let end = self.end(place.peer, place.link);
        let Some(End::Subscription(id)) = end else { return Err(Error::LinkGone) };
        let subscription = self.subscriptions.get_mut(id).ok_or(Error::LinkGone)?;
        let peer = self.peers.get_mut(place.peer).ok_or(Error::LinkGone)?;
        let io = peer.io.as_mut().ok_or(Error::LinkGone)?;
        let at = position(subscription, place.delivery).ok_or(Error::Tracker)?;
        let first = match span {
            Span::One => at,
            Span::UpTo => 0,
        };
        let status = Status::of(Some(outcome.clone()));
        let mut settled = Ok(());
        let mut run: Option<(Serial, u32)> = None;
        let mut tell = |run: Option<(Serial, u32)>| {
            let Some((first, count)) = run else { return };
            let told = io.engine_mut().settle_run(place.link, first, count, outcome);
            settled = settled.clone().and(told.map_err(|_| Error::LinkGone));
        };
        for (delivery, number) in subscription.unsettled.drain(first..=at) {
            match &mut run {
                Some((first, count)) if first.add(*count) == delivery => *count += 1,
                _ => tell(run.replace((delivery, 1))),
            }
            if let Some((_, kept)) = self.incoming_window.get_mut(number) {
                kept.clone_from(&status);
            }
        }
        tell(run);
        peer.wake();
        self.grant(id);
        settled
    }

    /// Gives back what came and was not taken; what is settled already stays.
    pub(crate) fn release_incoming(&mut self) {
        let incoming = std::mem::take(&mut self.incoming);
        let (stays, unsettled): (Vec<_>, Vec<_>) =
            incoming.into_iter().partition(Received::is_settled);
        self.incoming = stays.into();
        for received in unsettled {
            // Gone with its link: then it is given back already.
            let _ = self.settle(received.place(), &DeliveryState::Released, Span::One);
        }
    }

    /// Ends a subscription; its messages without outcome go back to the sender.
    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.remove(id) else { return };
        let Some(link) = subscription.link else { return };
        let Some(peer) = self.peers.get_mut(subscription.peer) else { return };
        peer.links.remove(link);
        if let Some(io) = peer.io.as_mut() {
            io.engine_mut().detach(link, true, None);
        }
        peer.wake();
    }
}

/// Deliveries of a link come in the order of their ids.
fn position(subscription: &Subscription, id: Serial) -> Option<usize> {
    let unsettled = &subscription.unsettled;
    let at = match unsettled.front() {
        Some((first, _)) if *first == id => 0,
        _ => unsettled.partition_point(|(other, _)| other.distance(id) < 0),
    };
    unsettled.get(at).filter(|(found, _)| *found == id).map(|_| at)
}
