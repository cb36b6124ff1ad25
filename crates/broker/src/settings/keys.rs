//! The keys of the file. One that is not there leaves what is set already, which is the default
//! of [`Config`] if nothing else is.

use super::forward::ForwardSettings;
use super::values::{Address, Octets, OrOff, Secret, Switch, Text, Time, Value, Whole};
use crate::config::{
    Config, DurableMessages, Limits, ListenerConfig, NodeConfig, Sampling, SideSink, TlsFiles, User,
};
use hopline_driver::KernelTimestamps;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A key that may be there.
pub(super) type Key<K> = Option<Value<K>>;

/// All keys.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    /// The container-id and the name in timelines, of 64 octets at most: `hopline-broker`.
    pub(super) name: Key<Text<64>>,
    /// Whether peers may connect without a password: true.
    pub(super) anonymous: Key<Switch>,
    /// Which messages are stamped, `all`, `carried`, `off` or `1/N`: `carried`.
    pub(super) timelines: Key<Sampling>,
    /// Where what the kernel tells of sent messages goes, `off`, a file, or `$timeline`: off.
    pub(super) side_records: Key<SideSink>,
    /// How long a stop waits for peers to close: 5s.
    pub(super) stop_timeout: Key<Time<0>>,
    pub(super) limits: LimitSettings,
    pub(super) nodes: NodeSettings,
    /// Where to listen: one listener with all its defaults.
    pub(super) listener: Option<Vec<ListenerSettings>>,
    /// Who may connect with a password: nobody.
    pub(super) user: Option<Vec<UserSettings>>,
    /// What is forwarded to other brokers, or from there: nothing.
    pub(super) forward: Option<Vec<ForwardSettings>>,
}

/// `[limits]`: what connections may take.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitSettings {
    /// Connections in all: 10000.
    pub(super) connections: Key<Whole<usize, 1>>,
    /// Connections from one address: 5000.
    pub(super) connections_per_address: Key<Whole<usize, 1>>,
    /// Octets of the largest frame read, 512 or more (section 2.7.1): 64KiB.
    pub(super) max_frame_size: Key<Octets<u32, 512>>,
    /// Sessions of a connection, less one: 255.
    pub(super) channel_max: Key<Whole<u16>>,
    /// Links of a session, less one: 1023.
    pub(super) handle_max: Key<Whole<u32>>,
    /// Octets of the largest message: 128MiB.
    pub(super) max_message_size: Key<Octets<u64>>,
    /// When a silent peer is given up, or `off`: 60s.
    pub(super) idle_timeout: Key<OrOff<Time<10>>>,
    /// From connect to `open`: 10s.
    pub(super) handshake_timeout: Key<Time>,
    /// Deliveries that a publisher may send ahead: 1000.
    pub(super) producer_credit: Key<Whole<u32, 1>>,
    /// Transactions of a connection: 100.
    pub(super) transactions: Key<Whole<usize>>,
    /// From declare to discharge: 60s.
    pub(super) transaction_timeout: Key<Time>,
    /// Deliveries that a transaction holds: 10000.
    pub(super) transaction_deliveries: Key<Whole<usize, 1>>,
    /// Octets of the messages posted in a transaction: 128MiB.
    pub(super) transaction_octets: Key<Octets<usize>>,
}

/// `[nodes]`: what queues and topics are like.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NodeSettings {
    /// Whether an attach makes the queue it names: true.
    pub(super) auto_create: Key<Switch>,
    /// Addresses that nobody may use, `*` at the end for any ending: none.
    pub(super) deny: Option<Vec<String>>,
    /// Queues that are there from the start: none.
    pub(super) queues: Option<Vec<String>>,
    /// Addresses with one of these prefixes are topics: `topic/`.
    pub(super) topic_prefixes: Option<Vec<String>>,
    /// Queues that order their messages by priority, `*` at the end for any ending: none.
    pub(super) priority_queues: Option<Vec<String>>,
    /// Queues that keep groups of messages together, `*` at the end for any ending: none.
    pub(super) group_queues: Option<Vec<String>>,
    /// Messages that a queue holds: 1000000.
    pub(super) max_messages: Key<Whole<usize, 1>>,
    /// Octets that a queue holds: 1GiB.
    pub(super) max_octets: Key<Octets<usize>>,
    /// Queues and topics in all: 100000.
    pub(super) max_nodes: Key<Whole<usize, 1>>,
    /// Where rejected, expired and too often failed messages go, or `off`: off.
    pub(super) dead_letter: Key<OrOff<Text>>,
    /// Failed deliveries after which a message is a dead letter, or `off`: off.
    pub(super) max_delivery_count: Key<OrOff<Whole<u32, 1>>>,
    /// What becomes of durable messages, `accept` or `reject`: `accept`.
    pub(super) durable_messages: Key<DurableMessages>,
}

