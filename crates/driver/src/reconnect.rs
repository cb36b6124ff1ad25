//! When a connection that was lost is made again.

use std::time::Duration;

/// When a lost connection is made again.
///
/// The pause before an attempt is doubled from one to the next, from `first` to `most`; of it,
/// anything from half to all is waited, so that the clients of a broker that comes back do not come
/// all at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The pause before the first attempt. 100 ms by default.
    pub first: Duration,
    /// The longest pause. 30 s by default.
    pub most: Duration,
    /// How long a connection must have been open for the pauses to begin anew: a peer that closes
    /// right after open gets longer ones. 10 s by default.
    pub stable: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            most: Duration::from_secs(30),
            stable: Duration::from_secs(10),
        }
    }
}

impl Reconnect {
    /// The pause before attempt `number`, counted from 0.
    pub fn pause(&self, number: u32) -> Duration {
        self.pause_by(number, fastrand::f64())
    }

    /// `share` of it, from 0 to 1, is what chance adds to its half.
    fn pause_by(&self, number: u32, share: f64) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(number));
        let whole = doubled.min(self.most);
        whole / 2 + (whole / 2).mul_f64(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_chance_never_exceeds_it() {
        let reconnect = Reconnect {
            first: Duration::from_millis(100),
            most: Duration::from_secs(1),
            ..Reconnect::default()
        };
        let longest = |number| reconnect.pause_by(number, 1.0).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5].map(longest), [100, 200, 400, 800, 1000, 1000]);
        let shortest = |number| reconnect.pause_by(number, 0.0).as_millis();
        assert_eq!([0, 1, 2, 3, 4, 5].map(shortest), [50, 100, 200, 400, 500, 500]);
        assert_eq!(longest(u32::MAX), 1000);
    }

    #[test]
    fn pauses_of_many_clients_differ() {
        let reconnect = Reconnect::default();
        let pauses: std::collections::HashSet<_> = (0..1_000).map(|_| reconnect.pause(3)).collect();
        assert!(pauses.len() > 900, "{}", pauses.len());
    }
}
