//! Where a publisher's messages go: a messenger, or a raw socket.

use super::{Job, Over, addresses, load_error, messenger, raw_socket};
use crate::Error;
use hopline_messenger::driver::Socket;
use hopline_messenger::timeline::record::ConnectionRecord;
use hopline_messenger::{Error as Fault, Message, Messenger, PutOptions};
use hopline_timeline::Instant;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Octets that wait for a raw socket at most, beside the last message.
const RAW_MAX: usize = 64 << 10;

#[derive(Clone)]
pub(super) enum Outlet {
    Messenger { messenger: Messenger, addresses: Arc<[String]> },
    Raw { socket: Arc<Socket>, waiting: Arc<Mutex<Vec<u8>>> },
}

impl Outlet {
    /// Connects the publisher of a pair.
    pub(super) async fn connect(job: &Job, number: usize) -> Result<Self, Error> {
        let load = &job.load;
        if load.over == Over::RawTcp {
            let socket = Arc::new(raw_socket(load, 0).await?);
            return Ok(Self::Raw { socket, waiting: Arc::default() });
        }
        let (messenger, addresses) = (messenger(load, 0, number), addresses(job, 0, number));
        for address in &addresses {
            messenger.connect(address).await.map_err(load_error)?;
        }
        Ok(Self::Messenger { messenger, addresses: addresses.into() })
    }

    /// Puts the message of that number; `false`: there is no room.
    pub(super) fn put(
        &self,
        body: &[u8],
        number: u64,
        due: Instant,
        settled: bool,
    ) -> Result<bool, Error> {
        let stamp = |body: &mut [u8]| {
            if let Some(head) = body.first_chunk_mut() {
                *head = due.as_nanos().to_be_bytes();
            }
        };
        match self {
            Self::Messenger { messenger, addresses } => {
                let turn = number % addresses.len().max(1) as u64;
                let address = addresses.get(turn as usize).map_or("", String::as_str);
                let mut body = body.to_vec();
                stamp(&mut body);
                let how = PutOptions { due: None, created: None, settled };
                match messenger.put_with(address, Message::data(body), how) {
                    Ok(_) => Ok(true),
                    Err(Fault::Full { .. }) => Ok(false),
                    Err(error) => Err(load_error(error)),
                }
            }
            Self::Raw { waiting, .. } => {
                let mut waiting = lock(waiting);
                let start = waiting.len();
                if start >= RAW_MAX {
                    return Ok(false);
                }
                waiting.extend_from_slice(body);
                waiting.get_mut(start..).into_iter().for_each(stamp);
                Ok(true)
            }
        }
    }

    /// Writes what was put, as far as the socket takes it.
    pub(super) fn flush(&self) -> Result<(), Error> {
        match self {
            Self::Messenger { messenger, .. } => messenger.flush(),
            Self::Raw { socket, waiting } => {
                let mut waiting = lock(waiting);
                while !waiting.is_empty() {
                    match socket.try_write(&waiting) {
                        Ok(n) => drop(waiting.drain(..n)),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(Error::Load(error.to_string())),
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until at most `messages` have no outcome, or the raw socket takes more.
    pub(super) async fn room(&self, messages: usize) -> Result<(), Error> {
        match self {
            Self::Messenger { messenger, .. } => {
                messenger.settled(messages).await.map_err(load_error)
            }
            Self::Raw { socket, .. } => {
                socket.writable().await.map_err(Error::file("a socket"))?;
                self.flush()
            }
        }
    }

    /// Sends the rest and closes; what passed.
    pub(super) async fn stop(self) -> Vec<ConnectionRecord> {
        match self {
            Self::Messenger { messenger, .. } => super::stop(&[messenger]).await,
            Self::Raw { .. } => {
                let is_empty = |outlet: &Self| match outlet {
                    Self::Raw { waiting, .. } => lock(waiting).is_empty(),
                    Self::Messenger { .. } => true,
                };
                let rest = async { while !is_empty(&self) && self.room(0).await.is_ok() {} };
                let _ = tokio::time::timeout(super::REST, rest).await;
                Vec::new()
            }
        }
    }
}

fn lock(waiting: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
