//! Transactions (part 4): work on deliveries that takes effect all at once, or not at all.
//!
//! | file | clause |
//! |---|---|
//! | `coordinator` | 4.2, 4.3: declare and discharge |
//! | `posting` | 4.4.1: messages that appear at commit |
//! | `retiring` | 4.4.2: outcomes that hold from commit on |
//! | `acquiring` | 4.4.3: deliveries that rollback takes back |
//! | `discharge` | commit and rollback |

mod acquiring;
mod coordinator;
mod discharge;
mod posting;
mod retiring;

pub(crate) use retiring::{Retirement, retirement};

use crate::broker::Broker;
use crate::inbound::Route;
use crate::message::Message;
use crate::{ConnId, ConsumerId, QueueId, TransactionId};
use bytes::Bytes;
use hopline_driver::engine::LinkId;
use hopline_driver::engine::wire::outcome::TransactionalState;
use hopline_driver::engine::wire::{AmqpError, DeliveryState, Serial, condition};
use hopline_driver::timeline::Instant;
use slotmap::{Key, KeyData};
use std::collections::BTreeSet;

/// A transaction, from declare to discharge.
#[derive(Debug)]
pub(crate) struct Transaction {
    conn: ConnId,
    /// The link on which it was declared, and is to be discharged.
    link: LinkId,
    /// When it is rolled back if it is not discharged before.
    deadline: Instant,
    state: State,
    /// Consumers whose credit belonged to it.
    acquirers: BTreeSet<ConsumerId>,
}

/// What may become of it (4.3).
///
/// ```text
///            declare                 discharge
///   +------+          +------+  commit, rollback   +------------+
///   |      |--------->| Open |-------------------->|            |
///   | none |          +------+                     | discharged |
///   |      |             | failed work, time-out    |            |
///   +------+             v                         |            |
///                    +--------+  rollback, or else |            |
///                    | Failed |------------------->|            |
///                    +--------+  rejected: error   +------------+
/// ```
#[derive(Debug)]
enum State {
    /// Work is taken.
    Open(Work),
    /// Its work is rolled back already: all that it can be discharged with. The error says why.
    Failed(AmqpError),
}

/// What a transaction is to do at commit.
#[derive(Debug, Default)]
struct Work {
    /// In the order in which they came.
    posts: Vec<Post>,
    /// Octets of their messages.
    octets: usize,
    claims: Vec<Claim>,
}

/// A message that is to appear at commit.
#[derive(Debug)]
struct Post {
    route: Route,
    message: Box<Message>,
}

/// A delivery to a consumer that was acquired or retired in a transaction.
#[derive(Debug)]
struct Claim {
    consumer: ConsumerId,
    link: LinkId,
    delivery: Serial,
    /// It was sent within the transaction: rollback takes it back.
    acquired: bool,
    /// What is to hold at commit; none if it was acquired only.
    outcome: Option<DeliveryState>,
    /// The consumer, or the broker, has settled it.
    settled: bool,
    held: Held,
}

/// Who has the message of a claim.
#[derive(Debug)]
enum Held {
    /// The consumer, under this key.
    Consumer(usize),
    /// Nobody: the link is gone. `failed`: this counts as a failed delivery.
    Orphan { queue: QueueId, message: Box<Message>, failed: bool },
    /// It is no business of the transaction's any more.
    Free,
}

impl Work {
    /// Deliveries that it holds.
    const fn len(&self) -> usize {
        self.posts.len() + self.claims.len()
    }
}

impl Broker {
    /// The transaction of a connection that has this id.
    fn transaction(&self, conn: ConnId, txn_id: &[u8]) -> Result<TransactionId, AmqpError> {
        let octets = <[u8; 8]>::try_from(txn_id).map(u64::from_be_bytes);
        let found = octets.ok().map(|octets| TransactionId::from(KeyData::from_ffi(octets)));
        found
            .filter(|id| octets_of(*id) == txn_id)
            .filter(|id| self.transactions.get(*id).is_some_and(|txn| txn.conn == conn))
            .ok_or_else(|| {
                let text = "no transaction with this txn-id is open on this connection";
                AmqpError::new(condition::UNKNOWN_ID, text)
            })
    }

