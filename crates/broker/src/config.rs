//! What the broker is set up with. Every limit is here, with its default.

use crate::forward::ForwardConfig;
use hopline_driver::SocketOptions;
use std::path::PathBuf;
use std::time::Duration;

/// The whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The container-id, and the name under which the broker stamps timelines. `hopline-broker`
    /// by default.
    pub name: String,
    /// Where to listen.
    pub listeners: Vec<ListenerConfig>,
    /// Who may connect with SCRAM-SHA-256 or PLAIN; nobody by default.
    pub users: Vec<User>,
    /// Whether ANONYMOUS (and no SASL at all) is let in. True by default.
    pub anonymous: bool,
    /// Which nodes lead to other brokers, or get messages from there. None by default.
    pub forwards: Vec<ForwardConfig>,
    /// What connections may take.
    pub limits: Limits,
    /// What queues and topics are like.
    pub nodes: NodeConfig,
    /// Where what the kernel tells of sent messages goes. Nowhere by default.
    pub side_records: SideSink,
    /// Which messages are stamped. Those that carry a timeline by default.
    pub timelines: Sampling,
    /// How long a stop waits for peers to close. 5 s by default.
    pub stop_timeout: Duration,
}

/// Where side records go (`docs/timeline.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SideSink {
    /// Nowhere.
    #[default]
    Off,
    /// To whoever consumes from the address `$timeline`.
    Timeline,
    /// To this file, which is emptied first.
    File(PathBuf),
}

/// One address to listen on.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerConfig {
    /// `HOST:PORT`; port 0 takes a free one.
    pub address: String,
    /// Options of the listening socket and of each accepted one.
    pub socket: SocketOptions,
    /// TLS, if connections are to use it.
    pub tls: Option<TlsFiles>,
}

/// The files of a TLS listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM: the certificate, then those between it and its root.
    pub certificate: PathBuf,
    /// PEM: its private key.
    pub key: PathBuf,
}

/// A user of SASL SCRAM-SHA-256 and PLAIN.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The secret.
    pub password: String,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What connections may take. Those of the engine are documented at `hopline_engine::Config`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Connections in all, those in a TLS or AMQP handshake included. 10,000 by default.
    pub connections: usize,
    /// Connections from one IPv4 address or one IPv6 network of 64 bits. 5,000 by default.
    pub connections_per_address: usize,
    /// Octets of the largest frame read. 65,536 by default.
    pub max_frame_size: u32,
    /// Sessions of a connection, less one. 255 by default.
    pub channel_max: u16,
    /// Links of a session, less one. 1,023 by default.
    pub handle_max: u32,
    /// Octets of the largest message. 128 MiB by default.
    pub max_message_size: u64,
    /// When a silent peer is given up; half of it is advertised. 60 s by default; none: never.
    pub idle_timeout: Option<Duration>,
    /// From connect to `open`, the TLS handshake included; and from there until a peer has attached
    /// the link of a forward. 10 s by default.
    pub handshake_timeout: Duration,
    /// Deliveries that a publisher may send ahead. 1,000 by default.
    pub producer_credit: u32,
    /// Transactions of a connection that are not discharged. 100 by default.
    pub transactions: usize,
    /// From declare to discharge; then the transaction is rolled back. 60 s by default.
    pub transaction_timeout: Duration,
    /// Deliveries that a transaction holds: posted, retired or acquired. 10,000 by default.
    pub transaction_deliveries: usize,
    /// Octets of the messages posted in a transaction. 128 MiB by default.
    pub transaction_octets: usize,
}

/// What queues and topics are like.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// Whether an attach makes the queue it names. True by default.
    pub auto_create: bool,
    /// Addresses that nobody may use; a `*` at the end stands for any ending.
    pub deny: Vec<String>,
    /// Queues that are there from the start.
    pub queues: Vec<String>,
    /// Addresses with one of these prefixes are topics. `topic/` by default.
    pub topic_prefixes: Vec<String>,
    /// Queues that order their messages by priority; a `*` at the end stands for any ending. None
    /// by default.
    pub priority_queues: Vec<String>,
    /// Queues that keep groups of messages together, likewise. None by default.
    pub group_queues: Vec<String>,
    /// Messages that a queue holds, those in delivery included. 1,000,000 by default.
    pub max_messages: usize,
    /// Octets that a queue holds. 128 MiB by default.
    pub max_octets: usize,
    /// Queues and topics in all. 100,000 by default.
    pub max_nodes: usize,
    /// Where rejected, expired and too often failed messages go. None by default: discarded.
    pub dead_letter: Option<String>,
    /// Failed deliveries after which a message is a dead letter. None by default: never.
    pub max_delivery_count: Option<u32>,
    /// What becomes of messages that ask to be durable. Accepted by default.
    pub durable_messages: DurableMessages,
}

/// What becomes of messages whose header says `durable` (part 3, 3.2.1), as queues are in memory
/// only.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DurableMessages {
    /// They are taken and passed on as they are; a restart loses them like all others.
    Accept,
    /// They are rejected with `amqp:precondition-failed`; a settled one ends its link.
    Reject,
}

/// Which messages the broker stamps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// All: one without a timeline is given one.
    All,
    /// Those that carry a timeline, and one in so many others.
    OneIn(u32),
    /// Those that carry a timeline.
    Carried,
    /// None.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "hopline-broker".into(),
            listeners: vec![ListenerConfig::default()],
            users: Vec::new(),
            forwards: Vec::new(),
            anonymous: true,
            limits: Limits::default(),
            nodes: NodeConfig::default(),
            side_records: SideSink::Off,
            timelines: Sampling::Carried,
            stop_timeout: Duration::from_secs(5),
        }
    }
}

impl Default for ListenerConfig {
    fn default() -> Self {
        let socket = SocketOptions::default();
        Self { address: "127.0.0.1:5672".into(), socket, tls: None }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 5_000,
            max_frame_size: 131_072,
            channel_max: 255,
            handle_max: 1023,
            max_message_size: 128 << 20,
            idle_timeout: Some(Duration::from_secs(60)),
            handshake_timeout: Duration::from_secs(10),
            producer_credit: 1000,
            transactions: 100,
            transaction_timeout: Duration::from_secs(60),
            transaction_deliveries: 10_000,
            transaction_octets: 128 << 20,
        }
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            auto_create: true,
            deny: Vec::new(),
            queues: Vec::new(),
            topic_prefixes: vec!["topic/".into()],
            priority_queues: Vec::new(),
            group_queues: Vec::new(),
            max_messages: 1_000_000,
            max_octets: 128 << 20,
            max_nodes: 100_000,
            dead_letter: None,
            max_delivery_count: None,
            durable_messages: DurableMessages::Accept,
        }
    }
}
