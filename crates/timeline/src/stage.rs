use crate::node::{MAX_NAME_OCTETS, Node};
use crate::scan::last_node;
use std::borrow::Cow;

/// The point of a message's way at which a stamp is taken.
///
/// The discriminant is the stage's code in a timeline (0x01 to 0x7f). Codes that are not listed
/// here are kept by every reader and shown as `#` and the number.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
#[repr(u8)]
pub enum Stage {
    /// Publisher: when the schedule wanted the message sent (open loop only).
    Due = 1,
    /// Application: the message was made.
    Create = 2,
    /// Messenger: the message was handed over (`put`).
    Publish = 3,
    /// The sections are encoded and the transfer is in the outbox.
    Serialize = 4,
    /// Just before the write call that takes the stamp's own octets: filled in late.
    Send = 5,
    /// The read call that held the delivery's last octet returned.
    Receive = 6,
    /// Decoded, as far as this node decodes.
    Deserialize = 7,
    /// Broker: put on a queue.
    Enqueue = 8,
    /// Broker: taken from the queue for a consumer; the detail is a [`Wait`].
    Dequeue = 9,
    /// Broker: handed to the outgoing link.
    Republish = 10,
    /// Subscriber: queued for the application.
    QueueEvent = 11,
    /// Subscriber: taken by the application.
    NextEvent = 12,
    /// Kernel: given to the device queue.
    KernelSched = 13,
    /// Kernel: handed to the device.
    KernelSend = 14,
    /// Kernel: acknowledged by the peer's TCP.
    KernelAck = 15,
    /// Kernel: arrived at the socket.
    KernelReceive = 16,
    /// A broker of another make: its own stamp of the message's arrival.
    ForeignIngress = 32,
    /// A broker or client of another make: its own stamp of the message's departure.
    ForeignSent = 33,
}

impl Stage {
    /// Every stage, in the order of their codes.
    pub const ALL: &[Stage] = &[
        Stage::Due,
        Stage::Create,
        Stage::Publish,
        Stage::Serialize,
        Stage::Send,
        Stage::Receive,
        Stage::Deserialize,
        Stage::Enqueue,
        Stage::Dequeue,
        Stage::Republish,
        Stage::QueueEvent,
        Stage::NextEvent,
        Stage::KernelSched,
        Stage::KernelSend,
        Stage::KernelAck,
        Stage::KernelReceive,
        Stage::ForeignIngress,
        Stage::ForeignSent,
    ];

    /// The stage's octet in a timeline.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The stage of a code; `None` for one that this version does not know.
    pub fn from_code(code: u8) -> Option<Stage> {
        Self::ALL.iter().copied().find(|stage| stage.code() == code)
    }

    /// The name in reports and records, such as `QUEUE_EVENT`.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Due => "DUE",
            Stage::Create => "CREATE",
            Stage::Publish => "PUBLISH",
            Stage::Serialize => "SERIALIZE",
            Stage::Send => "SEND",
            Stage::Receive => "RECEIVE",
            Stage::Deserialize => "DESERIALIZE",
            Stage::Enqueue => "ENQUEUE",
            Stage::Dequeue => "DEQUEUE",
            Stage::Republish => "REPUBLISH",
            Stage::QueueEvent => "QUEUE_EVENT",
            Stage::NextEvent => "NEXT_EVENT",
            Stage::KernelSched => "KERNEL_SCHED",
            Stage::KernelSend => "KERNEL_SEND",
            Stage::KernelAck => "KERNEL_ACK",
            Stage::KernelReceive => "KERNEL_RECEIVE",
            Stage::ForeignIngress => "FOREIGN_INGRESS",
            Stage::ForeignSent => "FOREIGN_SENT",
        }
    }

    /// The stage of a [`name`](Self::name), spelled exactly so.
    pub fn from_name(name: &str) -> Option<Stage> {
        Self::ALL.iter().copied().find(|stage| stage.name() == name)
    }

    /// The name of any code: that of its stage, or `#77` where no stage has code 77.
    pub fn name_of(code: u8) -> Cow<'static, str> {
        match Self::from_code(code) {
            Some(stage) => Cow::Borrowed(stage.name()),
            None => Cow::Owned(format!("#{code}")),
        }
    }

    /// The code of any name that [`name_of`](Self::name_of) gives.
    pub fn code_of(name: &str) -> Option<u8> {
        match name.strip_prefix('#') {
            Some(number) => number.parse().ok(),
            None => Self::from_name(name).map(Stage::code),
        }
    }
}

/// The detail octet of a [`Stage::Receive`] stamp: the peer that the message came from is not the
/// node that stamped last, so that it came by way of a node which does not stamp.
pub const UNSTAMPED_PEER: u8 = 1;

/// In the detail octet of a stamp by a kernel ([`Stage::KernelReceive`], and those of side records
/// when they are joined): the message had passed at this instant or before.
pub const UPPER_BOUND: u8 = 1;

