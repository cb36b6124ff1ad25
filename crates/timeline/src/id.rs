use std::fmt;
use std::str::FromStr;

use crate::{TimelineError, is_timeline};

/// What tells one message's timeline from another's: 16 octets, often a W3C trace id.
///
/// Shown and read as 32 hexadecimal digits.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct TimelineId(pub [u8; 16]);

impl TimelineId {
    /// The id of the timeline that these octets begin with; `None` if they begin with none.
    pub fn of(octets: &[u8]) -> Option<TimelineId> {
        let id = octets.get(4..20).filter(|_| is_timeline(octets))?;
        id.try_into().ok().map(TimelineId)
    }
}

impl fmt::Display for TimelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for TimelineId {
    type Err = TimelineError;

    /// Reads 32 hexadecimal digits, in either case.
    fn from_str(text: &str) -> Result<Self, TimelineError> {
        parse_hex(text).map(TimelineId).ok_or(TimelineError::Hex)
    }
}

/// The 16 octets that 32 hexadecimal digits stand for.
pub(crate) fn parse_hex(text: &str) -> Option<[u8; 16]> {
    let digit =
        |octet: u8| char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let pairs: &[[u8; 2]; 16] = pairs.try_into().ok()?;
    let mut octets = [0; 16];
    for (octet, [high, low]) in octets.iter_mut().zip(pairs) {
        *octet = digit(*high)? << 4 | digit(*low)?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_parse_are_each_others_way_back() {
        let id = TimelineId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        let text = "000102030405060708090a0b0c0d0eff";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
    }

    #[test]
    fn anything_but_32_hexadecimal_digits_is_refused() {
        let bad = ["", "0", "+00102030405060708090a0b0c0d0eff", "000102030405060708090a0b0c0d0efg"];
        for text in bad.into_iter().chain(["000102030405060708090a0b0c0d0effff"]) {
            assert_eq!(text.parse::<TimelineId>(), Err(TimelineError::Hex), "{text:?}");
        }
    }
}
