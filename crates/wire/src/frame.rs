//! Frames: eight octets of header, an optional extended header, a body (part 2, 2.3).
//!
//! ```text
//!       +0       +1       +2       +3
//!   0  |               SIZE                |
//!   4  |  DOFF  |  TYPE  |     CHANNEL     |
//!   8  |  extended header, DOFF * 4 - 8    |
//!      |  performative, payload            |
//! ```

use crate::{WireError, limits};

/// Octets of a frame header without the extended one.
pub const HEADER: usize = 8;

/// What kind of frame it is (part 2, 2.3.1; part 5, 5.3.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameType {
    /// Type 0.
    Amqp = 0,
    /// Type 1.
    Sasl = 1,
}

/// The header of one frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Octets of the whole frame.
    pub size: usize,
    /// Where the body begins.
    pub body: usize,
    /// What kind of frame it is.
    pub kind: FrameType,
    /// The channel; without meaning in SASL frames.
    pub channel: u16,
}

impl FrameHeader {
    /// Reads the header at the start of `buf`. `None`: fewer than eight octets are there.
    ///
    /// # Errors
    /// A size below 8 or above `max`, a data offset outside the frame, an unknown type.
    pub fn parse(buf: &[u8], max: u32) -> Result<Option<Self>, WireError> {
        let Some((&[a, b, c, d, doff, kind, hi, lo], _)) = buf.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let body = usize::from(doff) * 4;
        if size < HEADER {
            return Err(WireError::Frame("its size is below 8"));
        }
        if size > max as usize {
            return Err(WireError::FrameSize { size, max: max as usize });
        }
        if body < HEADER || body > size {
            return Err(WireError::Frame("its data offset is below 2 or past its end"));
        }
        let kind = match kind {
            0 => FrameType::Amqp,
            1 => FrameType::Sasl,
            _ => return Err(WireError::Frame("its type is neither AMQP (0) nor SASL (1)")),
        };
        Ok(Some(Self { size, body, kind, channel: u16::from_be_bytes([hi, lo]) }))
    }
}

/// Writes the header of a frame whose size is not known yet; returns where it began, for
/// [`finish`].
pub fn start(out: &mut Vec<u8>, kind: FrameType, channel: u16) -> usize {
    let at = out.len();
    let [hi, lo] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind as u8, hi, lo]);
    at
}

/// Fills in the size of the frame that began at `at`: what is in `out` since, and `more` octets of
/// payload that follow from elsewhere.
pub fn finish(out: &mut [u8], at: usize, more: usize) {
    let size = (out.len() - at + more) as u32;
    if let Some(slot) = out.get_mut(at..at + 4) {
        slot.copy_from_slice(&size.to_be_bytes());
    }
}

/// The protocol headers of version 1.0.0 (part 2, 2.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProtocolHeader {
    /// Protocol id 0.
    Amqp,
    /// Protocol id 3.
    Sasl,
}

impl ProtocolHeader {
    /// Its eight octets.
    pub const fn octets(self) -> [u8; 8] {
        match self {
            Self::Amqp => *b"AMQP\x00\x01\x00\x00",
            Self::Sasl => *b"AMQP\x03\x01\x00\x00",
        }
    }

    /// Reads a header at the start of `buf`. `Ok(None)`: it may still become one. `Err`: it can't.
    ///
    /// # Errors
    /// As soon as one octet fits none of the two headers.
    pub fn parse(buf: &[u8]) -> Result<Option<Self>, WireError> {
        for header in [Self::Amqp, Self::Sasl] {
            let octets = header.octets();
            if buf.starts_with(&octets) {
                return Ok(Some(header));
            }
            if octets.starts_with(buf) {
                return Ok(None);
            }
        }
        Err(WireError::Frame("the peer's protocol header is not AMQP 1.0"))
    }
}