/// The detail octet for the [`Stage::Receive`] stamp of a message that came from the container
/// `peer` and carries the timeline `octets`: [`UNSTAMPED_PEER`], or 0 if the peer is the node that
/// stamped last, or none has.
///
/// A container is a node if its id is the node's name, or that and something behind a `-`, as
/// messengers have it. Names that were cut are compared as far as they go.
pub fn receive_detail(octets: &[u8], peer: &str) -> u8 {
    let last = last_node(octets).and_then(|content| Node::parse(content, 0).ok());
    let Some(Node { name, .. }) = last else { return 0 };
    let is_whole = name.len() + char::MAX.len_utf8() <= MAX_NAME_OCTETS;
    match peer.strip_prefix(name.as_str()) {
        Some(rest) if rest.is_empty() || rest.starts_with('-') || !is_whole => 0,
        _ => UNSTAMPED_PEER,
    }
}

/// What a message waited for: the detail octet of a [`Stage::Dequeue`] or [`Stage::Send`] stamp.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
#[repr(u8)]
pub enum Wait {
    /// It left in the wake-up that brought it, or nothing is known.
    #[default]
    None = 0,
    /// No consumer was attached.
    NoConsumer = 1,
    /// No consumer had link credit.
    NoCredit = 2,
    /// The session's remote incoming window was closed.
    SessionWindow = 3,
    /// The connection's outbox was full: the peer or the path took octets too slowly.
    SocketFull = 4,
    /// A message before it, which has to leave first, waited.
    Order = 5,
}

impl Wait {
    /// Every reason, in the order of their codes.
    pub const ALL: &[Wait] = &[
        Wait::None,
        Wait::NoConsumer,
        Wait::NoCredit,
        Wait::SessionWindow,
        Wait::SocketFull,
        Wait::Order,
    ];

    /// The detail octet.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reason of a detail octet; `None` for one that this version does not know.
    pub fn from_code(code: u8) -> Option<Wait> {
        Self::ALL.iter().copied().find(|wait| wait.code() == code)
    }

    /// The name in reports and records, such as `no-credit`.
    pub fn name(self) -> &'static str {
        match self {
            Wait::None => "none",
            Wait::NoConsumer => "no-consumer",
            Wait::NoCredit => "no-credit",
            Wait::SessionWindow => "session-window",
            Wait::SocketFull => "socket-full",
            Wait::Order => "order",
        }
    }

    /// The reason of a [`name`](Self::name), spelled exactly so.
    pub fn from_name(name: &str) -> Option<Wait> {
        Self::ALL.iter().copied().find(|wait| wait.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_lead_back() {
        for (index, &stage) in Stage::ALL.iter().enumerate() {
            assert_eq!(Stage::from_code(stage.code()), Some(stage));
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
            assert!((0x01..=0x7f).contains(&stage.code()));
            assert!(Stage::ALL[..index].iter().all(|earlier| *earlier < stage));
        }
        for &wait in Wait::ALL {
            assert_eq!(Wait::from_code(wait.code()), Some(wait));
            assert_eq!(Wait::from_name(wait.name()), Some(wait));
        }
    }

    #[test]
    fn every_code_has_a_name_that_leads_back() {
        for code in 0..=u8::MAX {
            assert_eq!(Stage::code_of(&Stage::name_of(code)), Some(code));
        }
        assert_eq!(Stage::name_of(77), "#77");
        assert_eq!(Stage::name_of(9), "DEQUEUE");
        for not_a_name in ["", "#", "#256", "#-1", "dequeue", "DEQUEUE "] {
            assert_eq!(Stage::code_of(not_a_name), None, "{not_a_name:?}");
        }
    }

    #[test]
    fn unknown_codes_are_told_apart() {
        assert_eq!(Stage::from_code(0), None);
        assert_eq!(Stage::from_code(0x7f), None);
        assert_eq!(Wait::from_code(6), None);
    }

    #[test]
    fn a_peer_is_known_by_the_name_of_the_node_that_stamped_last() {
        let timeline = |name: &str| {
            let mut octets = Vec::new();
            crate::new_timeline(crate::TimelineId::default(), &mut octets);
            let node = Node::new(name, crate::ClockDomain::default()).record();
            crate::Appender::new(&mut octets, 0).unwrap().node(&node);
            octets
        };
        let long = "n".repeat(70);
        for peer in ["b", "b-0af7"] {
            assert_eq!(receive_detail(&timeline("b"), peer), 0, "{peer}");
        }
        for peer in ["", "c", "broker"] {
            assert_eq!(receive_detail(&timeline("b"), peer), UNSTAMPED_PEER, "{peer}");
        }
        assert_eq!(receive_detail(&timeline(&long), &long), 0, "its name was cut");
        assert_eq!(receive_detail(&[], "b"), 0, "nobody has stamped");
    }
}
