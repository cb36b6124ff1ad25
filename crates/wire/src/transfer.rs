//! The transfer in the form that nearly all have, read and written without a look at each field:
//! there is one for every message.

use crate::DeliveryTag;
use crate::codec::code;
use crate::frame::FrameType;
use crate::performative::Transfer;

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

    /// Writes a frame's header, its size still open, and the transfer of a delivery with a tag of
    /// eight octets, on a handle below 256, of format 0: the form that we send, put together in one
    /// piece. `false`: it is none of these, and nothing was written.
    #[inline]
    pub fn put_plain(
        out: &mut Vec<u8>,
        (channel, handle): (u16, u32),
        id: u32,
        tag: &DeliveryTag,
        settled: bool,
    ) -> bool {
        let (Ok(handle), Ok(tag)) = (u8::try_from(handle), <[u8; 8]>::try_from(tag.as_slice()))
        else {
            return false;
        };
        let ([channel_hi, channel_lo], [a, b, c, d]) = (channel.to_be_bytes(), id.to_be_bytes());
        let [t, u, v, w, x, y, z, last] = tag;
        let settled = if settled { code::TRUE } else { code::FALSE };
        out.extend_from_slice(&[
            0,
            0,
            0,
            0,
            2,
            FrameType::Amqp as u8,
            channel_hi,
            channel_lo,
            code::DESCRIBED,
            code::SMALL_ULONG,
            Self::CODE,
            code::LIST8,
            20,
            5,
            code::SMALL_UINT,
            handle,
            code::UINT,
            a,
            b,
            c,
            d,
            code::BINARY8,
            8,
            t,
            u,
            v,
            w,
            x,
            y,
            z,
            last,
            code::UINT0,
            settled,
        ]);
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