    /// The work of a transaction, if it can take more. One that is full fails.
    fn work(&mut self, id: TransactionId, octets: usize) -> Result<&mut Work, AmqpError> {
        let limits = &self.config.limits;
        let (max, max_octets) = (limits.transaction_deliveries, limits.transaction_octets);
        let full = match self.transactions.get(id).map(|txn| &txn.state) {
            Some(State::Open(work)) if work.len() >= max => Some(format!("{max} deliveries")),
            Some(State::Open(work)) if work.octets + octets > max_octets => {
                Some(format!("{max_octets} octets"))
            }
            _ => None,
        };
        if let Some(full) = full {
            let text = format!("a transaction holds {full} at most: discharge it before");
            let error = AmqpError::new(condition::RESOURCE_LIMIT_EXCEEDED, text);
            self.fail(id, &error);
            return Err(error);
        }
        match self.transactions.get_mut(id).map(|txn| &mut txn.state) {
            Some(State::Open(work)) => Ok(work),
            Some(State::Failed(error)) => Err(error.clone()),
            None => Err(AmqpError::new(condition::UNKNOWN_ID, "the transaction is discharged")),
        }
    }

    /// Work has failed: the transaction can only be rolled back, and is so at once (4.3).
    fn fail(&mut self, id: TransactionId, cause: &AmqpError) {
        let text = format!("the transaction was rolled back: {cause}");
        self.roll_back_early(id, AmqpError::new(condition::ROLLBACK, text));
    }

    fn roll_back_early(&mut self, id: TransactionId, error: AmqpError) {
        let Some(txn) = self.transactions.get_mut(id) else { return };
        if matches!(txn.state, State::Failed(_)) {
            return;
        }
        tracing::info!(%error, "transaction failed");
        let state = std::mem::replace(&mut txn.state, State::Failed(error));
        let (conn, acquirers) = (txn.conn, std::mem::take(&mut txn.acquirers));
        self.end_acquisition(id, acquirers);
        if let State::Open(work) = state {
            self.roll_back(conn, work);
        }
    }

    /// Transactions whose time is up are rolled back; their discharge will tell so.
    pub(crate) fn time_out_transactions(&mut self, now: Instant) {
        let late = self.transactions.iter().filter(|(_, txn)| txn.deadline <= now);
        let late: Vec<_> = late.map(|(id, _)| id).collect();
        late.into_iter().for_each(|id| self.time_out(id));
    }

    fn time_out(&mut self, id: TransactionId) {
        let limit = humantime::format_duration(self.config.limits.transaction_timeout);
        let text = format!("the transaction was rolled back: it was not discharged in {limit}");
        self.roll_back_early(id, AmqpError::new(condition::TIMEOUT, text));
    }

    /// A coordinator's link is gone: what was declared on it and not discharged is rolled back
    /// (4.5.1).
    pub(crate) fn abandon_transactions(&mut self, conn: ConnId, link: LinkId) {
        let Some(ids) = self.conns.get(conn).map(|conn| conn.transactions.clone()) else { return };
        for id in ids {
            if self.transactions.get(id).is_some_and(|txn| txn.link == link)
                && let Some(Transaction { state: State::Open(work), .. }) = self.end(id)
            {
                self.roll_back(conn, work);
            }
        }
    }

    /// Takes a transaction out: its id is unknown from here on.
    fn end(&mut self, id: TransactionId) -> Option<Transaction> {
        let mut txn = self.transactions.remove(id)?;
        if let Some(conn) = self.conns.get_mut(txn.conn) {
            conn.transactions.remove(&id);
        }
        self.end_acquisition(id, std::mem::take(&mut txn.acquirers));
        Some(txn)
    }
}

/// The txn-id of a transaction. It is never used again.
fn octets_of(id: TransactionId) -> [u8; 8] {
    id.data().as_ffi().to_be_bytes()
}

/// The state of a delivery that is part of a transaction.
fn transactional(txn_id: &Bytes, outcome: Option<DeliveryState>) -> DeliveryState {
    let (txn_id, outcome) = (txn_id.clone(), outcome.map(Box::new));
    DeliveryState::Transactional(TransactionalState { txn_id, outcome })
}
