//! What each message was found to have waited for, late or not.
//!
//! Which messages were late is known only when all were seen, so every leg of every message is
//! judged, and the delays are kept by cause.

use hopline_timeline::Delay;

use super::{Away, Cause, Larger, judge};
use crate::join::HeldAt;
use crate::names::NameId;
use crate::table::Key;
use crate::way::{Leg, LegKind, Way};

/// The cause of a measured leg.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The leg, as in the table of legs.
    pub(crate) key: Key,
    pub(crate) delay: Delay,
    pub(crate) cause: Cause,
    /// Where the stamp at which the leg's longest part ends stands in the timeline.
    pub(crate) at: usize,
}

impl Judged {
    /// The key of the same leg in the table of causes.
    pub(crate) fn cause_key(&self) -> Key {
        Key { why: Some(self.cause.code()), ..self.key }
    }
}

/// Judges message after message.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    away: Away,
    larger: Larger,
    /// Kept for its memory.
    judged: Vec<Judged>,
}

impl Judge {
    /// The causes of all measured hops and stays and of the send lag; then, from end to end, the
    /// cause of the longest of them. [`give_back`](Self::give_back) the list.
    pub(crate) fn judge(
        &mut self,
        way: &Way<'_>,
        names: &[NameId],
        octets: u64,
        held: &[HeldAt],
    ) -> Vec<Judged> {
        let mut judged = std::mem::take(&mut self.judged);
        judged.clear();
        let mut whole = None;
        way.legs().for_each(|leg| match leg.kind {
            // From DUE, where there is one: it comes second.
            LegKind::EndToEnd => whole = Some(leg),
            _ => judged.extend(self.judge_leg(way, names, &leg, octets, held)),
        });
        let longest = judged.iter().copied().reduce(|longest, next| {
            if next.delay.delay_ns > longest.delay.delay_ns { next } else { longest }
        });
        let end_to_end = longest.zip(whole).and_then(|(longest, whole)| {
            let delay = way.delay(&whole).ok()?;
            Some(Judged { key: Key::of(names, &whole), delay, ..longest })
        });
        judged.extend(end_to_end);
        judged
    }

    /// Takes a list back, so that its memory is used again.
    pub(crate) fn give_back(&mut self, judged: Vec<Judged>) {
        self.judged = judged;
    }

    fn judge_leg(
        &mut self,
        way: &Way<'_>,
        names: &[NameId],
        leg: &Leg<'_>,
        octets: u64,
        held: &[HeldAt],
    ) -> Option<Judged> {
        let verdict = judge(way, leg, held)?;
        let delay = way.delay(leg).ok()?;
        let key = Key::of(names, leg);
        let timeline = way.timeline();
        let verdict = match leg.kind {
            LegKind::Hop => self.away.judge(&key, way, leg, verdict),
            _ => verdict,
        };
        let verdict = self.larger.judge(&key, timeline, leg, octets, verdict);
        self.larger.note(key, timeline, leg, octets);
        Some(Judged { key, delay, cause: verdict.cause, at: way.index(verdict.to)? })
    }
}
