//! Numbers of a selector: compared exactly, whatever their types.

use std::cmp::Ordering;

/// A number. All integers of AMQP fit into the exact one, so that neither comparing nor adding
/// loses a digit where a double would (2^53 + 1).
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Exact(i128),
    Approximate(f64),
}

/// What is done with two numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Number {
    /// How two numbers compare; not at all if one is not a number.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => Some(a.cmp(&b)),
            (Self::Approximate(a), Self::Approximate(b)) => a.partial_cmp(&b),
            (Self::Exact(a), Self::Approximate(b)) => compare_mixed(a, b),
            (Self::Approximate(a), Self::Exact(b)) => compare_mixed(b, a).map(Ordering::reverse),
        }
    }

    /// Exact numbers stay exact, and divide as integers do. There is no result beyond 128 bits
    /// and for an exact division by zero; doubles follow IEEE 754.
    pub(crate) fn calculate(self, operation: Arithmetic, other: Self) -> Option<Self> {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return match operation {
                Arithmetic::Add => a.checked_add(b),
                Arithmetic::Subtract => a.checked_sub(b),
                Arithmetic::Multiply => a.checked_mul(b),
                Arithmetic::Divide => a.checked_div(b),
            }
            .map(Self::Exact);
        }
        let (a, b) = (self.to_double(), other.to_double());
        Some(Self::Approximate(match operation {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
        }))
    }

    /// The number with the other sign.
    pub(crate) fn negate(self) -> Option<Self> {
        match self {
            Self::Exact(n) => n.checked_neg().map(Self::Exact),
            Self::Approximate(n) => Some(Self::Approximate(-n)),
        }
    }

    const fn to_double(self) -> f64 {
        match self {
            Self::Exact(n) => n as f64,
            Self::Approximate(n) => n,
        }
    }

    /// A decimal of IEEE 754-2008 in the binary integer encoding, as AMQP has them (part 1,
    /// 1.6.13 to 1.6.15): exact if it is whole and fits, else the nearest double.
    pub(crate) fn decimal(octets: &[u8]) -> Self {
        let bits = octets.iter().fold(0, |bits: u128, octet| bits << 8 | u128::from(*octet));
        let (width, exponent_bits, digits, bias) = match octets.len() {
            4 => (32, 8, 7, 101),
            8 => (64, 10, 16, 398),
            _ => (128, 14, 34, 6176),
        };
        let is_negative = bits >> (width - 1) & 1 == 1;
        let sign = if is_negative { -1.0 } else { 1.0 };
        let field = |at: u32, count: u32| bits >> at & ((1 << count) - 1);
        match field(width - 6, 5) {
            0b11111 => return Self::Approximate(f64::NAN),
            0b11110 => return Self::Approximate(sign * f64::INFINITY),
            _ => {}
        }
        let low = width - 1 - exponent_bits;
        let (exponent, coefficient) = match field(width - 3, 2) {
            0b11 => (field(low - 2, exponent_bits), 0b100 << (low - 2) | field(0, low - 2)),
            _ => (field(low, exponent_bits), field(0, low)),
        };
        // More digits than the type has stand for zero (IEEE 754-2008, 3.5.2).
        let coefficient = if coefficient < 10_u128.pow(digits) { coefficient } else { 0 };
        let coefficient = coefficient as i128 * if is_negative { -1 } else { 1 };
        scaled(coefficient, exponent as i32 - bias)
    }
}

/// `coefficient` times ten to the `exponent`.
fn scaled(mut coefficient: i128, mut exponent: i32) -> Number {
    if coefficient == 0 {
        return Number::Exact(0);
    }
    while exponent < 0 && coefficient % 10 == 0 {
        (coefficient, exponent) = (coefficient / 10, exponent + 1);
    }
    let power = u32::try_from(exponent).ok().and_then(|n| 10_i128.checked_pow(n));
    match power.and_then(|power| coefficient.checked_mul(power)) {
        Some(whole) => Number::Exact(whole),
        None => {
            let text = format!("{coefficient}e{exponent}");
            Number::Approximate(text.parse().unwrap_or(f64::NAN))
        }
    }
}

/// Compares without rounding the integer.
fn compare_mixed(exact: i128, double: f64) -> Option<Ordering> {
    const LIMIT: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if double.is_nan() {
        None
    } else if double >= LIMIT {
        Some(Ordering::Less)
    } else if double < -LIMIT {
        Some(Ordering::Greater)
    } else {
        let whole = double.trunc();
        let by_whole = exact.cmp(&(whole as i128));
        Some(by_whole.then_with(|| whole.partial_cmp(&double).unwrap_or(Ordering::Equal)))
    }
}

