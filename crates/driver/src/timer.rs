//! Waits that end on time.

use crate::Clock;
use hopline_timeline::Instant;
use std::io;

/// A timer that is late by some 50 us, as the kernel wakes threads, where the runtime's own timers
/// have a resolution of a millisecond. It needs no core while it waits. (On systems other than
/// Linux it is one of the runtime's.)
#[derive(Debug)]
pub struct Timer {
    #[cfg(target_os = "linux")]
    alarm: crate::kernel::Alarm,
}

impl Timer {
    /// In the runtime that this is called in.
    ///
    /// # Errors
    /// Too many files are open.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(target_os = "linux")]
            alarm: crate::kernel::Alarm::new()?,
        })
    }

    /// Waits until then; lets other tasks run in any case. One wait at a time.
    ///
    /// # Errors
    /// The system can't wait.
    pub async fn until(&self, then: Instant) -> io::Result<()> {
        let left = then.saturating_duration_since(Clock.now());
        if left.is_zero() {
            tokio::task::yield_now().await;
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        return self.alarm.wait(left).await;
        #[cfg(not(target_os = "linux"))]
        return Ok(tokio::time::sleep(left).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_wait_ends_after_its_time_also_behind_one_that_was_dropped() {
        let timer = Timer::new().unwrap();
        for ms in [3, 0, 5] {
            let then = Clock.now().saturating_add(Duration::from_millis(ms));
            timer.until(then).await.unwrap();
            assert!(Clock.now() >= then);
            let far = Clock.now().saturating_add(Duration::from_secs(600));
            let dropped = tokio::time::timeout(Duration::from_millis(1), timer.until(far));
            assert!(dropped.await.is_err());
        }
    }
}
