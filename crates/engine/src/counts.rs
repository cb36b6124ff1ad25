use hopline_timeline::Instant;

/// Frames of a connection so far, of the kinds that messages cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Transfers that came.
    pub transfers_in: u64,
    /// Transfers put into the outbox.
    pub transfers_out: u64,
    /// Flows that came.
    pub flows_in: u64,
    /// Flows put into the outbox.
    pub flows_out: u64,
    /// Dispositions that came.
    pub dispositions_in: u64,
    /// Dispositions put into the outbox.
    pub dispositions_out: u64,
}

/// For how long peers kept us from sending, whether there was something to send or not.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Links had used up their credit until more came; the sum over all links on which we send, ns.
    pub no_credit_ns: u64,
    /// Sessions had used up the peer's incoming window; the sum over all sessions, ns.
    pub no_window_ns: u64,
}

/// A gate that a peer shuts and opens: for how long it was shut.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Gate {
    total_ns: u64,
    since: Option<Instant>,
}

impl Gate {
    pub(crate) fn shut(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// The peer has said how it is.
    pub(crate) fn set(&mut self, is_open: bool, now: Instant) {
        if is_open {
            self.total_ns = self.shut_ns(now);
            self.since = None;
        } else {
            self.shut(now);
        }
    }

    pub(crate) fn shut_ns(&self, now: Instant) -> u64 {
        let since = self.since.map_or(0, |since| now.since_ns(since));
        self.total_ns.saturating_add(u64::try_from(since).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_counts_from_the_first_shutting_to_the_opening() {
        let at = Instant::from_nanos;
        let mut gate = Gate::default();
        gate.set(true, at(5));
        assert_eq!(gate.shut_ns(at(9)), 0);
        gate.shut(at(10));
        gate.set(false, at(20));
        assert_eq!(gate.shut_ns(at(25)), 15);
        gate.set(true, at(30));
        gate.shut(at(100));
        assert_eq!(gate.shut_ns(at(101)), 21);
        assert_eq!(gate.shut_ns(at(0)), 20, "never less than was counted");
    }
}
