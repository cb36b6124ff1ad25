//! What is measured: the relay, Hopline's broker, brokers of others, messengers on their own.

use crate::broker::Broker;
use crate::load::Over;
use crate::process::Process;
use crate::{Error, Programs, Variant};
use hopline_messenger::driver::Url;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio::process::Command;

/// A broker of others: `NAME=amqp://[USER[:PASSWORD]@]HOST[:PORT]`, and `,PID` if its CPU time is
/// to be read, too.
#[derive(Clone, PartialEq)]
pub struct Peer {
    name: String,
    url: String,
    id: Option<u32>,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "write NAME=amqp://HOST:PORT or NAME=amqp://HOST:PORT,PID";
        let (name, rest) = text.split_once('=').ok_or(usage)?;
        let (url, id) = match rest.split_once(',') {
            Some((url, id)) => (url, Some(id.parse().map_err(|_| usage)?)),
            None => (rest, None),
        };
        let parsed: Url =
            url.parse().map_err(|error: hopline_messenger::driver::Error| error.to_string())?;
        if parsed.address.is_some() || parsed.listen || name.is_empty() {
            return Err(format!("{usage}; queues are named by hopline-lab"));
        }
        Ok(Self { name: name.to_owned(), url: url.trim_end_matches('/').to_owned(), id })
    }
}

/// Without the password.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Serialize for Peer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    Relay,
    Hopline,
    Peer(Peer),
    /// Two messengers, without a broker.
    Messengers,
}

impl Target {
    /// The relay first: ratios are against it.
    pub(super) fn all(peers: &[Peer]) -> Vec<Self> {
        let peers = peers.iter().cloned().map(Self::Peer);
        [Self::Relay, Self::Hopline].into_iter().chain(peers).chain([Self::Messengers]).collect()
    }

    pub(super) fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(_))
    }

    /// What it is to publishers and subscribers.
    pub(super) fn over(&self) -> Over {
        match self {
            Self::Relay => Over::RawTcp,
            Self::Hopline | Self::Peer(_) => Over::Broker,
            Self::Messengers => Over::Nothing,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay => f.write_str("relay"),
            Self::Hopline => f.write_str("hopline"),
            Self::Peer(peer) => f.write_str(&peer.name),
            Self::Messengers => f.write_str("messengers"),
        }
    }
}

/// A target that runs.
pub(super) enum Running {
    Relay(Process, [String; 2]),
    Hopline(Broker),
    Peer(Peer),
    Messengers,
}

impl Running {
    /// Starts it; a broker with these settings, beside the defaults.
    pub(super) async fn start(
        target: &Target,
        programs: &Programs,
        settings: toml::Table,
    ) -> Result<Self, Error> {
        match target {
            Target::Relay => {
                let program = std::env::current_exe().map_err(Error::file("this program"))?;
                let mut command = Command::new(program);
                command.arg("relay");
                let mut process = Process::start("hopline-lab relay", command)?;
                let told = process.told("listening on ", 2).await?;
                let url = |line: Option<&String>| {
                    format!("amqp://{}", line.map_or("", |line| line.trim()))
                };
                let urls = [url(told.first()), url(told.get(1))];
                Ok(Self::Relay(process, urls))
            }
            Target::Hopline => {
                let file = Variant::with(settings).broker_file("broker");
                Ok(Self::Hopline(Broker::start(programs, &file).await?))
            }
            Target::Peer(peer) => Ok(Self::Peer(peer.clone())),
            Target::Messengers => Ok(Self::Messengers),
        }
    }

    /// Where publishers and subscribers go.
    pub(super) fn urls(&self) -> [String; 2] {
        match self {
            Self::Relay(_, urls) => urls.clone(),
            Self::Hopline(broker) => [broker.url(0), broker.url(0)],
            Self::Peer(peer) => [peer.url.clone(), peer.url.clone()],
            Self::Messengers => Default::default(),
        }
    }

    /// Its process, where it is known.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            Self::Relay(process, _) => process.id(),
            Self::Hopline(broker) => Some(broker.id()),
            Self::Peer(peer) => peer.id,
            Self::Messengers => None,
        }
    }

    /// From the start of a broker until it listened.
    pub(super) fn started_in(&self) -> Option<Duration> {
        match self {
            Self::Hopline(broker) => Some(broker.started_in()),
            Self::Relay(..) | Self::Peer(_) | Self::Messengers => None,
        }
    }

    pub(super) async fn end(self) -> Result<(), Error> {
        match self {
            // It holds nothing that would have to be put away.
            Self::Relay(process, _) => drop(process),
            Self::Hopline(broker) => broker.end().await?,
            Self::Peer(_) | Self::Messengers => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_name_an_address_and_perhaps_a_process() {
        let peer: Peer = "qpidd=amqp://ann:secret@127.0.0.1:5673/,42".parse().unwrap();
        assert_eq!((peer.url.as_str(), peer.id), ("amqp://ann:secret@127.0.0.1:5673", Some(42)));
        assert!(!format!("{peer:?}").contains("secret"));
        for text in
            ["", "amqp://x", "a=http://x", "a=amqp://x/queue", "a=amqp://x,pid", "=amqp://x"]
        {
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
    }
}
