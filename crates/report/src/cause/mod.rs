//! Why a message was late: causes, and the evidence that each needs.

mod away;
mod judge;
mod judged;
mod larger;
mod late;
mod plateau;

pub(crate) use away::Away;
pub(crate) use judge::{Verdict, judge};
pub(crate) use judged::{Judge, Judged};
pub(crate) use larger::Larger;
pub use late::Late;
pub(crate) use late::threshold_ns;
pub(crate) use plateau::Plateau;

/// Why a leg took as long as it did: the cause of its longest part.
///
/// The discriminant is the code under which the [`Table`](crate::table::Table) of causes keeps it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Cause {
    /// DUE to the origin.
    PublisherLate,
    NoConsumer,
    NoCredit,
    SessionWindow,
    SocketFull,
    Order,
    BehindLarger,
    /// QUEUE_EVENT to NEXT_EVENT.
    ApplicationQueue,
    /// From one stamp of a program to the next, where none says what the message waited for.
    NodeBusy,
    Nagle,
    Cork,
    ReceiveWindow,
    Congestion,
    /// SEND to KERNEL_SCHED, where the kernel gave no reason.
    SenderKernel,
    /// KERNEL_SCHED to KERNEL_RECEIVE.
    Wire,
    /// KERNEL_RECEIVE to RECEIVE.
    ReceiverBusy,
    /// SEND to KERNEL_RECEIVE, without a stamp of the sender's kernel.
    SenderKernelOrWire,
    /// KERNEL_SCHED to RECEIVE, without a stamp of the receiver's kernel.
    WireOrReceiver,
    /// SEND to RECEIVE, without any stamp of a kernel.
    Hop,
    /// SEND to RECEIVE by way of a node that doesn't stamp.
    UnknownNode,
}

impl Cause {
    pub(crate) const ALL: &[Cause] = &[
        Cause::PublisherLate,
        Cause::NoConsumer,
        Cause::NoCredit,
        Cause::SessionWindow,
        Cause::SocketFull,
        Cause::Order,
        Cause::BehindLarger,
        Cause::ApplicationQueue,
        Cause::NodeBusy,
        Cause::Nagle,
        Cause::Cork,
        Cause::ReceiveWindow,
        Cause::Congestion,
        Cause::SenderKernel,
        Cause::Wire,
        Cause::ReceiverBusy,
        Cause::SenderKernelOrWire,
        Cause::WireOrReceiver,
        Cause::Hop,
        Cause::UnknownNode,
    ];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The name in every output.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cause::PublisherLate => "publisher-late",
            Cause::NoConsumer => "no-consumer",
            Cause::NoCredit => "no-credit",
            Cause::SessionWindow => "session-window",
            Cause::SocketFull => "socket-full",
            Cause::Order => "order",
            Cause::BehindLarger => "behind-larger",
            Cause::ApplicationQueue => "application-queue",
            Cause::NodeBusy => "node-busy",
            Cause::Nagle => "nagle",
            Cause::Cork => "cork",
            Cause::ReceiveWindow => "receive-window",
            Cause::Congestion => "congestion",
            Cause::SenderKernel => "sender-kernel",
            Cause::Wire => "wire",
            Cause::ReceiverBusy => "receiver-busy",
            Cause::SenderKernelOrWire => "sender-kernel-or-wire",
            Cause::WireOrReceiver => "wire-or-receiver",
            Cause::Hop => "sender-kernel-wire-or-receiver",
            Cause::UnknownNode => "unknown-node",
        }
    }

    /// What happened, and what helps: one line.
    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Cause::PublisherLate => {
                "made later than its schedule wanted: the publisher is overloaded or blocked"
            }
            Cause::NoConsumer => "no consumer was attached: start one, or let it reconnect sooner",
            Cause::NoCredit => "no consumer had granted credit: grant more, or settle sooner",
            Cause::SessionWindow => "the session's window was closed: let the receiver widen it",
            Cause::SocketFull => {
                "the socket took no more: the peer reads too slowly or the path is too narrow"
            }
            Cause::Order => "a message before it waited: see what that one waited for",
            Cause::BehindLarger => {
                "a larger message was ahead on the connection: send large ones over another"
            }
            Cause::ApplicationQueue => "the application took it late: make it faster or share work",
            Cause::NodeBusy => {
                "the program was busy or descheduled between two stamps: look at its CPU"
            }
            Cause::Nagle => {
                "Nagle's algorithm waited for an acknowledgement: set TCP_NODELAY at the sender"
            }
            Cause::Cork => "the sender's socket was corked: uncork it after each batch",
            Cause::ReceiveWindow => {
                "the receiver's TCP window was closed: it reads too slowly, or its buffer is small"
            }
            Cause::Congestion => {
                "the congestion window was full or paced: the path is too narrow or loses segments"
            }
            Cause::SenderKernel => "the sender's kernel held it back and didn't tell why",
            Cause::Wire => "it was on the wire: the device, the path, or segments sent again",
            Cause::ReceiverBusy => {
                "it lay in the receiver's socket: that process was busy or descheduled"
            }
            Cause::SenderKernelOrWire => {
                "before the receiver's host: stamps of the sender's kernel would tell which"
            }
            Cause::WireOrReceiver => {
                "after the sender's kernel: stamps of the receiver's kernel would tell which"
            }
            Cause::Hop => {
                "held by the sender's kernel, on the wire, or in the receiver's socket: without \
                 kernel timestamps this can't be told"
            }
            Cause::UnknownNode => {
                "in a node that does not stamp, or on the way to it or from it: look at that node"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_code_and_a_name_of_its_own() {
        for cause in Cause::ALL {
            let same =
                |other: &&Cause| other.name() == cause.name() || other.code() == cause.code();
            assert_eq!(Cause::ALL.iter().filter(same).count(), 1);
        }
    }
}
