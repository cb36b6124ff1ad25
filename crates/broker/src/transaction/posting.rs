//! Transactional posting (4.4.1): messages that appear at commit.

use super::{Post, transactional};
use crate::broker::Broker;
use crate::inbound::Route;
use crate::{ConnId, ProducerId, TransactionId};
use bytes::Bytes;
use hopline_driver::engine::Delivery;
use hopline_driver::engine::wire::outcome::Rejected;
use hopline_driver::engine::wire::{AmqpError, DeliveryState};
use hopline_driver::timeline::Instant;

impl Broker {
    /// A message came within a transaction.
    pub(crate) fn on_post(
        &mut self,
        (conn, producer): (ConnId, ProducerId),
        delivery: &mut Delivery,
        txn_id: &Bytes,
        now: Instant,
    ) {
        let id = match self.transaction(conn, txn_id) {
            Ok(id) => id,
            Err(error) => return self.refuse_delivery(conn, delivery, error),
        };
        let outcome = match self.hold(id, producer, delivery, now) {
            Ok(()) => DeliveryState::Accepted,
            Err(error) => {
                self.fail(id, &error);
                DeliveryState::Rejected(Rejected { error: Some(Box::new(error)) })
            }
        };
        // What came settled is told by the discharge only: the link itself has done no wrong.
        if !delivery.settled {
            self.tell_outcome(conn, delivery, transactional(txn_id, Some(outcome)));
        }
    }

    fn hold(
        &mut self,
        id: TransactionId,
        producer: ProducerId,
        delivery: &mut Delivery,
        now: Instant,
    ) -> Result<(), AmqpError> {
        let octets = delivery.payload.len();
        self.work(id, octets)?;
        let (mut message, route) = self.read_in(producer, delivery, now)?;
        message.settle_down();
        self.promise(&route, true);
        let work = self.work(id, octets)?;
        work.octets += octets;
        work.posts.push(Post { route, message });
        Ok(())
    }

    /// A queue stays while a message may still come to it by a commit.
    pub(super) fn promise(&mut self, route: &Route, begins: bool) {
        if let Route::Queue(queue) = route
            && let Some(queue) = self.queues.get_mut(*queue)
        {
            queue.promised = match begins {
                true => queue.promised + 1,
                false => queue.promised.saturating_sub(1),
            };
        }
    }
}
