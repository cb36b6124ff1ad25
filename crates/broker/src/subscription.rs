//! Subscriptions on topics, as JMS has them: exclusive or shared, with or without a link.

use crate::broker::Broker;
use crate::expiry::Expiry;
use crate::lifetime::Lifetime;
use crate::links::{Container, LinkKey};
use crate::termini::{Kind, Owned, Terminus};
use crate::{QueueId, TerminusId};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::engine::wire::{AmqpError, Role, Symbol, condition};

pub(crate) const SHARED: &str = "shared";
pub(crate) const GLOBAL: &str = "global";

/// Ends the name of a shared subscription within the name of a link: what follows tells the links
/// of one container apart.
const SUFFIX: char = '|';

/// What a subscriber's link asks for.
pub(crate) struct Subscriber<'a> {
    pub(crate) container: &'a Container,
    pub(crate) link_name: &'a str,
    pub(crate) topic: &'a str,
    /// Its source as it came.
    pub(crate) asked: &'a Source,
    pub(crate) expiry: Expiry,
}

impl Subscriber<'_> {
    fn is_shared(&self) -> bool {
        has(&self.asked.capabilities, SHARED)
    }

    fn key(&self) -> LinkKey {
        let mut key = key_of(self.container, self.link_name, &self.asked.capabilities);
        let is_durable = self.asked.durable > 0 || self.asked.expiry_policy == "never";
        key.is_volatile = self.is_shared() && !is_durable;
        key
    }

    /// Whether an existing subscription is the one that is meant. JMS: another topic, selector or
    /// way of sharing makes it another subscription.
    fn matches(&self, terminus: &Terminus) -> bool {
        matches!(&terminus.kind, Kind::Subscription { asked, is_shared }
            if *is_shared == self.is_shared()
                && asked.address == self.asked.address
                && asked.filter == self.asked.filter)
    }
}

/// What a subscription is found by.
fn key_of(container: &Container, link_name: &str, capabilities: &[Symbol]) -> LinkKey {
    if !has(capabilities, SHARED) {
        return LinkKey::new(container, link_name, Role::Sender);
    }
    let name = link_name.split_once(SUFFIX).map_or(link_name, |(name, _)| name);
    let mut key = LinkKey::new(container, name, Role::Sender);
    if has(capabilities, GLOBAL) {
        key.container = None;
    }
    key
}

pub(crate) fn has(capabilities: &[Symbol], name: &str) -> bool {
    capabilities.iter().any(|capability| *capability == *name)
}

impl Broker {
    /// The queue of a subscription: the one that is there already, or a new one.
    ///
    /// # Errors
    /// The one that is there is another one and in use, or there are too many nodes.
    pub(crate) fn subscribe(
        &mut self,
        subscriber: &Subscriber<'_>,
    ) -> Result<(QueueId, TerminusId), AmqpError> {
        let key = subscriber.key();
        if let Some((id, terminus)) = self.termini.find(&key)
            && let Owned::Queue(queue) = terminus.node
            && subscriber.matches(terminus)
        {
            self.termini.join(id, subscriber.expiry);
            return Ok((queue, id));
        }
        self.displace(&key)?;
        let queue = self.create_subscription(subscriber.topic, Lifetime::Terminus)?;
        let asked = Box::new(subscriber.asked.clone());
        let kind = Kind::Subscription { asked, is_shared: subscriber.is_shared() };
        let node = Owned::Queue(queue);
        let id = self.termini.insert(Terminus::new(key, node, kind, subscriber.expiry));
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.owner = Some(id);
        }
        Ok((queue, id))
    }

    /// A link of that key gets another terminus: the one that it has left goes.
    ///
    /// # Errors
    /// Other links use it.
    pub(crate) fn displace(&mut self, key: &LinkKey) -> Result<(), AmqpError> {
        match self.termini.find(key) {
            Some((_, terminus)) if terminus.is_held() => {
                let text = "the subscription is in use with another topic, filter or sharing";
                Err(AmqpError::new(condition::RESOURCE_LOCKED, text))
            }
            Some((id, _)) => {
                self.delete_terminus(id);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The source of the subscription that an attach without a source looks up.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn look_up(
        &self,
        container: &Container,
        attach: &Attach,
    ) -> Result<Source, AmqpError> {
        let key = key_of(container, &attach.name, &attach.desired_capabilities);
        match self.termini.find(&key).map(|(_, terminus)| &terminus.kind) {
            Some(Kind::Subscription { asked, .. }) => Ok(Source::clone(asked)),
            _ => {
                let text = "there is no subscription of this name: attach with a source";
                Err(AmqpError::new(condition::NOT_FOUND, text))
            }
        }
    }

    /// The peer gives a terminus up for good. An error says that it can't: other links use it.
    pub(crate) fn close_terminus(&mut self, id: TerminusId) -> Option<AmqpError> {
        let terminus = self.termini.get(id)?;
        if !terminus.is_held() {
            self.delete_terminus(id);
            return None;
        }
        let text = "the subscription stays: other links are attached to it";
        (!terminus.key.is_volatile).then(|| AmqpError::new(condition::RESOURCE_LOCKED, text))
    }
}
