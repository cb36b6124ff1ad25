use super::Header;
use crate::WireError;
use crate::codec::{Reader, code};
use crate::composite::Descriptor;
use std::ops::Range;

/// The numbers of the sections' descriptors (3.2), in the order that they must have.
#[allow(missing_docs)]
pub mod section {
    pub const HEADER: u8 = 0x70;
    pub const DELIVERY_ANNOTATIONS: u8 = 0x71;
    pub const MESSAGE_ANNOTATIONS: u8 = 0x72;
    pub const PROPERTIES: u8 = 0x73;
    pub const APPLICATION_PROPERTIES: u8 = 0x74;
    pub const DATA: u8 = 0x75;
    pub const SEQUENCE: u8 = 0x76;
    pub const VALUE: u8 = 0x77;
    pub const FOOTER: u8 = 0x78;
}

/// Where the sections of an encoded message are. Ranges hold the sections' values, constructor
/// included, descriptor excluded. Found in one pass that leaves the body unread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The header, decoded.
    pub header: Option<Header>,
    /// The map of delivery-annotations.
    pub delivery_annotations: Option<Range<usize>>,
    /// The map of message-annotations.
    pub message_annotations: Option<Range<usize>>,
    /// Where the octets begin that are passed on untouched: the bare message and the footer.
    pub bare: usize,
    /// The list of properties.
    pub properties: Option<Range<usize>>,
    /// The map of application-properties.
    pub application_properties: Option<Range<usize>>,
    /// All sections of the body, descriptors included. Empty where there are none: that is against
    /// 3.2, but how Qpid Proton sends a body of null.
    pub body: Range<usize>,
    /// The map of the footer.
    pub footer: Option<Range<usize>>,
}

const NAMES: [(&str, u8); 9] = [
    ("amqp:header:list", section::HEADER),
    ("amqp:delivery-annotations:map", section::DELIVERY_ANNOTATIONS),
    ("amqp:message-annotations:map", section::MESSAGE_ANNOTATIONS),
    ("amqp:properties:list", section::PROPERTIES),
    ("amqp:application-properties:map", section::APPLICATION_PROPERTIES),
    ("amqp:data:binary", section::DATA),
    ("amqp:amqp-sequence:list", section::SEQUENCE),
    ("amqp:amqp-value:*", section::VALUE),
    ("amqp:footer:map", section::FOOTER),
];

/// Takes the descriptor of a section.
#[inline]
pub(super) fn read_section(r: &mut Reader<'_>) -> Result<u8, WireError> {
    if let [code::DESCRIBED, code::SMALL_ULONG, section @ 0x70..=0x78, ..] = *r.rest() {
        r.advance(3);
        return Ok(section);
    }
    let descriptor = Descriptor::read(r, "a message section")?;
    let known = match descriptor {
        Descriptor::Code(n @ 0x70..=0x78) => Some(n as u8),
        Descriptor::Code(_) => None,
        Descriptor::Name(name) => {
            NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, code)| *code)
        }
    };
    known.ok_or_else(|| descriptor.unexpected("a message section"))
}

/// Whether a section with that descriptor may have a value with that constructor.
fn belongs(section: u8, code: u8) -> bool {
    use code::*;
    match section {
        section::HEADER | section::PROPERTIES | section::SEQUENCE => {
            matches!(code, LIST0 | LIST8 | LIST32)
        }
        section::DATA => matches!(code, BINARY8 | BINARY32),
        section::VALUE => true,
        _ => matches!(code, MAP8 | MAP32),
    }
}

impl Layout {
    /// Finds the sections of a message.
    ///
    /// # Errors
    /// Sections out of order, repeated or unknown; a body of mixed or several value sections; no
    /// section at all; a section of the wrong type; a header or annotations that do not decode.
    pub fn scan(message: &[u8]) -> Result<Self, WireError> {
        let mut layout = Self::default();
        let mut r = Reader::new(message);
        let mut last = 0;
        while !r.is_empty() {
            let start = r.position();
            let section = read_section(&mut r)?;
            let repeats = matches!(section, section::DATA | section::SEQUENCE) && last == section;
            let second_body = (section::DATA..=section::VALUE).contains(&last)
                && (section::DATA..=section::VALUE).contains(&section);
            if !repeats && (section <= last || second_body) {
                let detail = "has its sections out of order";
                return Err(WireError::Invalid { what: "message", detail });
            }
            if let Some(code) = r.peek()
                && !belongs(section, code)
            {
                return Err(WireError::Constructor { code, expected: "the section's own type" });
            }
            let value = r.position();
            let octets = r.skip()?;
            layout.note(section, start, value..r.position(), octets)?;
            last = section;
        }
        match last {
            0 => Err(WireError::Invalid { what: "message", detail: "has no sections" }),
            _ => Ok(layout),
        }
    }

