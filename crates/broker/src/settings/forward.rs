//! `[[forward]]`: from a node here to one of another broker, or the other way round.

use super::keys::{Key, set};
use super::print::MASK;
use super::values::{Kind, Octets, OrOff, Switch, Text, Time, Value, Written};
use crate::forward::{Direction, ForwardConfig};
use hopline_driver::{KernelTimestamps, Reconnect, SocketOptions, Url};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A forward, once its keys were understood together.
#[derive(Deserialize)]
#[serde(try_from = "ForwardKeys")]
pub(super) struct ForwardSettings(pub(super) ForwardConfig);

impl Serialize for ForwardSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ForwardKeys::from(&self.0).serialize(serializer)
    }
}

/// The keys of the file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ForwardKeys {
    /// Names it in logs; the name of its link: made of `from` and `to`.
    #[serde(default)]
    name: Key<Text<256>>,
    /// Where messages come from: a queue or topic here, or the URL of a node elsewhere.
    from: Value<Place>,
    /// Where they go, likewise. Of the two one is a URL.
    to: Value<Place>,
    /// PEM: whom to trust with `amqps`, or `off`, for those that the system trusts: off.
    #[serde(default)]
    ca: Key<OrOff<Text>>,
    /// The pause before a lost connection is made again; it doubles up to `longest_pause`: 100ms.
    #[serde(default)]
    first_pause: Key<Time>,
    /// The longest one: 30s.
    #[serde(default)]
    longest_pause: Key<Time>,
    /// TCP_NODELAY: true.
    #[serde(default)]
    nodelay: Key<Switch>,
    /// SO_SNDBUF in octets, or `off`, for the kernel to adapt it: off.
    #[serde(default)]
    send_buffer: Key<OrOff<Octets<usize>>>,
    /// SO_RCVBUF in octets, likewise: off.
    #[serde(default)]
    receive_buffer: Key<OrOff<Octets<usize>>>,
    /// TCP_NOTSENT_LOWAT in octets, or `off`, for the kernel's: 16KiB.
    #[serde(default)]
    notsent_lowat: Key<OrOff<Octets<u32>>>,
    /// SO_KEEPALIVE: silence after which the kernel probes, in whole seconds, or `off`: off.
    #[serde(default)]
    keepalive: Key<OrOff<Time<1_000, 32_767_000>>>,
    /// TCP_USER_TIMEOUT, or `off`, for the kernel's: off.
    #[serde(default)]
    user_timeout: Key<OrOff<Time>>,
    /// Which instants the kernel is asked for: off.
    #[serde(default)]
    kernel_timestamps: Key<KernelTimestamps>,
}

impl TryFrom<ForwardKeys> for ForwardSettings {
    type Error = &'static str;

    fn try_from(keys: ForwardKeys) -> Result<Self, Self::Error> {
        let default_name = format!("{} to {}", keys.from.0, keys.to.0);
        let (local, remote, direction) = match (keys.from.0, keys.to.0) {
            (Place::Here(local), Place::There(remote)) => (local, *remote, Direction::Out),
            (Place::There(remote), Place::Here(local)) => (local, *remote, Direction::In),
            (Place::Here(_), Place::Here(_)) => {
                return Err("`from` and `to` are both here: one of them has to be the URL of a \
                            node elsewhere, such as amqp://host:5672/queue");
            }
            (Place::There(_), Place::There(_)) => {
                return Err("`from` and `to` are both URLs: one of them has to be the name of a \
                            queue or topic here");
            }
        };
        let mut socket = SocketOptions::default();
        set(&mut socket.nodelay, keys.nodelay);
        set(&mut socket.send_buffer, keys.send_buffer);
        set(&mut socket.receive_buffer, keys.receive_buffer);
        set(&mut socket.notsent_lowat, keys.notsent_lowat);
        set(&mut socket.keepalive, keys.keepalive);
        set(&mut socket.user_timeout, keys.user_timeout);
        set(&mut socket.kernel_timestamps, keys.kernel_timestamps);
        let mut reconnect = Reconnect::default();
        set(&mut reconnect.first, keys.first_pause);
        set(&mut reconnect.most, keys.longest_pause);
        let ca = keys.ca.and_then(|Value(ca)| ca).map(PathBuf::from);
        if ca.is_some() && !remote.tls {
            return Err("`ca` says whom to trust with TLS, and there is none with amqp: write \
                        amqps in the URL, or leave `ca` out");
        }
        let name = keys.name.map_or(default_name, |Value(name)| name);
        Ok(Self(ForwardConfig { name, local, remote, direction, socket, ca, reconnect }))
    }
}

impl From<&ForwardConfig> for ForwardKeys {
    fn from(config: &ForwardConfig) -> Self {
        let here = Value(Place::Here(config.local.clone()));
        let there = Value(Place::There(Box::new(config.remote.clone())));
        let (from, to) = match config.direction {
            Direction::Out => (here, there),
            Direction::In => (there, here),
        };
        let ca = config.ca.as_ref().map(|ca| ca.to_string_lossy().into_owned());
        let socket = &config.socket;
        Self {
            name: Some(Value(config.name.clone())),
            from,
            to,
            ca: Some(Value(ca)),
            first_pause: Some(Value(config.reconnect.first)),
            longest_pause: Some(Value(config.reconnect.most)),
            nodelay: Some(Value(socket.nodelay)),
            send_buffer: Some(Value(socket.send_buffer)),
            receive_buffer: Some(Value(socket.receive_buffer)),
            notsent_lowat: Some(Value(socket.notsent_lowat)),
            keepalive: Some(Value(socket.keepalive)),
            user_timeout: Some(Value(socket.user_timeout)),
            kernel_timestamps: Some(Value(socket.kernel_timestamps)),
        }
    }
}

/// A node here, or one elsewhere.
enum Place {
    Here(String),
    There(Box<Url>),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Here(address) => f.write_str(address),
            Self::There(url) => {
                write!(f, "{}/{}", url.host_port(), url.address.as_deref().unwrap_or_default())
            }
        }
    }
}

impl Kind for Place {
    type Meant = Self;

    fn parse(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return match text {
                "" => Err("write the name of a queue or topic, or a URL".into()),
                _ if text.starts_with('$') => {
                    Err("write another name: those that begin with $ are reserved".into())
                }
                _ => Ok(Self::Here(text.to_owned())),
            };
        }
        let url: Url = text.parse().map_err(|error: hopline_driver::Error| error.to_string())?;
        if url.listen || url.address.is_none() {
            return Err("write a URL with a node in it, such as amqp://host:5672/queue".into());
        }
        if url.password.as_deref() == Some(MASK) {
            return Err("this is the mask of a printed configuration; write the password".into());
        }
        Ok(Self::There(Box::new(url)))
    }

    fn write(meant: &Self) -> Written {
        Written::Text(match meant {
            Self::Here(address) => address.clone(),
            // A URL shows its password as `***` only.
            Self::There(url) => url.to_string().replacen(":***@", &format!(":{MASK}@"), 1),
        })
    }
}
