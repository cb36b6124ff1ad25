//! The signature of Nagle's algorithm at one end and delayed acknowledgements at the other.
//!
//! A small segment waits for the acknowledgement of the one before, which the peer delays by some
//! 40 ms. Messages made meanwhile share the rest of that wait. So delays of a hop lie between next
//! to nothing and 40 ms, many of them close to it, and hardly any beyond.

use std::ops::Range;

use super::Cause;

/// Messages that fit a segment of Ethernet. Larger ones fill segments, which Nagle never holds.
const SMALL_OCTETS: u64 = 1_400;

/// Where the delays of stalled messages end: the least delay of an acknowledgement is 40 ms, to
/// which a tick of the timer and the way add something.
const PLATEAU_NS: Range<i64> = 33_000_000..50_000_000;

/// A hop that takes longer than this at best has a round trip that explains its delays.
const QUICK_NS: i64 = 5_000_000;

/// How many messages have to lie on the plateau, and one in how many of the hop's.
const LEAST: u64 = 5;
const ONE_IN: u64 = 100;

/// How many times as many have to lie on it as beyond.
const CLIFF: u64 = 5;

/// Delays of small messages over one hop, as far as Nagle's algorithm can be their cause.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Plateau {
    messages: u64,
    on: u64,
    beyond: u64,
    least_ns: Option<i64>,
}

/// What a plateau looks like.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Messages between 33 and 50 ms.
    pub(crate) on: u64,
    /// Small messages of the hop in all.
    pub(crate) messages: u64,
}

impl Plateau {
    pub(crate) fn add(&mut self, cause: Cause, octets: u64, delay_ns: i64) {
        if octets > SMALL_OCTETS {
            return;
        }
        self.messages += 1;
        self.least_ns = Some(self.least_ns.map_or(delay_ns, |least| least.min(delay_ns)));
        if can_be_nagle(cause) {
            self.on += u64::from(PLATEAU_NS.contains(&delay_ns));
            self.beyond += u64::from(delay_ns >= PLATEAU_NS.end);
        }
    }

    pub(crate) fn signature(&self) -> Option<Signature> {
        let Self { messages, on, beyond, least_ns } = *self;
        let quick = least_ns.is_some_and(|ns| ns < QUICK_NS);
        let many = on >= LEAST && on.saturating_mul(ONE_IN) >= messages;
        let cliff = on >= beyond.saturating_mul(CLIFF);
        (quick && many && cliff).then_some(Signature { on, messages })
    }
}

/// Whether nothing shows that the time passed elsewhere than in the sender's kernel.
fn can_be_nagle(cause: Cause) -> bool {
    matches!(cause, Cause::Nagle | Cause::SenderKernel | Cause::SenderKernelOrWire | Cause::Hop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn of(cause: Cause, octets: u64, delays_ms: impl Iterator<Item = i64>) -> Option<Signature> {
        let mut plateau = Plateau::default();
        delays_ms.for_each(|ms| plateau.add(cause, octets, ms * MS));
        plateau.signature()
    }

    /// A message every 10 ms, each fifth starting a stall that the next four share.
    fn stalls() -> impl Iterator<Item = i64> {
        (0..100).map(|n| [41, 31, 21, 11, 1][n % 5])
    }

    #[test]
    fn stalls_of_40_ms_are_seen() {
        assert_eq!(of(Cause::Hop, 100, stalls()), Some(Signature { on: 20, messages: 100 }));
        assert!(of(Cause::SenderKernel, 100, stalls()).is_some());
        let rare = (0..100).map(|n| if n % 20 == 7 { 38 } else { 0 });
        assert!(of(Cause::Hop, 100, rare).is_some(), "5 of 100");
    }

    #[test]
    fn other_shapes_are_not_taken_for_it() {
        let cases: [(&str, Vec<i64>); 5] = [
            ("too few to say", vec![0, 0, 41, 41, 41, 41]),
            ("one in a thousand", (0..1_000).map(|n| if n % 250 == 0 { 41 } else { 1 }).collect()),
            ("no cliff", (0..400).map(|n| n % 200).collect()),
            ("a path of 40 ms", (0..100).map(|n| 40 + n % 3).collect()),
            ("quick", vec![1; 100]),
        ];
        for (name, delays) in cases {
            assert_eq!(of(Cause::Hop, 100, delays.into_iter()), None, "{name}");
        }
    }

    #[test]
    fn full_segments_and_time_that_was_spent_elsewhere_are_no_evidence() {
        assert_eq!(of(Cause::Hop, SMALL_OCTETS + 1, stalls()), None);
        assert_eq!(of(Cause::ReceiverBusy, 100, stalls()), None);
        assert_eq!(of(Cause::Wire, 100, stalls()), None);
    }
}
