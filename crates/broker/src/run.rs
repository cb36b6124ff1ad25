//! What a publisher is owed for deliveries that came one behind the other: told, and credit for
//! more, at once.

use crate::broker::Broker;
use crate::{ConnId, ProducerId};
use hopline_driver::engine::wire::{DeliveryState, Serial};
use hopline_driver::engine::{Delivery, LinkId};

/// Deliveries that are told of at once, at most: what is not told of counts as unsettled.
const TOLD_MAX: u32 = 32;

/// Deliveries of one publisher, within one read.
#[derive(Debug)]
pub(crate) struct Run {
    conn: ConnId,
    producer: ProducerId,
    accepted: Option<Accepted>,
}

/// Deliveries whose ids follow one another, and which are accepted.
#[derive(Debug)]
struct Accepted {
    link: LinkId,
    first: Serial,
    count: u32,
}

impl Broker {
    /// A delivery came on a publisher's link.
    pub(crate) fn go_on(&mut self, conn: ConnId, producer: ProducerId) {
        if self.run.as_ref().is_none_or(|run| run.producer != producer) {
            self.end_run();
            self.run = Some(Run { conn, producer, accepted: None });
        }
    }

    /// The publisher is to be told that its delivery is accepted.
    pub(crate) fn accept(&mut self, delivery: &Delivery) {
        let Some(run) = &mut self.run else { return };
        let id = delivery.id;
        match &mut run.accepted {
            Some(told) if told.first.add(told.count) == id && told.count < TOLD_MAX => {
                told.count += 1;
            }
            _ => {
                self.tell_accepted();
                let accepted = Accepted { link: delivery.link, first: id, count: 1 };
                self.run.as_mut().map(|run| run.accepted.insert(accepted));
            }
        }
    }

    /// Tells the publisher what was accepted since it was told last. To be called before anything
    /// else is said to it.
    pub(crate) fn tell_accepted(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Some(Accepted { link, first, count }) = run.accepted.take() else { return };
        if let Some(conn) = self.conns.get_mut(run.conn) {
            // A link that is gone in the meantime needs no outcome.
            let _ = conn.io.engine_mut().settle_run(link, first, count, &DeliveryState::Accepted);
        }
    }

    /// What came last is told of, and the publisher has its credit. To be called before anything
    /// else happens.
    pub(crate) fn end_run(&mut self) {
        self.tell_accepted();
        if let Some(run) = self.run.take() {
            self.grant(run.producer);
        }
    }
}
