//! The way back from what is meant to a file.

use super::forward::ForwardSettings;
use super::keys::{
    LimitSettings, ListenerSettings, NodeSettings, Settings, TlsSettings, UserSettings,
};
use super::values::Value;
use crate::config::{Config, Limits, ListenerConfig, NodeConfig, TlsFiles, User};
use std::path::{Path, PathBuf};

/// Stands for each password.
pub(super) const MASK: &str = "********";

/// The whole configuration as a TOML file, defaults included. Read again it means the same, but
/// that each password is masked, and that a mask is refused.
pub fn print(config: &Config) -> String {
    // Every kind of value is one of TOML's, so this does not fail.
    toml::to_string(&Settings::from(config)).unwrap_or_default()
}

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        Self {
            name: Some(Value(config.name.clone())),
            anonymous: Some(Value(config.anonymous)),
            timelines: Some(Value(config.timelines)),
            side_records: Some(Value(config.side_records.clone())),
            stop_timeout: Some(Value(config.stop_timeout)),
            limits: (&config.limits).into(),
            nodes: (&config.nodes).into(),
            listener: Some(config.listeners.iter().map(Into::into).collect()),
            user: Some(config.users.iter().map(Into::into).collect()),
            forward: Some(config.forwards.iter().cloned().map(ForwardSettings).collect()),
        }
    }
}

impl From<&Limits> for LimitSettings {
    fn from(limits: &Limits) -> Self {
        Self {
            connections: Some(Value(limits.connections)),
            connections_per_address: Some(Value(limits.connections_per_address)),
            max_frame_size: Some(Value(limits.max_frame_size)),
            channel_max: Some(Value(limits.channel_max)),
            handle_max: Some(Value(limits.handle_max)),
            max_message_size: Some(Value(limits.max_message_size)),
            idle_timeout: Some(Value(limits.idle_timeout)),
            handshake_timeout: Some(Value(limits.handshake_timeout)),
            producer_credit: Some(Value(limits.producer_credit)),
            transactions: Some(Value(limits.transactions)),
            transaction_timeout: Some(Value(limits.transaction_timeout)),
            transaction_deliveries: Some(Value(limits.transaction_deliveries)),
            transaction_octets: Some(Value(limits.transaction_octets)),
        }
    }
}

impl From<&NodeConfig> for NodeSettings {
    fn from(nodes: &NodeConfig) -> Self {
        Self {
            auto_create: Some(Value(nodes.auto_create)),
            deny: Some(nodes.deny.clone()),
            queues: Some(nodes.queues.clone()),
            topic_prefixes: Some(nodes.topic_prefixes.clone()),
            group_queues: Some(nodes.group_queues.clone()),
            priority_queues: Some(nodes.priority_queues.clone()),
            max_messages: Some(Value(nodes.max_messages)),
            max_octets: Some(Value(nodes.max_octets)),
            max_nodes: Some(Value(nodes.max_nodes)),
            dead_letter: Some(Value(nodes.dead_letter.clone())),
            max_delivery_count: Some(Value(nodes.max_delivery_count)),
            durable_messages: Some(Value(nodes.durable_messages)),
        }
    }
}

impl From<&ListenerConfig> for ListenerSettings {
    fn from(listener: &ListenerConfig) -> Self {
        let socket = &listener.socket;
        Self {
            address: Some(Value(listener.address.clone())),
            nodelay: Some(Value(socket.nodelay)),
            send_buffer: Some(Value(socket.send_buffer)),
            receive_buffer: Some(Value(socket.receive_buffer)),
            notsent_lowat: Some(Value(socket.notsent_lowat)),
            keepalive: Some(Value(socket.keepalive)),
            user_timeout: Some(Value(socket.user_timeout)),
            backlog: Some(Value(socket.backlog)),
            reuse_port: Some(Value(socket.reuse_port)),
            kernel_timestamps: Some(Value(socket.kernel_timestamps)),
            tls: listener.tls.as_ref().map(Into::into),
        }
    }
}

impl From<&TlsFiles> for TlsSettings {
    fn from(files: &TlsFiles) -> Self {
        Self { certificate: utf8(&files.certificate), key: utf8(&files.key) }
    }
}

/// TOML has no other texts.
fn utf8(path: &Path) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

impl From<&User> for UserSettings {
    fn from(user: &User) -> Self {
        Self { name: Value(user.name.clone()), password: Value(user.password.clone()) }
    }
}
