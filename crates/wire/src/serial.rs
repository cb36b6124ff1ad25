//! Serial numbers of 32 bits (RFC 1982; part 2, 2.8.10).

use std::cmp::Ordering;

/// A sequence number that wraps: delivery-id, transfer-id, delivery-count.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Serial(pub u32);

impl Serial {
    /// The number `n` steps on.
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }

    /// The number `n` steps back.
    #[must_use]
    pub const fn sub(self, n: u32) -> Self {
        Self(self.0.wrapping_sub(n))
    }

    /// How many steps it takes from `earlier` to here, modulo 2^32.
    pub const fn steps_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The signed distance to `other`: positive if `self` is ahead. At exactly 2^31 the order is
    /// undefined by RFC 1982; the distance is then `i32::MIN`.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl PartialOrd for Serial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.distance(*other) {
            i32::MIN => None,
            d => Some(d.cmp(&0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_both_wraps() {
        for start in [0xffff_fff0_u32, 0x7fff_fff0, 0] {
            let a = Serial(start);
            assert!(a < a.add(32) && a.add(32) > a);
            assert_eq!(a.add(32).distance(a), 32);
            assert_eq!(a.distance(a.add(32)), -32);
            assert_eq!(a.add(32).steps_from(a), 32);
            assert_eq!(a.add(7).sub(7), a);
        }
    }

    #[test]
    fn the_antipode_has_no_order() {
        for start in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let a = Serial(start);
            assert_eq!(a.partial_cmp(&a.add(1 << 31)), None);
            assert!(a < a.add(i32::MAX as u32) && a > a.sub(i32::MAX as u32));
        }
    }
}
