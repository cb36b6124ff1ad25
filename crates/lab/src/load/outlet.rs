//! Where a publisher's messages go: a messenger, or a raw socket.

use super::{Job, Over, addresses, load_error, messenger, raw_socket};
use crate::Error;
use hopline_messenger::driver::Socket;
use hopline_messenger::timeline::record::ConnectionRecord;
use hopline_messenger::{Body, Error as Fault, Message, Messenger, PutOptions};
use std::io;

/// Octets that wait for a raw socket at most, beside the last message.
const RAW_MAX: usize = 64 << 10;

pub(super) enum Outlet {
    Messenger { messenger: Messenger, addresses: Vec<String> },
    Raw { socket: Socket, waiting: Vec<u8> },
}

impl Outlet {
    /// Connects the publisher of a pair.
    pub(super) async fn connect(job: &Job, number: usize) -> Result<Self, Error> {
        let load = &job.load;
        if load.over == Over::RawTcp {
            let socket = raw_socket(load, 0).await?;
            return Ok(Self::Raw { socket, waiting: Vec::new() });
        }
        let (messenger, addresses) = (messenger(load, 0, number), addresses(job, 0, number));
        for address in &addresses {
            messenger.connect(address).await.map_err(load_error)?;
        }
        Ok(Self::Messenger { messenger, addresses })
    }

    /// Puts a message as that of a number; `false`: there is no room.
    pub(super) fn put(
        &mut self,
        message: &Message,
        number: u64,
        settled: bool,
    ) -> Result<bool, Error> {
        match self {
            Self::Messenger { messenger, addresses } => {
                let turn = number % addresses.len().max(1) as u64;
                let address = addresses.get(turn as usize).map_or("", String::as_str);
                let how = PutOptions { due: None, created: None, settled };
                match messenger.put_with(address, message, how) {
                    Ok(_) => Ok(true),
                    Err(Fault::Full { .. }) => Ok(false),
                    Err(error) => Err(load_error(error)),
                }
            }
            Self::Raw { waiting, .. } => {
                if waiting.len() >= RAW_MAX {
                    return Ok(false);
                }
                if let Body::Data(sections) = &message.body {
                    sections.iter().for_each(|octets| waiting.extend_from_slice(octets));
                }
                Ok(true)
            }
        }
    }

    /// Writes what was put, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        match self {
            Self::Messenger { messenger, .. } => messenger.flush(),
            Self::Raw { socket, waiting } => {
                while !waiting.is_empty() {
                    match socket.try_write(waiting) {
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
    pub(super) async fn room(&mut self, messages: usize) -> Result<(), Error> {
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
    pub(super) async fn stop(mut self) -> Vec<ConnectionRecord> {
        match self {
            Self::Messenger { messenger, .. } => super::stop(&[messenger]).await,
            Self::Raw { .. } => {
                let rest = async { while !self.is_empty() && self.room(0).await.is_ok() {} };
                let _ = tokio::time::timeout(super::REST, rest).await;
                Vec::new()
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Messenger { .. } => true,
            Self::Raw { waiting, .. } => waiting.is_empty(),
        }
    }
}
