//! What is remembered of connections that have ended.

use crate::Messenger;
use hopline_driver::Io;
use hopline_driver::timeline::record::ConnectionRecord;
use std::collections::VecDeque;

/// Ended connections whose accounts are kept until somebody asks; the oldest go first.
const ACCOUNTS_MAX: usize = 64;

/// The accounts of ended connections.
#[derive(Debug, Default)]
pub(crate) struct Accounts(VecDeque<ConnectionRecord>);

impl Accounts {
    /// A connection has ended, but for its socket.
    pub(crate) fn keep(&mut self, io: &Io, node: &str) {
        if let Some(record) = io.record(node) {
            if self.0.len() >= ACCOUNTS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(record);
        }
    }
}

impl Messenger {
    /// Takes the accounts of the connections that have ended: frames, writes, what the kernel held
    /// back, TCP's own figures. Of the last 64; after [`Messenger::stop`] those of all that were
    /// open.
    pub fn take_accounts(&self) -> Vec<ConnectionRecord> {
        self.shared().lock().accounts.0.drain(..).collect()
    }
}
