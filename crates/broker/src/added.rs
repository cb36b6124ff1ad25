//! Annotations that a message is given here: by `modified` outcomes, and as a dead letter.

use hopline_driver::engine::wire::codec::Encode;
use hopline_driver::engine::wire::{Fields, Symbol};

/// How many a message keeps, and octets of their keys and values together: one frame may give them
/// to all messages that a consumer holds. The newest stay, but for those that are too long alone.
const COUNT_MAX: usize = 32;
const OCTETS_MAX: usize = 4096;

/// Keys, and values as they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added(Vec<(Symbol, Box<[u8]>)>);

impl Added {
    /// Merges others into these, whose values win.
    pub(crate) fn merge(&mut self, fields: Fields) {
        // No more than can stay are looked through for each that is there.
        let too_many = fields.0.len().saturating_sub(COUNT_MAX);
        for (key, value) in fields.0.into_iter().skip(too_many) {
            self.0.retain(|(other, _)| *other != key);
            let mut octets = Vec::new();
            value.encode(&mut octets);
            if key.as_str().len() + octets.len() <= OCTETS_MAX {
                self.0.push((key, octets.into()));
            }
        }
        let mut room = OCTETS_MAX;
        let fits = |(key, value): &&(Symbol, Box<[u8]>)| {
            let left = room.checked_sub(key.as_str().len() + value.len());
            room = left.unwrap_or(0);
            left.is_some()
        };
        let kept = self.0.iter().rev().take(COUNT_MAX).take_while(fits).count();
        self.0.drain(..self.0.len() - kept);
    }

    /// Whether one has this name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|(key, _)| key.as_str().as_bytes() == name)
    }

    /// Appends keys and values; returns how many pairs.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> usize {
        for (key, value) in &self.0 {
            key.encode(out);
            out.extend_from_slice(value);
        }
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_driver::engine::wire::Value;

    fn fields(prefix: &str, count: usize, octets: usize) -> Fields {
        let value = || Value::from("v".repeat(octets).as_str());
        Fields((0..count).map(|n| (Symbol::from(format!("{prefix}{n}")), value())).collect())
    }

    #[test]
    fn the_newest_stay_within_count_and_octets() {
        let mut added = Added::default();
        added.merge(fields("a", COUNT_MAX, 10));
        assert_eq!(added.0.len(), COUNT_MAX);
        added.merge(fields("b", 2, 10));
        assert_eq!(added.0.len(), COUNT_MAX);
        assert!(!added.has(b"a0") && !added.has(b"a1") && added.has(b"a2") && added.has(b"b1"));
        // One that is there already takes its own place.
        added.merge(fields("b", 1, 20));
        assert!(added.0.len() == COUNT_MAX && added.has(b"a2"));
        added.merge(fields("c", 10_000, 1));
        assert!(added.0.len() == COUNT_MAX && added.has(b"c9999"));
        added.merge(fields("d", 1, 4000));
        assert!(added.0.len() < 20 && added.has(b"d0"));
        added.merge(fields("e", 1, 5000));
        assert!(added.has(b"d0") && !added.has(b"e0"), "too long alone");
    }
}
