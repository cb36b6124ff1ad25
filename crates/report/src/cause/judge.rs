//! Finds the longest part of a leg, and what it says.

use hopline_timeline::record::Held;
use hopline_timeline::{Stage, Stamp, Timeline, Wait};

use super::Cause;
use crate::join::{HeldAt, is_upper_bound};
use crate::way::{Leg, LegKind, Way, is_of_program, tells_wait};

/// The cause of a leg, and the part that shows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict<'a> {
    pub(crate) cause: Cause,
    /// Where the longest part begins.
    pub(crate) from: &'a Stamp,
    /// Where it ends: the stamp that names the cause.
    pub(crate) to: &'a Stamp,
}

/// The cause of a hop, a gap, a stay or a send lag; `None` for other legs.
///
/// It is that of the longest part of the leg, and doesn't depend on whether the leg is late.
///
/// `held` says why the sender's kernel held octets back, as far as it was asked.
pub(crate) fn judge<'a>(way: &Way<'a>, leg: &Leg<'a>, held: &[HeldAt]) -> Option<Verdict<'a>> {
    let Leg { kind, from, to } = *leg;
    match kind {
        LegKind::SendLag => Some(Verdict { cause: Cause::PublisherLate, from, to }),
        LegKind::Stay => Some(stay(way, leg)),
        LegKind::Hop => {
            let verdict = hop(way, leg);
            let sent = way.index(from);
            let reason = held.iter().find(|(at, _)| Some(*at) == sent).map(|(_, held)| *held);
            let cause = reason.map_or(verdict.cause, |held| cause_of_held(verdict.cause, held));
            Some(Verdict { cause, ..verdict })
        }
        LegKind::Gap => Some(gap(way, leg)),
        LegKind::EndToEnd | LegKind::Part | LegKind::Stage | LegKind::Wait => None,
    }
}

/// Parts of a stay lie between the stamps of the program.
fn stay<'a>(way: &Way<'a>, leg: &Leg<'a>) -> Verdict<'a> {
    let stamps = way.between(leg).iter();
    let inside = stamps.filter(|stamp| stamp.at.is_some() && is_of_program(stamp));
    let (from, to) = longest(way.timeline(), inside).unwrap_or((leg.from, leg.to));
    Verdict { cause: cause_of_stage(from, to), from, to }
}

fn cause_of_stage(from: &Stamp, to: &Stamp) -> Cause {
    if tells_wait(to) {
        return match Wait::from_code(to.detail) {
            Some(Wait::NoConsumer) => Cause::NoConsumer,
            Some(Wait::NoCredit) => Cause::NoCredit,
            Some(Wait::SessionWindow) => Cause::SessionWindow,
            Some(Wait::SocketFull) => Cause::SocketFull,
            Some(Wait::Order) => Cause::Order,
            Some(Wait::None) | None => Cause::NodeBusy,
        };
    }
    match (from.known_stage(), to.known_stage()) {
        (Some(Stage::QueueEvent), Some(Stage::NextEvent)) => Cause::ApplicationQueue,
        _ => Cause::NodeBusy,
    }
}

/// What was held back right after the write explains the time until the message left.
fn cause_of_held(cause: Cause, held: Held) -> Cause {
    match (cause, held) {
        (Cause::SenderKernel | Cause::SenderKernelOrWire | Cause::Hop, held) => match held {
            Held::Nagle => Cause::Nagle,
            Held::Cork => Cause::Cork,
            Held::ReceiveWindow => Cause::ReceiveWindow,
            Held::Congestion => Cause::Congestion,
            Held::Unknown => Cause::SenderKernel,
        },
        (elsewhere, _) => elsewhere,
    }
}

/// Parts of a hop lie between SEND, the kernels' stamps as far as there are any, and RECEIVE.
fn hop<'a>(way: &Way<'a>, leg: &Leg<'a>) -> Verdict<'a> {
    let stamps = way.between(leg);
    let find = |stage: Stage| {
        let is_it = |stamp: &&Stamp| stamp.known_stage() == Some(stage) && stamp.at.is_some();
        stamps.iter().find(is_it)
    };
    // An upper bound beyond the arrival tells nothing.
    let before_end =
        |stamp: &&Stamp| way.timeline().delay(stamp, leg.to).is_ok_and(|delay| delay.delay_ns >= 0);
    let left = find(Stage::KernelSched).or_else(|| find(Stage::KernelSend)).filter(before_end);
    // What shares a read with later octets may have arrived long before that stamp.
    let arrived = find(Stage::KernelReceive).filter(|stamp| !is_upper_bound(stamp));
    let parts = std::iter::once(leg.from).chain(left).chain(arrived).chain([leg.to]);
    let (from, to) = longest(way.timeline(), parts).unwrap_or((leg.from, leg.to));
    let is = |stamp: &Stamp, of: Option<&Stamp>| of.is_some_and(|of| std::ptr::eq(stamp, of));
    let cause = match (is(from, left), is(from, arrived)) {
        (false, false) if is(to, left) => Cause::SenderKernel,
        (false, false) if is(to, arrived) => Cause::SenderKernelOrWire,
        (false, false) => Cause::Hop,
        (true, _) if is(to, arrived) => Cause::Wire,
        (true, _) => Cause::WireOrReceiver,
        (_, true) => Cause::ReceiverBusy,
    };
    Verdict { cause, from, to }
}

/// What the kernels at both ends of a gap have not seen may have been anywhere between them.
fn gap<'a>(way: &Way<'a>, leg: &Leg<'a>) -> Verdict<'a> {
    let verdict = hop(way, leg);
    let cause = match verdict.cause {
        Cause::SenderKernel | Cause::ReceiverBusy => verdict.cause,
        _ => Cause::UnknownNode,
    };
    Verdict { cause, ..verdict }
}

/// The pair of neighbours furthest apart in time; the earliest of equals.
fn longest<'a>(
    timeline: &Timeline,
    stamps: impl Iterator<Item = &'a Stamp>,
) -> Option<(&'a Stamp, &'a Stamp)> {
    let mut last = None;
    let pairs = stamps.filter_map(|to| {
        let from = last.replace(to)?;
        let delay = timeline.delay(from, to).ok()?;
        Some((delay.delay_ns, from, to))
    });
    let longest = pairs.reduce(|best, next| if next.0 > best.0 { next } else { best });
    longest.map(|(_, from, to)| (from, to))
}
