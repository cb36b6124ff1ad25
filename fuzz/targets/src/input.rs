use crate::engine_support::Choices;

/// The fuzzer's octets as choices: an octet for each, two where more than 256 are possible.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The next octet; 0 at the end.
    pub(crate) fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Up to so many octets.
    pub(crate) fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Choices for Input<'_> {
    /// The middle at the end: neither of the edges, which are rare choices as a rule.
    fn below(&mut self, n: usize) -> usize {
        if self.0.is_empty() {
            return n / 2;
        }
        let high = if n > 256 { usize::from(self.octet()) << 8 } else { 0 };
        (high + usize::from(self.octet())) % n
    }

    fn is_exhausted(&self) -> bool {
        self.0.is_empty()
    }
}
