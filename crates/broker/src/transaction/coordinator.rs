//! The coordinator: declare and discharge (4.2, 4.3, 4.5.1).

use super::{State, Transaction, Work, octets_of};
use crate::ConnId;
use crate::broker::{Broker, End};
use bytes::Bytes;
use hopline_driver::engine::wire::control::Control;
use hopline_driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_driver::engine::wire::outcome::{Declared, Rejected};
use hopline_driver::engine::wire::terminus::{Coordinator, Declare, Discharge, Source, TargetKind};
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Fields, Symbol, condition};
use hopline_driver::engine::{Answer, Delivery, LinkId};
use hopline_driver::timeline::Instant;
use std::collections::BTreeSet;

/// Deliveries that a controller may send ahead. Each is answered in the turn that reads it.
const CREDIT: u32 = 100;

const CAPABILITIES: [&str; 3] =
    ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"];

impl Broker {
    /// A controller attaches; the answer names the capabilities in force, whatever was asked.
    pub(crate) fn attach_coordinator(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        source: Option<Box<Source>>,
        (snd_settle_mode, rcv_settle_mode): (SenderSettleMode, ReceiverSettleMode),
    ) -> Result<(), AmqpError> {
        if snd_settle_mode == SenderSettleMode::Settled {
            let text = "a coordinator needs an unsettled or mixed sender: it answers by outcomes";
            return Err(AmqpError::new(condition::ILLEGAL_STATE, text));
        }
        let source = source.map(|source| *source);
        let outcomes = source.as_ref().map_or(&[][..], |source| &source.outcomes);
        let rejects = outcomes.is_empty() || outcomes.iter().any(|o| *o == *Rejected::SYMBOL);
        let capabilities = CAPABILITIES.map(Symbol::from_static).to_vec();
        let answer = Answer {
            source,
            target: Some(TargetKind::Coordinator(Coordinator { capabilities })),
            snd_settle_mode,
            rcv_settle_mode,
            offered_capabilities: Vec::new(),
            properties: Fields::default(),
        };
        let Some(conn) = self.conns.get_mut(conn_id) else { return Ok(()) };
        if conn.io.engine_mut().accept(link, answer).is_ok() {
            conn.links.insert(link, End::Coordinator { rejects });
            let _ = conn.io.engine_mut().set_credit(link, CREDIT);
        }
        Ok(())
    }

    /// A message came for the coordinator.
    pub(crate) fn on_control(&mut self, conn_id: ConnId, delivery: &Delivery, now: Instant) {
        if delivery.settled {
            // Nobody would learn what became of it (4.2, 4.3).
            let text = "a message to a coordinator must not be settled: it answers by outcomes";
            let error = AmqpError::new(condition::ILLEGAL_STATE, text);
            return self.detach(conn_id, delivery.link, error);
        }
        let answer = match Control::read(&delivery.payload) {
            Ok(Control::Declare(declare)) => self.declare(conn_id, delivery.link, &declare, now),
            Ok(Control::Discharge(discharge)) => {
                self.discharge((conn_id, delivery.link), &discharge, now)
            }
            Err(error) => Err(AmqpError::from(&error)),
        };
        match answer {
            Ok(state) => self.tell_outcome(conn_id, delivery, state),
            Err(error) => self.refuse_control(conn_id, delivery, error),
        }
        self.grant_control(conn_id, delivery.link);
    }

    /// Tops up a controller's credit if half of it is used.
    pub(crate) fn grant_control(&mut self, conn: ConnId, link: LinkId) {
        let Some(conn) = self.conns.get_mut(conn) else { return };
        if conn.io.engine().credit(link) <= CREDIT / 2 {
            let _ = conn.io.engine_mut().set_credit(link, CREDIT);
        }
    }

    /// Rejected, or else the link ends (4.3).
    fn refuse_control(&mut self, conn_id: ConnId, delivery: &Delivery, error: AmqpError) {
        tracing::info!(%error, "the coordinator refuses");
        let end = self.conns.get(conn_id).and_then(|conn| conn.links.get(delivery.link));
        if matches!(end, Some(End::Coordinator { rejects: true })) {
            let rejected = Rejected { error: Some(Box::new(error)) };
            self.tell_outcome(conn_id, delivery, DeliveryState::Rejected(rejected));
        } else {
            self.detach(conn_id, delivery.link, error);
        }
    }

    fn declare(
        &mut self,
        conn_id: ConnId,
        link: LinkId,
        declare: &Declare,
        now: Instant,
    ) -> Result<DeliveryState, AmqpError> {
        if declare.global_id.is_some() {
            let text = "distributed transactions are not offered: declare without a global-id";
            return Err(AmqpError::new(condition::NOT_IMPLEMENTED, text));
        }
        let limits = &self.config.limits;
        let Some(conn) = self.conns.get_mut(conn_id) else {
            return Err(AmqpError::new(condition::CONNECTION_FORCED, "the connection is gone"));
        };
        if conn.transactions.len() >= limits.transactions {
            let max = limits.transactions;
            let text = format!("a connection has {max} transactions at most: discharge one before");
            return Err(AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        let id = self.transactions.insert(Transaction {
            conn: conn_id,
            link,
            deadline: now.saturating_add(limits.transaction_timeout),
            state: State::Open(Work::default()),
            acquirers: BTreeSet::new(),
        });
        conn.transactions.insert(id);
        let txn_id = Bytes::copy_from_slice(&octets_of(id));
        Ok(DeliveryState::Declared(Declared { txn_id }))
    }

    fn discharge(
        &mut self,
        (conn, link): (ConnId, LinkId),
        discharge: &Discharge,
        now: Instant,
    ) -> Result<DeliveryState, AmqpError> {
        let id = self.transaction(conn, &discharge.txn_id)?;
        let known = self.transactions.get(id).filter(|txn| txn.link == link);
        let Some(txn) = known else {
            let text = "the transaction was declared on another link: discharge it there";
            return Err(AmqpError::new(condition::UNKNOWN_ID, text));
        };
        if txn.deadline <= now {
            self.time_out(id);
        }
        match self.end(id).map(|txn| txn.state) {
            Some(State::Open(work)) if discharge.fail => self.roll_back(conn, work),
            Some(State::Open(work)) => self.commit(conn, work)?,
            // A rollback can always be completed.
            Some(State::Failed(_)) if discharge.fail => {}
            Some(State::Failed(error)) => return Err(error),
            None => {}
        }
        Ok(DeliveryState::Accepted)
    }
}
