/// Where the simulated users' choices come from: a seed, or the octets of a fuzzer.
pub trait Choices {
    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: usize) -> usize;

    /// Whether there is nothing more to choose from; `below` goes on all the same.
    fn is_exhausted(&self) -> bool {
        false
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.below(of.len())].clone())
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Choices for Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}
