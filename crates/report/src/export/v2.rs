//! HdrHistogram's own encoding, version 2, compressed: what its logs hold.
//!
//! By hand, since the crate's feature for it brings a second version of two other crates.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;

const COOKIE: u32 = 0x1c84_9303 | 0x10;
const COMPRESSED_COOKIE: u32 = 0x1c84_9304 | 0x10;

/// The histogram, compressed, in base64.
///
/// # Errors
/// A histogram of more than 4 GiB: never in practice.
pub(super) fn encode(histogram: &Histogram<u64>) -> io::Result<String> {
    let mut compressed = Vec::new();
    let mut encoder = ZlibEncoder::new(&mut compressed, Compression::default());
    encoder.write_all(&plain(histogram)?)?;
    encoder.finish()?;
    let mut whole = COMPRESSED_COOKIE.to_be_bytes().to_vec();
    whole.extend(length(&compressed)?);
    whole.append(&mut compressed);
    Ok(STANDARD.encode(whole))
}

fn plain(histogram: &Histogram<u64>) -> io::Result<Vec<u8>> {
    let counts = counts(histogram);
    let mut out = COOKIE.to_be_bytes().to_vec();
    out.extend(length(&counts)?);
    // The index that is taken for 0: not shifted.
    out.extend(0_u32.to_be_bytes());
    out.extend(u32::from(histogram.sigfig()).to_be_bytes());
    out.extend(histogram.low().to_be_bytes());
    out.extend(histogram.high().to_be_bytes());
    // How an integer becomes a double: as it is.
    out.extend(1_f64.to_be_bytes());
    out.extend(counts);
    Ok(out)
}

fn length(octets: &[u8]) -> io::Result<[u8; 4]> {
    u32::try_from(octets.len()).map(u32::to_be_bytes).map_err(io::Error::other)
}

/// Counts in the order of their values; zeros in a row are one negative number.
fn counts(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut next = 0;
    for value in histogram.iter_recorded() {
        let at = index(histogram, value.value_iterated_to());
        if at > next {
            put(-at.saturating_sub(next), &mut out);
        }
        let count = i64::try_from(value.count_at_value()).unwrap_or(i64::MAX);
        put(count, &mut out);
        next = at + 1;
    }
    out
}

/// Where a value is counted: for the values below the first power of two that has the digits, in a
/// place each; for each further power of two in half as many places.
fn index(histogram: &Histogram<u64>, value: u64) -> i64 {
    let places = (2 * 10_u64.pow(histogram.sigfig().into())).next_power_of_two();
    let magnitude = places.trailing_zeros();
    let bucket = (u64::BITS - (value | (places - 1)).leading_zeros()).saturating_sub(magnitude);
    let half = i64::try_from(places / 2).unwrap_or(i64::MAX);
    let place = i64::try_from(value >> bucket).unwrap_or(i64::MAX);
    i64::from(bucket) * half + place
}

/// ZigZag, then seven bits an octet, the least significant first; a ninth octet holds eight.
fn put(number: i64, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        histogram
    }

    fn put_all(numbers: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        numbers.iter().for_each(|number| put(*number, &mut out));
        out
    }

    #[test]
    fn numbers_take_as_many_octets_as_they_need() {
        assert_eq!(put_all(&[0, 1, -1, 63, 64]), [0, 2, 1, 126, 0x80, 1]);
        assert_eq!(put_all(&[i64::MAX]), [0xfe, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(put_all(&[i64::MIN]), [255; 9]);
    }

    #[test]
    fn values_are_counted_where_the_stock_tools_look_for_them() {
        let histogram = histogram(&[]);
        let places =
            [(0, 0), (1, 1), (2_047, 2_047), (2_048, 2_048), (2_049, 2_048), (4_095, 3_071)];
        for (value, place) in places {
            assert_eq!(index(&histogram, value), place, "{value}");
        }
        assert_eq!(index(&histogram, 4_096), 3_072);
    }

    #[test]
    fn zeros_in_a_row_are_one_number() {
        assert!(counts(&histogram(&[])).is_empty());
        assert_eq!(counts(&histogram(&[3, 3, 4, 10])), put_all(&[-3, 2, 1, -5, 1]));
    }
}
