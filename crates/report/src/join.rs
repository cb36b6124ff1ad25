//! Joins what senders' kernels told to the messages that it is about.

use std::collections::HashMap;

use hopline_timeline::record::{Held, KernelRecord, KernelStamp};
use hopline_timeline::{Instant, Stage, Stamp, Timeline, TimelineId, UPPER_BOUND};

use crate::names::NameId;

/// How many records of kernels are kept for messages to come. Takes about 150 MiB when full.
pub const KERNEL_LIMIT: usize = 1 << 20;

/// In the detail octet of a joined stamp: the octets were sent again later.
pub(crate) const RETRANSMITTED: u8 = 2;

/// A SEND stamp: of which timeline, by whom, and when.
type Sent = (TimelineId, NameId, Instant);

/// Records of kernels by the SEND stamps that they belong to.
#[derive(Debug, Default)]
pub(crate) struct Side {
    records: HashMap<Sent, Told>,
    used: u64,
    unusable: u64,
}

/// What a kernel told about one message.
#[derive(Debug)]
struct Told {
    held: Option<Held>,
    stamps: Box<[KernelStamp]>,
    used: bool,
}

/// Why octets were held back after a SEND stamp, by the stamp's place in the timeline.
pub(crate) type HeldAt = (usize, Held);

impl Side {
    /// Keeps a record. What names no SEND stamp, comes twice, or finds no room is unusable.
    pub(crate) fn add(&mut self, node: NameId, record: KernelRecord) {
        let room = self.records.len() < KERNEL_LIMIT;
        let sent = record.send.map(|at| (TimelineId(record.id), node, at));
        match sent {
            Some(sent) if room && !self.records.contains_key(&sent) => {
                let of_sender = |stamp: &KernelStamp| stamp.at.is_some() && is_of_sender(stamp);
                let mut stamps: Vec<_> = record.stamps.into_iter().filter(of_sender).collect();
                stamps.sort_by_key(|stamp| stamp.stage);
                stamps.dedup_by_key(|stamp| stamp.stage);
                let told = Told { held: record.held, stamps: stamps.into(), used: false };
                self.records.insert(sent, told);
            }
            _ => self.unusable += 1,
        }
    }

    /// Puts the kernels' stamps behind the SEND stamps that they belong to.
    pub(crate) fn join(&mut self, timeline: &mut Timeline, names: &[NameId]) -> Vec<HeldAt> {
        let mut held = Vec::new();
        if self.records.is_empty() {
            return held;
        }
        let mut joined = Vec::with_capacity(timeline.stamps.len());
        for stamp in std::mem::take(&mut timeline.stamps) {
            joined.push(stamp);
            let sent = (stamp.stage == Stage::Send.code()).then_some(stamp.at).flatten();
            let name = names.get(stamp.node).copied();
            let sent = name.zip(sent).map(|(name, at)| (timeline.id, name, at));
            if let Some(told) = sent.and_then(|sent| self.records.get_mut(&sent)) {
                self.used += u64::from(!std::mem::replace(&mut told.used, true));
                held.extend(told.held.map(|held| (joined.len() - 1, held)));
                joined.extend(told.stamps.iter().map(|kernel| stamp_of(stamp.node, kernel)));
            }
        }
        timeline.stamps = joined;
        held
    }

    /// Records that belong to no message that came after them.
    pub(crate) fn unused(&self) -> u64 {
        self.unusable + self.records.len() as u64 - self.used
    }
}

fn is_of_sender(stamp: &KernelStamp) -> bool {
    matches!(
        Stage::from_code(stamp.stage),
        Some(Stage::KernelSched | Stage::KernelSend | Stage::KernelAck)
    )
}

fn stamp_of(node: usize, kernel: &KernelStamp) -> Stamp {
    let bound = if kernel.upper_bound { UPPER_BOUND } else { 0 };
    let again = if kernel.retransmitted { RETRANSMITTED } else { 0 };
    Stamp { node, stage: kernel.stage, detail: bound | again, at: kernel.at }
}

/// Whether the stamp is a kernel's and only says by when the message had passed.
pub(crate) fn is_upper_bound(stamp: &Stamp) -> bool {
    let is_receivers = stamp.known_stage() == Some(Stage::KernelReceive);
    (is_of_kernel(stamp) || is_receivers) && stamp.detail & UPPER_BOUND != 0
}

/// Whether the stamp is the sender's kernel's, and the octets were sent again later.
pub(crate) fn is_retransmitted(stamp: &Stamp) -> bool {
    is_of_kernel(stamp) && stamp.detail & RETRANSMITTED != 0
}

/// Whether the stamp is the sender's kernel's.
pub(crate) fn is_of_kernel(stamp: &Stamp) -> bool {
    matches!(stamp.known_stage(), Some(Stage::KernelSched | Stage::KernelSend | Stage::KernelAck))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    fn record(id: u8, sent: Option<i64>, stages: &[Stage]) -> KernelRecord {
        let stamp = |stage: &Stage| KernelStamp {
            stage: stage.code(),
            at: Some(Instant::from_nanos(sent.unwrap_or(0) + 1)),
            upper_bound: true,
            retransmitted: false,
        };
        KernelRecord {
            id: [id; 16],
            send: sent.map(Instant::from_nanos),
            held: Some(Held::Nagle),
            stamps: stages.iter().map(stamp).collect(),
            ..KernelRecord::default()
        }
    }

    fn sent(id: u8, at: i64) -> Timeline {
        let at = Some(Instant::from_nanos(at));
        let stamps = vec![Stamp { node: 0, stage: Stage::Send.code(), detail: 0, at }];
        Timeline { id: TimelineId([id; 16]), stamps, ..Timeline::default() }
    }

    #[test]
    fn stamps_stand_behind_their_send_in_the_order_of_their_stages() {
        let node = Names::default().id("pub");
        let mut side = Side::default();
        let stages = [Stage::KernelAck, Stage::KernelSched, Stage::Create, Stage::KernelSched];
        side.add(node, record(1, Some(5), &stages));
        let mut timeline = sent(1, 5);
        assert_eq!(side.join(&mut timeline, &[node]), [(0, Held::Nagle)]);
        let got: Vec<_> = timeline.stamps.iter().map(|stamp| stamp.known_stage()).collect();
        assert_eq!(got, [Stage::Send, Stage::KernelSched, Stage::KernelAck].map(Some));
        assert!(is_upper_bound(&timeline.stamps[1]));
        assert_eq!(side.unused(), 0);
    }

    #[test]
    fn another_run_another_node_and_doubled_records_are_not_used() {
        let mut names = Names::default();
        let (node, other) = (names.id("pub"), names.id("other"));
        let mut side = Side::default();
        side.add(node, record(1, Some(5), &[]));
        side.add(node, record(1, Some(5), &[]));
        side.add(node, record(1, Some(6), &[]));
        side.add(other, record(1, Some(5), &[]));
        side.add(node, record(2, Some(5), &[]));
        side.add(node, record(1, None, &[]));
        for _ in 0..2 {
            let mut copy = sent(1, 5);
            assert_eq!(side.join(&mut copy, &[node]).len(), 1, "a copy for each subscriber");
        }
        assert_eq!(side.unused(), 5);
    }
}