#[cfg(test)]
mod tests {
    use super::Number::{Approximate, Exact};
    use super::*;

    #[test]
    fn integers_and_doubles_compare_exactly() {
        let cases = [
            (Exact((1 << 53) + 1), Approximate(9_007_199_254_740_992.0), Some(Ordering::Greater)),
            (Exact(1 << 53), Approximate(9_007_199_254_740_992.0), Some(Ordering::Equal)),
            (Exact(u64::MAX.into()), Approximate(u64::MAX as f64), Some(Ordering::Less)),
            (Exact(i64::MAX.into()), Exact(u64::MAX.into()), Some(Ordering::Less)),
            (Exact(-1), Approximate(-0.5), Some(Ordering::Less)),
            (Exact(0), Approximate(-0.5), Some(Ordering::Greater)),
            (Exact(0), Approximate(-0.0), Some(Ordering::Equal)),
            (Exact(i128::MAX), Approximate(f64::INFINITY), Some(Ordering::Less)),
            (Exact(i128::MIN), Approximate(f64::NEG_INFINITY), Some(Ordering::Greater)),
            (Exact(i128::MIN), Approximate(-(2_f64.powi(127))), Some(Ordering::Equal)),
            (Exact(0), Approximate(f64::NAN), None),
            (Approximate(f64::NAN), Approximate(f64::NAN), None),
        ];
        for (a, b, expected) in cases {
            assert_eq!(a.compare(b), expected, "{a:?} {b:?}");
            assert_eq!(b.compare(a), expected.map(Ordering::reverse), "{b:?} {a:?}");
        }
    }

    #[test]
    fn arithmetic_is_defined_at_its_limits() {
        let by = |a, operation, b| Exact(a).calculate(operation, Exact(b));
        assert_eq!(by(i128::MAX, Arithmetic::Add, 1), None);
        assert_eq!(by(i128::MIN, Arithmetic::Subtract, 1), None);
        assert_eq!(by(i128::MAX, Arithmetic::Multiply, 2), None);
        assert_eq!(by(1, Arithmetic::Divide, 0), None);
        assert_eq!(by(i128::MIN, Arithmetic::Divide, -1), None);
        assert_eq!(Exact(i128::MIN).negate(), None);
        assert_eq!(by(-7, Arithmetic::Divide, 2), Some(Exact(-3)));
        assert_eq!(
            Exact(1).calculate(Arithmetic::Divide, Approximate(0.0)),
            Some(Approximate(f64::INFINITY))
        );
    }

    #[test]
    fn decimals_are_read() {
        let decimal32 = |bits: u32| Number::decimal(&bits.to_be_bytes());
        let decimal64 = |bits: u64| Number::decimal(&bits.to_be_bytes());
        let decimal128 = |bits: u128| Number::decimal(&bits.to_be_bytes());
        assert_eq!(decimal32(101 << 23 | 15), Exact(15));
        assert_eq!(decimal32(1 << 31 | 100 << 23 | 15), Approximate(-1.5));
        assert_eq!(decimal32(100 << 23 | 150), Exact(15));
        assert_eq!(decimal32(0x7800_0000), Approximate(f64::INFINITY));
        assert_eq!(decimal32(0xf800_0000), Approximate(f64::NEG_INFINITY));
        assert!(matches!(decimal32(0x7c00_0000), Approximate(n) if n.is_nan()));
        // 9,999,999 needs the form with three implied bits.
        assert_eq!(
            decimal32(0b11 << 29 | 101 << 21 | (9_999_999 - (0b100 << 21))),
            Exact(9_999_999)
        );
        assert_eq!(decimal64(398 << 53 | ((1 << 53) - 1)), Exact((1 << 53) - 1));
        assert_eq!(decimal64(388 << 53 | 1), Approximate(1e-10));
        assert_eq!(decimal128(6176 << 113 | 10_u128.pow(33)), Exact(10_i128.pow(33)));
        assert_eq!(decimal128(6176 << 113 | (10_u128.pow(34))), Exact(0), "too many digits");
        assert_eq!(decimal128(6276 << 113 | 1), Approximate(1e100));
        assert_eq!(decimal128(0), Exact(0));
    }
}
