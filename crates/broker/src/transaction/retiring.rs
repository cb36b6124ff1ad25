//! Transactional retirement (4.4.2): outcomes of deliveries that hold from commit on.

use super::{Claim, Held, State, Transaction};
use crate::broker::Broker;
use crate::outbound::Consumer;
use crate::{ConsumerId, TransactionId};
use hopline_driver::engine::wire::outcome::TransactionalState;
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Serial, condition};
use slotmap::SlotMap;

/// What a plain disposition means to a delivery that may have been retired in a transaction.
#[derive(Debug)]
pub(crate) enum Retirement {
    /// There is no retirement: the disposition holds as it is.
    None,
    /// The outcome is still the transaction's.
    Stands,
    /// The disposition says something else.
    Contradicted(AmqpError),
}

/// Looks whether the delivery was retired in a transaction that is not discharged. One that was
/// only acquired in it is left to the disposition. `outcome` is that of the disposition.
pub(crate) fn retirement(
    transactions: &mut SlotMap<TransactionId, Transaction>,
    consumer: &mut Consumer,
    token: u64,
    outcome: Option<&DeliveryState>,
    settled: bool,
) -> Retirement {
    if consumer.claims.is_empty() {
        return Retirement::None;
    }
    let key = usize::try_from(token).unwrap_or(usize::MAX);
    let Some(claim) = claim(transactions, consumer, key) else { return Retirement::None };
    match (&claim.outcome, outcome) {
        (None, None) if !settled => Retirement::Stands,
        (None, _) => {
            claim.held = Held::Free;
            consumer.claims.remove(&key);
            Retirement::None
        }
        (Some(_), None) => {
            claim.settled |= settled;
            Retirement::Stands
        }
        (Some(retired), Some(outcome)) if retired == outcome => {
            claim.settled |= settled;
            Retirement::Stands
        }
        _ => Retirement::Contradicted(AmqpError::new(
            condition::ILLEGAL_STATE,
            "the delivery has another outcome in a transaction that is not discharged",
        )),
    }
}

fn claim<'a>(
    transactions: &'a mut SlotMap<TransactionId, Transaction>,
    consumer: &Consumer,
    key: usize,
) -> Option<&'a mut Claim> {
    let (id, at) = consumer.claims.get(&key)?;
    match &mut transactions.get_mut(*id)?.state {
        State::Open(work) => work.claims.get_mut(*at),
        State::Failed(_) => None,
    }
}

impl Broker {
    /// A consumer told an outcome within a transaction.
    pub(crate) fn on_retirement(
        &mut self,
        consumer_id: ConsumerId,
        (delivery, token): (Serial, u64),
        retired: TransactionalState,
        settled: bool,
    ) {
        let Some(consumer) = self.consumers.get(consumer_id) else { return };
        let (conn, link) = (consumer.conn, consumer.link);
        let TransactionalState { txn_id, outcome } = retired;
        let chosen = outcome.map(|outcome| *outcome).filter(|state| state.symbol().is_some());
        if let Some(state) = chosen.as_ref().filter(|state| !consumer.may_choose(state)) {
            return self.refuse_outcome(conn, link, state);
        }
        let outcome = chosen
            .or_else(|| settled.then(|| consumer.default_outcome.clone()).flatten())
            .or(settled.then_some(DeliveryState::Released));
        let key = usize::try_from(token).unwrap_or(usize::MAX);
        let result = self.transaction(conn, &txn_id).and_then(|id| match outcome {
            Some(outcome) => self.retire(id, consumer_id, (key, delivery), (outcome, settled)),
            None => Ok(()),
        });
        if let Err(error) = result {
            tracing::info!(%error, "retirement refused");
            self.detach(conn, link, error);
        }
    }

    fn retire(
        &mut self,
        id: TransactionId,
        consumer_id: ConsumerId,
        (key, delivery): (usize, Serial),
        (outcome, settled): (DeliveryState, bool),
    ) -> Result<(), AmqpError> {
        let Some(consumer) = self.consumers.get_mut(consumer_id) else { return Ok(()) };
        if consumer.is_browser {
            self.retire_copy(consumer_id, delivery, (outcome, settled));
            return Ok(());
        }
        if !consumer.unsettled.contains(key) {
            return Ok(());
        }
        if let Some((other, _)) = consumer.claims.get(&key) {
            if *other != id {
                self.entangled(id);
                return Ok(());
            }
            if let Some(claim) = claim(&mut self.transactions, consumer, key) {
                claim.outcome = Some(outcome);
                claim.settled |= settled;
            }
            return Ok(());
        }
        let link = consumer.link;
        match self.work(id, 0) {
            Ok(work) => {
                let at = work.claims.len();
                let (consumer, outcome) = (consumer_id, Some(outcome));
                let (acquired, held) = (false, Held::Consumer(key));
                let claim = Claim { consumer, link, delivery, acquired, outcome, settled, held };
                work.claims.push(claim);
                if let Some(consumer) = self.consumers.get_mut(consumer_id) {
                    consumer.claims.insert(key, (id, at));
                }
            }
            // Rolled back already, and so is this.
            Err(_) if settled => self.take_back(consumer_id, key),
            Err(_) => {}
        }
        Ok(())
    }

    /// A delivery is retired in another transaction than its own: the control link ends (4.4.2),
    /// and all that was declared on it with it.
    fn entangled(&mut self, id: TransactionId) {
        let Some(txn) = self.transactions.get(id) else { return };
        let (conn, link) = (txn.conn, txn.link);
        let text = "a delivery was retired in a transaction while it is part of another one";
        self.detach(conn, link, AmqpError::new(condition::ROLLBACK, text));
    }

    /// Copies are nobody's to retire: the queue keeps the message.
    fn retire_copy(
        &mut self,
        consumer: ConsumerId,
        delivery: Serial,
        (outcome, settled): (DeliveryState, bool),
    ) {
        let Some(consumer) = self.consumers.get_mut(consumer) else { return };
        if !settled && let Some(conn) = self.conns.get_mut(consumer.conn) {
            let _ = conn.io.engine_mut().settle_sent(consumer.link, delivery, Some(outcome));
        }
    }

    /// A message comes back from a consumer that did nothing wrong.
    pub(super) fn take_back(&mut self, consumer: ConsumerId, key: usize) {
        let Some(consumer) = self.consumers.get_mut(consumer) else { return };
        let queue = consumer.queue;
        if let Some(mut message) = consumer.unsettled.try_remove(key) {
            message.returned(false);
            self.put_back(queue, message);
        }
    }

    /// A consumer is gone: the messages that it has retired stay with their transactions.
    pub(crate) fn orphan_claims(&mut self, consumer: &mut Consumer, orderly: bool) {
        let (queue, failed) = (consumer.queue, !orderly);
        let keys: Vec<_> = consumer.claims.keys().copied().collect();
        for key in keys {
            let Some(claim) = claim(&mut self.transactions, consumer, key) else { continue };
            claim.held = Held::Free;
            if claim.outcome.is_some()
                && let Some(message) = consumer.unsettled.try_remove(key)
            {
                claim.held = Held::Orphan { queue, message, failed };
            }
        }
        consumer.claims.clear();
    }
}
