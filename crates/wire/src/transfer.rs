//! The transfer in the form that nearly all have, read and written without a look at each field:
//! there is one for every message.

use crate::codec::code;
use crate::performative::Transfer;
use crate::{DeliveryTag, limits};

/// Fields behind `more`.
const LAST_FIELDS: usize = 5;

impl Transfer {
    /// Reads the fields, as [`Transfer::decode_fields`] does, of a transfer with id and tag in a
    /// short list, whose fields behind `more` say nothing but the defaults. Returns how many octets
    /// they take. `None`: it is not of that form, or it is malformed.
    #[inline]
    pub fn decode_plain(octets: &[u8]) -> Option<(Self, usize)> {
        let [code::LIST8, size, count, fields @ ..] = octets else { return None };
        let mut left = fields.get(..usize::from(*size).checked_sub(1)?)?;
        let last = usize::from(*count).checked_sub(4)?;
        let transfer = Self {
            handle: uint(&mut left)?,
            delivery_id: Some(uint(&mut left)?),
            delivery_tag: Some(tag(&mut left)?),
            message_format: optional(&mut left, uint)?,
            settled: if last > 0 { optional(&mut left, boolean)? } else { None },
            more: if last > 1 { optional(&mut left, boolean)?.unwrap_or(false) } else { false },
            rcv_settle_mode: None,
            state: None,
            resume: false,
            aborted: false,
            batchable: false,
        };
        says_nothing(left, last.saturating_sub(2)).then_some((transfer, 2 + usize::from(*size)))
    }

    /// Writes what [`Encode`](crate::codec::Encode) would, if there is nothing but the first five
    /// fields. `false`: there is more, and nothing was written.
    #[inline]
    pub fn encode_plain(&self, out: &mut Vec<u8>) -> bool {
        let (Some(id), Some(tag), Some(format)) =
            (self.delivery_id, self.delivery_tag, self.message_format)
        else {
            return false;
        };
        let flags = self.more || self.resume || self.aborted || self.batchable;
        if flags || self.rcv_settle_mode.is_some() || self.state.is_some() {
            return false;
        }
        let mut frame = Short::new();
        frame.put(&[code::DESCRIBED, code::SMALL_ULONG, Self::CODE, code::LIST8, 0, 0]);
        frame.put_uint(self.handle);
        frame.put_uint(id);
        frame.put(&[code::BINARY8, tag.as_slice().len() as u8]);
        frame.put(tag.as_slice());
        frame.put_uint(format);
        if let Some(settled) = self.settled {
            frame.put(&[if settled { code::TRUE } else { code::FALSE }]);
        }
        frame.octets[4] = (frame.len - 5) as u8;
        frame.octets[5] = 4 + u8::from(self.settled.is_some());
        out.extend_from_slice(frame.octets.get(..frame.len).unwrap_or_default());
        true
    }
}

fn says_nothing(fields: &[u8], count: usize) -> bool {
    let is_default = |(n, octet): (usize, &u8)| match *octet {
        code::NULL => true,
        // Behind rcv-settle-mode and state.
        code::FALSE => n > 1,
        _ => false,
    };
    fields.len() == count && count <= LAST_FIELDS && fields.iter().enumerate().all(is_default)
}

#[inline]
fn uint(left: &mut &[u8]) -> Option<u32> {
    let (value, rest) = match *left {
        [code::UINT0, rest @ ..] => (0, rest),
        [code::SMALL_UINT, value, rest @ ..] => (u32::from(*value), rest),
        [code::UINT, a, b, c, d, rest @ ..] => (u32::from_be_bytes([*a, *b, *c, *d]), rest),
        _ => return None,
    };
    *left = rest;
    Some(value)
}

#[inline]
fn tag(left: &mut &[u8]) -> Option<DeliveryTag> {
    let [code::BINARY8, len, rest @ ..] = *left else { return None };
    let (tag, rest) = rest.split_at_checked((*len).into())?;
    *left = rest;
    DeliveryTag::new(tag)
}

#[inline]
fn boolean(left: &mut &[u8]) -> Option<bool> {
    let (value, rest) = match *left {
        [code::TRUE, rest @ ..] => (true, rest),
        [code::FALSE, rest @ ..] => (false, rest),
        _ => return None,
    };
    *left = rest;
    Some(value)
}

/// A field that may be null.
#[inline]
fn optional<T>(left: &mut &[u8], read: fn(&mut &[u8]) -> Option<T>) -> Option<Option<T>> {
    if let [code::NULL, rest @ ..] = *left {
        *left = rest;
        return Some(None);
    }
    read(left).map(Some)
}

/// Octets that are put together in place, and then appended in one piece.
struct Short {
    octets: [u8; Self::MAX],
    len: usize,
}

impl Short {
    /// Constructor and list, three numbers, a tag, a boolean.
    const MAX: usize = 6 + 3 * 5 + 2 + limits::DELIVERY_TAG + 1;

    const fn new() -> Self {
        Self { octets: [0; Self::MAX], len: 0 }
    }

    #[inline]
    fn put(&mut self, octets: &[u8]) {
        if let Some(place) = self.octets.get_mut(self.len..self.len + octets.len()) {
            place.copy_from_slice(octets);
            self.len += octets.len();
        }
    }

    #[inline]
    fn put_uint(&mut self, value: u32) {
        match u8::try_from(value) {
            Ok(0) => self.put(&[code::UINT0]),
            Ok(small) => self.put(&[code::SMALL_UINT, small]),
            Err(_) => {
                let [a, b, c, d] = value.to_be_bytes();
                self.put(&[code::UINT, a, b, c, d]);
            }
        }
    }
}
