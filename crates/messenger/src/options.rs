//! What a messenger is built with.

use crate::Messenger;
use crate::routes::Routes;
use hopline_driver::Reconnect;
use hopline_driver::SideRecords;
use hopline_driver::SocketOptions;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Which messages are stamped on their way out. A message that carries a timeline already is
/// stamped with all settings but `Off`; what comes in is stamped likewise.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// All.
    All,
    /// One in so many.
    OneIn(u32),
    /// Only messages that carry one already when they are put.
    OnlyCarried,
    /// None: a timeline that a message carries is passed on as it is.
    Off,
}

/// When a subscription's credit is topped up.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum TopUp {
    /// Once half of it is used: a flow frame for many messages.
    #[default]
    Half,
    /// After each message: a flow frame for each.
    Each,
}

/// Settings of a messenger. All have defaults.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) name: String,
    pub(crate) timeout: Duration,
    pub(crate) socket: SocketOptions,
    pub(crate) side_records: Option<SideRecords>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) split_writes: Option<NonZeroUsize>,
    pub(crate) credit: u32,
    pub(crate) top_up: TopUp,
    pub(crate) settles_second: bool,
    pub(crate) store_messages: usize,
    pub(crate) store_octets: usize,
    pub(crate) outgoing_window: usize,
    pub(crate) incoming_window: usize,
    pub(crate) accepts_beyond_window: bool,
    pub(crate) inbound_max: usize,
    pub(crate) sampling: Sampling,
    pub(crate) routes: Routes,
    pub(crate) rewrites: Routes,
    pub(crate) reconnect: Option<Reconnect>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            name: "messenger".into(),
            timeout: Duration::from_secs(10),
            socket: SocketOptions::default(),
            ca: None,
            side_records: None,
            split_writes: None,
            credit: 100,
            top_up: TopUp::Half,
            settles_second: false,
            store_messages: 10_000,
            store_octets: 256 << 20,
            outgoing_window: 10_000,
            incoming_window: 10_000,
            accepts_beyond_window: false,
            inbound_max: 1024,
            sampling: Sampling::All,
            routes: Routes::default(),
            rewrites: Routes::default(),
            reconnect: None,
        }
    }
}

impl Builder {
    /// Who stamps timelines, and the container-id. `messenger` by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long calls that wait may take. 10 s by default.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Options of all sockets; TCP_NODELAY is on by default.
    #[must_use]
    pub fn socket(mut self, options: SocketOptions) -> Self {
        self.socket = options;
        self
    }

    /// The PEM file of whom to trust on `amqps` connections; the system's store by default.
    #[must_use]
    pub fn ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca = Some(file.into());
        self
    }

    /// Messages that a subscription may be sent ahead; topped up as
    /// [`Builder::top_up`] says. 100 by default, at least 1.
    #[must_use]
    pub fn credit(mut self, messages: u32) -> Self {
        self.credit = messages.max(1);
        self
    }

    /// When credit is topped up; at half by default.
    #[must_use]
    pub const fn top_up(mut self, when: TopUp) -> Self {
        self.top_up = when;
        self
    }

    /// Attaches links with the receiver settle mode `second` (AMQP 1.0, 2.8.3): the receiver tells
    /// the outcome, the sender answers each with a frame of its own that settles. Off by default,
    /// since `first` saves that frame.
    #[must_use]
    pub const fn settle_second(mut self, second: bool) -> Self {
        self.settles_second = second;
        self
    }

    /// Where what the kernel tells of sent messages goes: its stamps, if
    /// [`SocketOptions::kernel_timestamps`] asks for them, and in any case why it held a message
    /// back. Nowhere by default.
    #[must_use]
    pub fn side_records(mut self, records: SideRecords) -> Self {
        self.side_records = Some(records);
        self
    }

    /// Writes the first octets of what is ready apart from the rest, for experiments; see
    /// [`Io::split_writes`](hopline_driver::Io::split_writes). Off by default.
    #[must_use]
    pub const fn split_writes(mut self, octets: Option<NonZeroUsize>) -> Self {
        self.split_writes = octets;
        self
    }

    /// What the outgoing store may hold: messages and octets, unsettled ones included. 10,000 and
    /// 256 MiB by default.
    #[must_use]
    pub const fn store(mut self, messages: usize, octets: usize) -> Self {
        self.store_messages = messages;
        self.store_octets = octets;
        self
    }

    /// For how many of the last puts the status is kept; older ones are
    /// [`Status::Unknown`](crate::Status::Unknown). 10,000 by default.
    #[must_use]
    pub const fn outgoing_window(mut self, messages: usize) -> Self {
        self.outgoing_window = messages;
        self
    }

    /// For how many of the last messages taken the status is kept, and
    /// [`Messenger::settle_tracker`] works; 10,000 by default. Messages that are settled as
    /// [`Received`](crate::Received) need no window.
    #[must_use]
    pub const fn incoming_window(mut self, messages: usize) -> Self {
        self.incoming_window = messages;
        self
    }

    /// Accepts a message that falls out of the incoming window without an outcome: with a window
    /// of 0, as soon as it is taken. Off by default, since who fails after that has lost the
    /// message.
    #[must_use]
    pub const fn accept_beyond_window(mut self, accept: bool) -> Self {
        self.accepts_beyond_window = accept;
        self
    }

    /// Connections that peers may make to us at a time, where we listen; more are closed at once.
    /// 1,024 by default.
    #[must_use]
    pub const fn inbound_max(mut self, connections: usize) -> Self {
        self.inbound_max = connections;
        self
    }

    /// Which messages are given a timeline. All by default.
    #[must_use]
    pub const fn timelines(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sends what is put to addresses like `pattern` to `address` instead: `%` stands for any
    /// octets but `/`, `*` for any; `$1` to `$9` in the address for what they stood for. A pattern
    /// with more than nine wildcards fits nothing. The first route that fits holds; the message's
    /// own `to` stays.
    #[must_use]
    pub fn route(mut self, pattern: impl Into<String>, address: impl Into<String>) -> Self {
        self.routes.add(pattern.into(), address.into());
        self
    }

    /// Replaces the `to` of messages put that is like `pattern` (see [`Builder::route`]) by
    /// `address`. A `to` that no rewrite fits only loses its user and password, if it is a URL.
    #[must_use]
    pub fn rewrite(mut self, pattern: impl Into<String>, address: impl Into<String>) -> Self {
        self.rewrites.add(pattern.into(), address.into());
        self
    }

    /// Makes a connection again that was open and is lost, with its subscriptions, until the peer
    /// gives a reason that will not pass (no access, another protocol, a certificate that does not
    /// fit): only then [`Messenger::next`] tells it. Off by default.
    ///
    /// Messages that were put and not sent are sent then. Those that were sent and have no outcome
    /// are [`Status::Aborted`](crate::Status::Aborted), and an error of [`Messenger::send`]: they
    /// may have arrived. What came and was not taken is dropped, as it comes again unless it was
    /// sent settled; what was taken and has no outcome may come again, and settling it is
    /// [`Error::LinkGone`](crate::Error::LinkGone). A link that the peer detaches stays gone.
    #[must_use]
    pub const fn reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// The messenger. Its connections live in the tokio runtime that this is called in.
    ///
    /// # Panics
    /// Called outside of a tokio runtime.
    pub fn build(self) -> Messenger {
        Messenger::new(self)
    }
}
