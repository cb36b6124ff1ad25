//! The link of a forward: attached by us, then a consumer or a producer like any other.

use super::{Direction, Forward, ForwardConfig, Local};
use crate::broker::{Broker, End};
use crate::inbound::{Destination, Producer};
use crate::lifetime::Lifetime;
use crate::node::Node;
use crate::outbound::Consumer;
use crate::side::check_target;
use crate::{ConnId, ConsumerId, QueueId};
use hopline_driver::Io;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::performative::Attach;
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{AmqpError, Fields, Role, condition};
use hopline_driver::engine::{AttachOptions, LinkId};
use hopline_driver::timeline::Instant;
use std::fmt::Display;
use std::rc::Rc;
use tokio::sync::Notify;

impl Broker {
    /// Makes the local node of a forward, which is there for good: what comes while the other
    /// broker is away waits in it.
    ///
    /// # Errors
    /// The node can't be made.
    pub(crate) fn ready_forward(&mut self, config: ForwardConfig) -> Result<Forward, AmqpError> {
        let address = config.local.as_str();
        if config.direction == Direction::In {
            check_target(address)?;
        }
        let node = if let Some(queue) = self.addresses.get(address) {
            Local::Queue(*queue)
        } else {
            match (self.resolve(address, false)?, config.direction) {
                (Node::Queue(queue), _) => {
                    if let Some(queue) = self.queues.get_mut(queue) {
                        queue.make_permanent();
                    }
                    Local::Queue(queue)
                }
                (Node::Topic, Direction::Out) => {
                    Local::Queue(self.create_subscription(address, Lifetime::Permanent)?)
                }
                (Node::Topic, Direction::In) => {
                    Local::Topic(self.create_topic(address, Lifetime::Permanent)?)
                }
            }
        };
        Ok(Forward { config, node })
    }

    /// Takes in a connection that a forward has made.
    pub(crate) fn add_forward(&mut self, io: Io, forward: Rc<Forward>) -> (ConnId, Rc<Notify>) {
        let (id, wake) = self.add(io);
        if let Some(conn) = self.conns.get_mut(id) {
            conn.forward = Some(forward);
        }
        // Who connects speaks first.
        wake.notify_one();
        (id, wake)
    }

    /// The connection of a forward is open.
    pub(crate) fn begin_forward(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(forward) = conn.forward.clone() else { return };
        let engine = conn.io.engine_mut();
        let attached =
            engine.begin().and_then(|session| engine.attach(session, options(&forward.config)));
        match attached {
            Ok(_) => {
                let patience = self.config.limits.handshake_timeout;
                self.attaching.push((id, self.clock.now().saturating_add(patience)));
            }
            Err(error) => self.end_forward(id, &error),
        }
    }

    /// The peer answers the attach of a forward. If it refuses, a detach is to follow.
    pub(crate) fn on_attached(&mut self, id: ConnId, link: LinkId, attach: &Attach) {
        let Some(forward) = self.conns.get(id).and_then(|conn| conn.forward.clone()) else {
            return;
        };
        match (forward.config.direction, &forward.node) {
            (Direction::Out, Local::Queue(queue)) if attach.target.is_some() => {
                self.forward_out((id, link), *queue);
            }
            (Direction::In, local) if attach.source.is_some() => {
                let destination = match local.clone() {
                    Local::Queue(queue) => Destination::Queue(queue),
                    Local::Topic(topic) => Destination::Topic(topic),
                };
                self.forward_in((id, link), destination);
            }
            _ => return,
        }
        self.attaching.retain(|(attaching, _)| *attaching != id);
        tracing::info!(forward = forward.config.name, "forwarding");
    }

    fn forward_out(&mut self, (conn_id, link): (ConnId, LinkId), queue_id: QueueId) {
        let mut consumer = Consumer::new(conn_id, link, queue_id);
        consumer.is_forward = true;
        let id = self.consumers.insert(consumer);
        if let Some(queue) = self.queues.get_mut(queue_id) {
            queue.join(id);
        }
        if let Some(conn) = self.conns.get_mut(conn_id) {
            conn.links.insert(link, End::Consumer(id));
        }
    }

    fn forward_in(&mut self, (conn_id, link): (ConnId, LinkId), destination: Destination) {
        let producer = Producer {
            conn: conn_id,
            link,
            destination: destination.clone(),
            may_reject: true,
            terminus: None,
        };
        let id = self.producers.insert(producer);
        self.join_as_producer(id, &destination);
        if let Some(conn) = self.conns.get_mut(conn_id) {
            conn.links.insert(link, End::Producer(id));
        }
        self.grant(id);
    }

    /// A forward's connection is of no use any more: it is closed, and made again after a pause.
    pub(crate) fn end_forward(&mut self, id: ConnId, reason: &dyn Display) {
        let now = self.clock.now();
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(forward) = conn.forward.as_ref().filter(|_| conn.io.engine().is_open()) else {
            return;
        };
        tracing::warn!(forward = forward.config.name, %reason, "the forward's link has ended");
        conn.io.engine_mut().close(None, now);
        self.mark_dirty(id);
    }
}

impl Broker {
    /// The other broker has given a message back as it was. To offer it again at once could go on
    /// without end, at the pace of the network: the forward rests until the next sweep.
    pub(crate) fn rest_forward(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.consumers.get_mut(id).filter(|it| it.is_forward)
            && !std::mem::replace(&mut consumer.is_barred, true)
        {
            self.resting.push(id);
        }
    }

    /// A peer that does not attach, or refuses without the detach that says so, would be waited for
    /// for ever: heartbeats keep its connection alive.
    pub(crate) fn end_late_forwards(&mut self, now: Instant) {
        self.attaching.retain(|(id, _)| self.conns.contains_key(*id));
        for (id, _) in self.attaching.extract_if(.., |(_, until)| *until <= now).collect::<Vec<_>>()
        {
            self.end_forward(id, &"the other broker has not attached the link in time");
        }
    }

    pub(crate) fn wake_forwards(&mut self) {
        for id in std::mem::take(&mut self.resting) {
            if let Some(consumer) = self.consumers.get_mut(id) {
                consumer.is_barred = false;
                self.make_ready(id);
            }
        }
    }
}

fn options(config: &ForwardConfig) -> AttachOptions {
    let there = config.remote.address.clone().unwrap_or_default();
    let (role, source, target) = match config.direction {
        Direction::Out => (Role::Sender, Source::at(&config.local), Target::at(there)),
        Direction::In => (Role::Receiver, Source::at(there), Target::at(&config.local)),
    };
    AttachOptions {
        name: config.name.clone(),
        role,
        source,
        target: TargetKind::Target(target),
        snd_settle_mode: match config.direction {
            Direction::Out => SenderSettleMode::Unsettled,
            Direction::In => SenderSettleMode::Mixed,
        },
        rcv_settle_mode: ReceiverSettleMode::First,
        desired_capabilities: Vec::new(),
        properties: Fields::default(),
    }
}

/// Nobody may attach to us over a connection that we have made: who is at its other end has shown
/// nothing of itself.
pub(crate) fn one_way() -> AmqpError {
    let text = "this connection is a forward of this broker, which takes no links on it";
    AmqpError::new(condition::NOT_ALLOWED, text)
}