    fn note(
        &mut self,
        section: u8,
        start: usize,
        value: Range<usize>,
        octets: &[u8],
    ) -> Result<(), WireError> {
        let end = value.end;
        match section {
            section::HEADER => self.header = Some(Header::decode_fields(&mut Reader::new(octets))?),
            section::DELIVERY_ANNOTATIONS => {
                check_annotations(octets)?;
                self.delivery_annotations = Some(value);
            }
            section::MESSAGE_ANNOTATIONS => {
                check_annotations(octets)?;
                self.message_annotations = Some(value);
            }
            section::PROPERTIES => self.properties = Some(value),
            section::APPLICATION_PROPERTIES => self.application_properties = Some(value),
            section::FOOTER => {
                check_annotations(octets)?;
                self.footer = Some(value);
            }
            _ if self.body.is_empty() => self.body = start..end,
            _ => self.body.end = end,
        }
        if section < section::PROPERTIES {
            self.bare = end;
        }
        if section < section::DATA {
            self.body = end..end;
        }
        Ok(())
    }
}

/// The map of message-annotations of an encoded message, with its constructor; nothing behind it is
/// looked at. `None`: there is none, or it can't be read.
pub fn message_annotations(message: &[u8]) -> Option<&[u8]> {
    let mut r = Reader::new(message);
    loop {
        let section = read_section(&mut r).ok()?;
        if section > section::MESSAGE_ANNOTATIONS {
            return None;
        }
        let value = r.skip().ok()?;
        if section == section::MESSAGE_ANNOTATIONS {
            return check_annotations(value).is_ok().then_some(value);
        }
    }
}

/// The sections at the front of a bare message, each with its constructor, as octets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Head<'a> {
    /// The list of properties.
    pub properties: Option<&'a [u8]>,
    /// The map of application-properties.
    pub application_properties: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    /// Finds them in a bare message that [`Layout::scan`] has passed, and goes no further.
    ///
    /// # Errors
    /// Octets that are no message section.
    pub fn scan(bare: &'a [u8]) -> Result<Self, WireError> {
        let mut head = Self::default();
        let mut r = Reader::new(bare);
        while !r.is_empty() {
            match read_section(&mut r)? {
                section::PROPERTIES => head.properties = Some(r.skip()?),
                section::APPLICATION_PROPERTIES => head.application_properties = Some(r.skip()?),
                _ => break,
            }
        }
        Ok(head)
    }
}

/// Keys of annotations are symbols or ulongs (3.2.10).
fn check_annotations(map: &[u8]) -> Result<(), WireError> {
    let (mut entries, count) = Reader::new(map).map("annotations")?;
    for _ in 0..count / 2 {
        use code::*;
        match entries.peek() {
            Some(SYMBOL8 | SYMBOL32 | ULONG | SMALL_ULONG | ULONG0) => entries.skip()?,
            _ => {
                let detail = "has a key that is neither a symbol nor a ulong";
                return Err(WireError::Invalid { what: "annotations", detail });
            }
        };
        entries.skip()?;
    }
    entries.end("annotations")
}

/// Calls `each(key, value)` with the octets of each entry of an annotations map that [`Layout`]
/// has found; a key that is a symbol comes as its text, others as none.
pub fn annotation<'a>(map: &'a [u8], mut each: impl FnMut(Option<&'a [u8]>, &'a [u8], &'a [u8])) {
    let Ok((mut entries, count)) = Reader::new(map).map("annotations") else { return };
    for _ in 0..count / 2 {
        let mut ahead = entries.clone();
        let symbol = match ahead.octet("key") {
            Ok(code::SYMBOL8) => ahead.variable(false, "key").ok(),
            Ok(code::SYMBOL32) => ahead.variable(true, "key").ok(),
            _ => None,
        };
        let (Ok(key), Ok(value)) = (entries.skip(), entries.skip()) else { return };
        each(symbol, key, value);
    }
}