/// `[[listener]]`: one address to listen on, and the options of its sockets.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListenerSettings {
    /// `HOST:PORT`; port 0 takes a free one: `127.0.0.1:5672`.
    pub(super) address: Key<Address>,
    /// TCP_NODELAY: true.
    pub(super) nodelay: Key<Switch>,
    /// SO_SNDBUF in octets, or `off`, for the kernel to adapt it: off.
    pub(super) send_buffer: Key<OrOff<Octets<usize>>>,
    /// SO_RCVBUF in octets, likewise: off.
    pub(super) receive_buffer: Key<OrOff<Octets<usize>>>,
    /// TCP_NOTSENT_LOWAT in octets, or `off`, for the kernel's: 16KiB.
    pub(super) notsent_lowat: Key<OrOff<Octets<u32>>>,
    /// SO_KEEPALIVE: silence after which the kernel probes, in whole seconds, or `off`: off.
    pub(super) keepalive: Key<OrOff<Time<1_000, 32_767_000>>>,
    /// TCP_USER_TIMEOUT, or `off`, for the kernel's: off.
    pub(super) user_timeout: Key<OrOff<Time>>,
    /// Connections that may wait to be accepted: 1024.
    pub(super) backlog: Key<Whole<u32, 1>>,
    /// SO_REUSEPORT: false.
    pub(super) reuse_port: Key<Switch>,
    /// Which instants the kernel is asked for: off.
    pub(super) kernel_timestamps: Key<KernelTimestamps>,
    /// `[listener.tls]`: TLS, if it is there.
    pub(super) tls: Option<TlsSettings>,
}

/// Files of PEM, seen from the folder of the configuration file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsSettings {
    /// The certificate, then those between it and its root.
    pub(super) certificate: PathBuf,
    /// Its private key.
    pub(super) key: PathBuf,
}

/// `[[user]]`: who may connect with SASL SCRAM-SHA-256 or PLAIN.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserSettings {
    pub(super) name: Value<Text>,
    pub(super) password: Value<Secret>,
}

pub(super) fn set<K: super::values::Kind>(meant: &mut K::Meant, key: Key<K>) {
    if let Some(Value(value)) = key {
        *meant = value;
    }
}

fn set_list(meant: &mut Vec<String>, key: Option<Vec<String>>) {
    if let Some(list) = key {
        *meant = list;
    }
}

impl Settings {
    /// Lays what is there over `config`.
    pub(super) fn apply(self, config: &mut Config) {
        set(&mut config.name, self.name);
        set(&mut config.anonymous, self.anonymous);
        set(&mut config.timelines, self.timelines);
        set(&mut config.side_records, self.side_records);
        set(&mut config.stop_timeout, self.stop_timeout);
        self.limits.apply(&mut config.limits);
        self.nodes.apply(&mut config.nodes);
        if let Some(listeners) = self.listener {
            config.listeners = listeners.into_iter().map(ListenerSettings::meant).collect();
        }
        if let Some(users) = self.user {
            config.users = users.into_iter().map(UserSettings::meant).collect();
        }
        if let Some(forwards) = self.forward {
            config.forwards = forwards.into_iter().map(|ForwardSettings(config)| config).collect();
        }
    }
}

impl LimitSettings {
    fn apply(self, limits: &mut Limits) {
        set(&mut limits.connections, self.connections);
        set(&mut limits.connections_per_address, self.connections_per_address);
        set(&mut limits.max_frame_size, self.max_frame_size);
        set(&mut limits.channel_max, self.channel_max);
        set(&mut limits.handle_max, self.handle_max);
        set(&mut limits.max_message_size, self.max_message_size);
        set(&mut limits.idle_timeout, self.idle_timeout);
        set(&mut limits.handshake_timeout, self.handshake_timeout);
        set(&mut limits.producer_credit, self.producer_credit);
        set(&mut limits.transactions, self.transactions);
        set(&mut limits.transaction_timeout, self.transaction_timeout);
        set(&mut limits.transaction_deliveries, self.transaction_deliveries);
        set(&mut limits.transaction_octets, self.transaction_octets);
    }
}

impl NodeSettings {
    fn apply(self, nodes: &mut NodeConfig) {
        set(&mut nodes.auto_create, self.auto_create);
        set_list(&mut nodes.deny, self.deny);
        set_list(&mut nodes.queues, self.queues);
        set_list(&mut nodes.topic_prefixes, self.topic_prefixes);
        set_list(&mut nodes.priority_queues, self.priority_queues);
        set_list(&mut nodes.group_queues, self.group_queues);
        set(&mut nodes.max_messages, self.max_messages);
        set(&mut nodes.max_octets, self.max_octets);
        set(&mut nodes.max_nodes, self.max_nodes);
        set(&mut nodes.dead_letter, self.dead_letter);
        set(&mut nodes.max_delivery_count, self.max_delivery_count);
        set(&mut nodes.durable_messages, self.durable_messages);
    }
}

impl ListenerSettings {
    fn meant(self) -> ListenerConfig {
        let mut listener = ListenerConfig::default();
        set(&mut listener.address, self.address);
        let socket = &mut listener.socket;
        set(&mut socket.nodelay, self.nodelay);
        set(&mut socket.send_buffer, self.send_buffer);
        set(&mut socket.receive_buffer, self.receive_buffer);
        set(&mut socket.notsent_lowat, self.notsent_lowat);
        set(&mut socket.keepalive, self.keepalive);
        set(&mut socket.user_timeout, self.user_timeout);
        set(&mut socket.backlog, self.backlog);
        set(&mut socket.reuse_port, self.reuse_port);
        set(&mut socket.kernel_timestamps, self.kernel_timestamps);
        listener.tls = self.tls.map(|tls| TlsFiles { certificate: tls.certificate, key: tls.key });
        listener
    }
}

impl UserSettings {
    fn meant(self) -> User {
        User { name: self.name.0, password: self.password.0 }
    }
}
