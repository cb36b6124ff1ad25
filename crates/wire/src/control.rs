//! What a transaction's controller asks of its coordinator (part 4, 4.2 and 4.3).

use crate::WireError;
use crate::codec::{Encode, Reader};
use crate::composite::Descriptor;
use crate::message::{Layout, section};
use crate::terminus::{Declare, Discharge};

/// The message on a link to a coordinator: its body is one value of these types. Its other
/// sections say nothing to a coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Begin a transaction.
    Declare(Declare),
    /// End it.
    Discharge(Discharge),
}

impl Control {
    /// Reads an encoded message.
    ///
    /// # Errors
    /// It is no message, or its body is anything but one `amqp-value` of a declare or discharge.
    pub fn read(message: &[u8]) -> Result<Self, WireError> {
        let layout = Layout::scan(message)?;
        let mut r = Reader::new(message.get(layout.body).unwrap_or_default());
        let body = Descriptor::read(&mut r, "a body")?;
        if !body.is(section::VALUE.into(), "amqp:amqp-value:*") {
            return Err(body.unexpected("an amqp-value"));
        }
        let descriptor = Descriptor::read(&mut r, "declare or discharge")?;
        if descriptor.is(Declare::CODE.into(), Declare::SYMBOL) {
            Declare::decode_fields(&mut r).map(Self::Declare)
        } else if descriptor.is(Discharge::CODE.into(), Discharge::SYMBOL) {
            Discharge::decode_fields(&mut r).map(Self::Discharge)
        } else {
            Err(descriptor.unexpected("declare or discharge"))
        }
    }

    /// Writes it as a message of one `amqp-value` section.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0x00, 0x53, section::VALUE]);
        match self {
            Self::Declare(declare) => declare.encode(out),
            Self::Discharge(discharge) => discharge.encode(out),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn discharge() -> Control {
        Control::Discharge(Discharge { txn_id: Bytes::from_static(b"one"), fail: true })
    }

    fn written(control: &Control) -> Vec<u8> {
        let mut out = Vec::new();
        control.write(&mut out);
        out
    }

    #[test]
    fn what_is_written_is_read_behind_any_other_section() {
        for control in [discharge(), Control::Declare(Declare { global_id: None })] {
            let octets = written(&control);
            assert_eq!(Control::read(&octets).unwrap(), control);
            let header = [&[0x00, 0x53, 0x70, 0x45], octets.as_slice()].concat();
            assert_eq!(Control::read(&header).unwrap(), control);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let octets = written(&discharge());
        for end in 0..octets.len() {
            assert!(Control::read(&octets[..end]).is_err(), "{end} octets of it");
        }
        let others: [&[u8]; 4] = [
            b"\x00\x53\x75\xa0\x01x",
            b"\x00\x53\x77\xa1\x01x",
            b"\x00\x53\x77\x00\x53\x24\x45",
            b"\x00\x53\x77\x00\x53\x32\x45",
        ];
        for other in others {
            assert!(Control::read(other).is_err(), "{other:02x?}");
        }
    }
}
