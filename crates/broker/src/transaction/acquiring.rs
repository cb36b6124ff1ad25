//! Transactional acquisition (4.4.3): deliveries that rollback takes back.

use super::{Claim, Held, transactional};
use crate::broker::{Broker, End};
use crate::{ConnId, ConsumerId, TransactionId};
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Fields, Serial, Value, condition};
use std::collections::BTreeSet;

/// Names the transaction in a flow's properties.
const TXN_ID: &str = "txn-id";

impl Broker {
    /// A flow came for a consumer: says whether its credit is to be used. If it belongs to a
    /// transaction that can't have it, the link ends.
    pub(crate) fn on_acquisition(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        properties: Option<&Fields>,
    ) -> bool {
        let Some(conn) = self.conns.get_mut(conn_id) else { return false };
        let Some(End::Consumer(id)) = conn.links.get(link).copied() else { return false };
        let Some(consumer) = self.consumers.get_mut(id) else { return false };
        consumer.is_barred = false;
        let txn_id = properties.and_then(|properties| properties.get(TXN_ID));
        let Some(txn_id) = txn_id else {
            if consumer.acquires.take().is_some() {
                conn.io.engine_mut().set_delivery_state(link, None);
            }
            return true;
        };
        match self.acquire(conn_id, (link, id), txn_id) {
            Ok(()) => true,
            Err(error) => {
                tracing::info!(%error, "acquisition refused");
                self.detach(conn_id, link, error);
                false
            }
        }
    }

    fn acquire(
        &mut self,
        conn_id: ConnId,
        (link, consumer): (LinkId, ConsumerId),
        txn_id: &Value,
    ) -> Result<(), AmqpError> {
        let Value::Binary(txn_id) = txn_id else {
            let text = "the txn-id of a flow has to be a binary";
            return Err(AmqpError::new(condition::INVALID_FIELD, text));
        };
        let id = self.transaction(conn_id, txn_id)?;
        self.work(id, 0)?;
        let (Some(txn), Some(consumer_state), Some(conn)) = (
            self.transactions.get_mut(id),
            self.consumers.get_mut(consumer),
            self.conns.get_mut(conn_id),
        ) else {
            return Ok(());
        };
        // A copy leaves the message to all others: there is nothing to take back.
        if !consumer_state.is_browser {
            txn.acquirers.insert(consumer);
            consumer_state.acquires = Some(id);
            conn.io.engine_mut().set_delivery_state(link, Some(transactional(txn_id, None)));
        }
        Ok(())
    }

    /// A delivery was sent whose credit belongs to a transaction.
    pub(crate) fn acquired(
        &mut self,
        id: TransactionId,
        consumer_id: ConsumerId,
        (key, delivery): (usize, Serial),
    ) {
        let Some(consumer) = self.consumers.get(consumer_id) else { return };
        let (link, settled) = (consumer.link, consumer.settled);
        let outcome = settled.then_some(DeliveryState::Accepted);
        let (acquired, held) = (true, Held::Consumer(key));
        let claim =
            Claim { consumer: consumer_id, link, delivery, acquired, outcome, settled, held };
        match self.work(id, 0) {
            Ok(work) => {
                let at = work.claims.len();
                work.claims.push(claim);
                if let Some(consumer) = self.consumers.get_mut(consumer_id) {
                    consumer.claims.insert(key, (id, at));
                }
            }
            // The transaction was full, and takes this one back with all others.
            Err(_) => self.give_back(&claim, key),
        }
    }

    /// Deliveries of a transaction's credit end with it; what is left waits for another flow.
    pub(super) fn end_acquisition(&mut self, id: TransactionId, acquirers: BTreeSet<ConsumerId>) {
        for consumer in acquirers {
            let Some(consumer) = self.consumers.get_mut(consumer) else { continue };
            if consumer.acquires.take_if(|acquires| *acquires == id).is_some() {
                consumer.is_barred = true;
                if let Some(conn) = self.conns.get_mut(consumer.conn) {
                    conn.io.engine_mut().set_delivery_state(consumer.link, None);
                }
            }
        }
    }
}
