use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between one look and the next.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// What `look` finds, once it finds something.
///
/// # Panics
/// If it has found nothing after `limit`; `what` says what was waited for.
pub fn wait_until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} in vain for {what}");
        sleep(PAUSE);
    }
}
