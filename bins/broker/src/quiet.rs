//! A log that no peer can fill: of each kind of line, so many in a second.

use hopline_broker::Clock;
use hopline_timeline::Instant;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Lines of a kind in a second: those that one place in the program writes.
const LINES: u32 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// How often it is told how many were left out.
pub(crate) const TELL: Duration = Duration::from_secs(10);

/// Leaves out what comes too often. Lines of `debug` and `trace` are there because somebody asks
/// for them: they are not counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quiet(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Of each kind, when the second began, and how many lines it has had.
    seconds: HashMap<Identifier, (Instant, u32)>,
    left_out: u64,
}

impl Quiet {
    fn admits(&self, kind: Identifier, now: Instant) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match state.seconds.entry(kind) {
            Entry::Vacant(new) => new.insert((now, 0)),
            Entry::Occupied(known) => known.into_mut(),
        };
        if now.saturating_duration_since(count.0) >= SECOND {
            *count = (now, 0);
        }
        count.1 = count.1.saturating_add(1);
        let is_admitted = count.1 <= LINES;
        state.left_out += u64::from(!is_admitted);
        is_admitted
    }

    /// Tells how many lines were left out since the last time, if any were.
    pub(crate) fn tell(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut state.left_out);
        drop(state);
        if lines > 0 {
            tracing::warn!(lines, "lines were left out here: more than {LINES} of a kind a second");
        }
    }
}

impl<S: Subscriber> Filter<S> for Quiet {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        *metadata.level() > Level::INFO || self.admits(metadata.callsite(), Clock.now())
    }
}
