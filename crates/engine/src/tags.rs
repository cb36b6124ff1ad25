//! Which delivery-tags of a link are taken (part 2, 2.6.12), at no cost while they count up.

use foldhash::fast::RandomState;
use hopline_wire::DeliveryTag;
use std::collections::HashSet;

/// The tags of deliveries that came on a link and are not settled.
///
/// Most senders count their deliveries, and say the number by the tag. A tag that is above all
/// before it, read as a number from its first octet on or from its last, is new without a look at
/// any other. From the first one on where that doesn't tell, they are kept.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    /// How many are taken.
    len: usize,
    /// Above all so far, the first octet being the most significant.
    above_big: u128,
    /// Likewise, the last octet being the most significant.
    above_little: u128,
    kept: Option<HashSet<DeliveryTag, RandomState>>,
}

impl Tags {
    /// Takes a tag. `false`: it is taken already. `newest_first` are those that are taken, or more,
    /// beginning with the newest; it is asked for once, for as many as there are.
    pub(crate) fn insert<I: Iterator<Item = DeliveryTag>>(
        &mut self,
        tag: DeliveryTag,
        newest_first: impl FnOnce() -> I,
    ) -> bool {
        if self.kept.is_none() && self.counts_up(&tag) {
            self.len += 1;
            return true;
        }
        let taken = self.len;
        let kept = self.kept.get_or_insert_with(|| newest_first().take(taken).collect());
        let is_new = kept.insert(tag);
        self.len += usize::from(is_new);
        is_new
    }

    /// A tag may be taken again.
    pub(crate) fn remove(&mut self, tag: &DeliveryTag) {
        self.len = self.len.saturating_sub(1);
        if let Some(kept) = &mut self.kept {
            kept.remove(tag);
        }
    }

    fn counts_up(&mut self, tag: &DeliveryTag) -> bool {
        let Some((big, little)) = numbers(tag) else { return false };
        if big < self.above_big && little < self.above_little {
            return false;
        }
        self.above_big = self.above_big.max(big + 1);
        self.above_little = self.above_little.max(little + 1);
        true
    }
}

/// A tag of at most eight octets as a number, read from either end. Different tags may have the
/// same number; one tag always has the same.
fn numbers(tag: &DeliveryTag) -> Option<(u128, u128)> {
    let mut octets = [0; 8];
    octets.get_mut(..tag.as_slice().len())?.copy_from_slice(tag.as_slice());
    let little = u64::from_le_bytes(octets);
    let unused = 8 * (8 - tag.as_slice().len() as u32);
    let big = u64::from_be_bytes(octets).checked_shr(unused).unwrap_or(0);
    Some((big.into(), little.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tag(octets: &[u8]) -> DeliveryTag {
        DeliveryTag::new(octets).unwrap()
    }

    #[test]
    fn numbers_from_either_end_are_not_kept() {
        let decimal = |n: u64| tag(n.to_string().as_bytes());
        let ways: [&dyn Fn(u64) -> DeliveryTag; 5] = [
            &|n| tag(&n.to_be_bytes()),
            &|n| tag(&n.to_le_bytes()),
            &|n| tag(&(n as u32).to_le_bytes()),
            &|n| tag(n.to_be_bytes().strip_prefix(&[0; 5]).unwrap()),
            &decimal,
        ];
        for way in ways {
            let mut tags = Tags::default();
            for n in 0..70_000 {
                assert!(tags.insert(way(n), || -> std::iter::Empty<_> { panic!("{n} is new") }));
                if n % 3 > 0 {
                    tags.remove(&way(n));
                }
            }
        }
    }

    fn octets() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3_u8, 0..10)
    }

    proptest! {
        #[test]
        fn one_is_refused_exactly_while_it_is_taken(
            choices in prop::collection::vec((any::<bool>(), octets()), 0..200)
        ) {
            let (mut tags, mut taken) = (Tags::default(), Vec::new());
            for (removes, octets) in choices {
                let tag = tag(&octets);
                let at = taken.iter().position(|other| *other == tag);
                match (removes, at) {
                    (true, Some(at)) => tags.remove(&taken.remove(at)),
                    (true, None) => {}
                    (false, at) => {
                        let is_new = tags.insert(tag, || taken.clone().into_iter().rev());
                        prop_assert_eq!(is_new, at.is_none());
                        taken.extend(is_new.then_some(tag));
                    }
                }
            }
        }
    }
}