const _: () = assert!(limits::MIN_MAX_FRAME_SIZE as usize > HEADER);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::performative::{Flow, Frame, Performative, SaslMechanisms};

    #[test]
    fn frames_are_found_wherever_the_stream_is_cut() {
        let mut stream = Vec::new();
        Flow::default().put(&mut stream, 7);
        let first = stream.len();
        SaslMechanisms { sasl_server_mechanisms: vec!["PLAIN".into()] }.put(&mut stream, 0);
        let second = stream.len() - first;
        for cut in 0..=stream.len() {
            let there = &stream[..cut];
            let header = FrameHeader::parse(there, 512).unwrap();
            let size = header.map(|header| (header.size, header.channel, header.kind));
            assert_eq!(size, (cut >= HEADER).then_some((first, 7, FrameType::Amqp)));
            let Some(rest) = there.get(first..) else { continue };
            let size = FrameHeader::parse(rest, 512).unwrap().map(|header| header.size);
            assert_eq!(size, (rest.len() >= HEADER).then_some(second));
        }
        let flow = Performative::Flow(Flow::default());
        assert_eq!(Performative::decode(&stream[HEADER..first]), Ok((flow, first - HEADER)));
    }

    #[test]
    fn the_body_begins_behind_the_extended_header_even_if_it_is_empty() {
        for (doff, size, ok) in [(2, 8, true), (3, 12, true), (3, 11, false), (255, 1020, true)] {
            let [_, _, hi, lo] = u32::to_be_bytes(size);
            let parsed = FrameHeader::parse(&[0, 0, hi, lo, doff, 0, 0, 0], 1020);
            let body = parsed.map(|header| header.map(|header| header.body));
            assert_eq!(body.ok(), ok.then_some(Some(usize::from(doff) * 4)));
        }
    }

    #[test]
    fn the_largest_frame_has_the_size_of_the_limit() {
        let header = |size: u32| [&size.to_be_bytes()[..], &[2, 0, 0, 0]].concat();
        assert!(FrameHeader::parse(&header(512), 512).is_ok());
        let error = FrameHeader::parse(&header(513), 512).unwrap_err();
        assert_eq!(error, WireError::FrameSize { size: 513, max: 512 });
        assert_eq!(error.condition(), crate::condition::FRAMING_ERROR);
        assert!(FrameHeader::parse(&header(u32::MAX), u32::MAX).is_ok());
        assert!(FrameHeader::parse(&header(7), 512).is_err());
    }

    #[test]
    fn a_frame_counts_the_payload_that_follows_from_elsewhere() {
        let mut out = vec![9; 5];
        let at = start(&mut out, FrameType::Amqp, 0x102);
        out.extend_from_slice(&[1, 2, 3]);
        finish(&mut out, at, 100);
        assert_eq!(out[5..], [0, 0, 0, 111, 2, 0, 1, 2, 1, 2, 3]);
    }

    #[test]
    fn a_header_is_read_and_each_mistake_is_refused() {
        let ok = [0, 0, 0, 12, 3, 0, 1, 2, 9, 9, 9, 9];
        let want = FrameHeader { size: 12, body: 12, kind: FrameType::Amqp, channel: 0x102 };
        assert_eq!(FrameHeader::parse(&ok, 512), Ok(Some(want)));
        for cut in 0..8 {
            assert_eq!(FrameHeader::parse(&ok[..cut], 512), Ok(None));
        }
        for (at, octet) in [(3, 7), (4, 1), (4, 4), (5, 2), (2, 3)] {
            let mut bad = ok;
            bad[at] = octet;
            assert!(FrameHeader::parse(&bad, 512).is_err(), "octet {at} = {octet}");
        }
    }

    #[test]
    fn a_protocol_header_is_known_at_its_last_octet_and_refused_at_the_first_wrong_one() {
        let amqp = ProtocolHeader::Amqp.octets();
        for cut in 0..8 {
            assert_eq!(ProtocolHeader::parse(&amqp[..cut]), Ok(None));
            let mut bad = amqp;
            bad[cut] ^= 0x40;
            assert!(ProtocolHeader::parse(&bad[..=cut]).is_err());
        }
        assert_eq!(ProtocolHeader::parse(&amqp), Ok(Some(ProtocolHeader::Amqp)));
        assert_eq!(ProtocolHeader::parse(b"AMQP\x03\x01\0\0x"), Ok(Some(ProtocolHeader::Sasl)));
    }
}
