use std::fmt;
use std::str::FromStr;

use crate::TimelineError;

/// What tells one message's timeline from another's: 16 octets, often a W3C trace id.
///
/// Shown and read as 32 hexadecimal digits.
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug, Default)]
pub struct TimelineId(pub [u8; 16]);

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
    // from_str_radix alone would take a leading plus sign.
    let digits_only = text.len() == 32 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| digits_only)?;
    Some(number.to_be_bytes())
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
