//! The TOML file. Unknown keys are refused: a slip of the pen must not pass for a default.

use super::{sampling, shown};
use crate::config::{Config, Limits, ListenerConfig, NodeConfig, TlsFiles, User};
use hopline_driver::SocketOptions;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It can't be read.
    #[error("the configuration file {path} can't be read; correct --config or HOPLINE_CONFIG")]
    Read {
        /// Which.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no TOML, or holds what does not belong there. The text names line and column.
    #[error("the configuration file {path} is wrong:\n{reason}")]
    Parse {
        /// Which.
        path: String,
        /// Line, column and what belongs there.
        reason: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileSettings {
    name: Option<String>,
    listener: Option<Vec<FileListener>>,
    user: Vec<FileUser>,
    anonymous: Option<bool>,
    limits: FileLimits,
    nodes: FileNodes,
    timelines: Option<String>,
    #[serde(deserialize_with = "duration")]
    stop_timeout: Option<Duration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileListener {
    address: String,
    nodelay: Option<bool>,
    send_buffer: Option<usize>,
    receive_buffer: Option<usize>,
    notsent_lowat: Option<u32>,
    #[serde(default, deserialize_with = "duration")]
    keepalive: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    user_timeout: Option<Duration>,
    backlog: Option<u32>,
    reuse_port: Option<bool>,
    tls: Option<FileTls>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTls {
    certificate: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUser {
    name: String,
    password: String,
}

impl std::fmt::Debug for FileUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileLimits {
    connections: Option<usize>,
    max_frame_size: Option<u32>,
    channel_max: Option<u16>,
    handle_max: Option<u32>,
    max_message_size: Option<u64>,
    #[serde(deserialize_with = "duration")]
    idle_timeout: Option<Duration>,
    #[serde(deserialize_with = "duration")]
    handshake_timeout: Option<Duration>,
    producer_credit: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileNodes {
    auto_create: Option<bool>,
    deny: Option<Vec<String>>,
    queues: Option<Vec<String>>,
    topic_prefixes: Option<Vec<String>>,
    max_messages: Option<usize>,
    max_octets: Option<usize>,
    max_nodes: Option<usize>,
    dead_letter: Option<String>,
    max_delivery_count: Option<u32>,
}

/// `10s`, `500ms`, `2m`; `0s` for none where none is possible.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| humantime::parse_duration(&text).map_err(serde::de::Error::custom)).transpose()
}

impl FileSettings {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| FileError::Read { path: shown(path), source })?;
        toml::from_str(&text)
            .map_err(|error| FileError::Parse { path: shown(path), reason: error.to_string() })
    }

    pub(super) fn into_config(self, path: &Path) -> Result<Config, FileError> {
        let default = Config::default();
        let wrong = |reason: String| FileError::Parse { path: shown(path), reason };
        let timelines = match &self.timelines {
            None => default.timelines,
            Some(text) => sampling(text).ok_or_else(|| {
                wrong(format!("timelines = {text:?}: write all, 1/N, carried or off"))
            })?,
        };
        let max_frame_size = self.limits.max_frame_size.unwrap_or(default.limits.max_frame_size);
        if max_frame_size < 512 {
            let text = "limits.max_frame_size is below 512, the least that AMQP allows";
            return Err(wrong(text.to_owned()));
        }
        let listeners = match self.listener {
            None => default.listeners,
            Some(listeners) => listeners.into_iter().map(FileListener::into_config).collect(),
        };
        let user = |user: FileUser| User { name: user.name, password: user.password };
        Ok(Config {
            name: self.name.unwrap_or(default.name),
            listeners,
            users: self.user.into_iter().map(user).collect(),
            anonymous: self.anonymous.unwrap_or(default.anonymous),
            limits: self.limits.into_config(),
            nodes: self.nodes.into_config(),
            timelines,
            stop_timeout: self.stop_timeout.unwrap_or(default.stop_timeout),
        })
    }
}

impl FileListener {
    fn into_config(self) -> ListenerConfig {
        let default = SocketOptions::default();
        let files = |tls: FileTls| TlsFiles { certificate: tls.certificate, key: tls.key };
        ListenerConfig {
            address: self.address,
            socket: SocketOptions {
                nodelay: self.nodelay.unwrap_or(default.nodelay),
                send_buffer: self.send_buffer.or(default.send_buffer),
                receive_buffer: self.receive_buffer.or(default.receive_buffer),
                notsent_lowat: self.notsent_lowat.or(default.notsent_lowat),
                keepalive: self.keepalive.or(default.keepalive),
                user_timeout: self.user_timeout.or(default.user_timeout),
                backlog: self.backlog.unwrap_or(default.backlog),
                reuse_port: self.reuse_port.unwrap_or(default.reuse_port),
            },
            tls: self.tls.map(files),
        }
    }
}

impl FileLimits {
    fn into_config(self) -> Limits {
        let default = Limits::default();
        let idle_timeout = match self.idle_timeout {
            Some(idle) => Some(idle).filter(|idle| !idle.is_zero()),
            None => default.idle_timeout,
        };
        Limits {
            connections: self.connections.unwrap_or(default.connections),
            max_frame_size: self.max_frame_size.unwrap_or(default.max_frame_size),
            channel_max: self.channel_max.unwrap_or(default.channel_max),
            handle_max: self.handle_max.unwrap_or(default.handle_max),
            max_message_size: self.max_message_size.unwrap_or(default.max_message_size),
            idle_timeout,
            handshake_timeout: self.handshake_timeout.unwrap_or(default.handshake_timeout),
            producer_credit: self.producer_credit.unwrap_or(default.producer_credit),
        }
    }
}

impl FileNodes {
    fn into_config(self) -> NodeConfig {
        let default = NodeConfig::default();
        NodeConfig {
            auto_create: self.auto_create.unwrap_or(default.auto_create),
            deny: self.deny.unwrap_or(default.deny),
            queues: self.queues.unwrap_or(default.queues),
            topic_prefixes: self.topic_prefixes.unwrap_or(default.topic_prefixes),
            max_messages: self.max_messages.unwrap_or(default.max_messages),
            max_octets: self.max_octets.unwrap_or(default.max_octets),
            max_nodes: self.max_nodes.unwrap_or(default.max_nodes),
            dead_letter: self.dead_letter.or(default.dead_letter),
            max_delivery_count: self.max_delivery_count.or(default.max_delivery_count),
        }
    }
}
