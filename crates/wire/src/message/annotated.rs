use super::{Header, Layout, Properties, section};
use crate::codec::{Decode, Encode, Reader, code, read_binary};
use crate::value::{encode_list, encode_map};
use crate::{Fields, Value, WireError};
use bytes::Bytes;
use std::ops::Range;

/// The body of a message (3.2.6 to 3.2.8).
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One data section or more.
    Data(Vec<Bytes>),
    /// One amqp-sequence section or more.
    Sequence(Vec<Vec<Value>>),
    /// One amqp-value section.
    Value(Value),
}

impl Default for Body {
    fn default() -> Self {
        Self::Data(vec![Bytes::new()])
    }
}

/// A message as values: what an application makes and reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// For the nodes on the way.
    pub header: Header,
    /// For the next node only.
    pub delivery_annotations: Fields,
    /// For the nodes on the way and the receiver.
    pub message_annotations: Fields,
    /// Standard properties.
    pub properties: Properties,
    /// The application's own properties: keys are strings, values simple.
    pub application_properties: Vec<(String, Value)>,
    /// The body.
    pub body: Body,
    /// Behind the body.
    pub footer: Fields,
}

impl Message {
    /// A message with one data section.
    pub fn data(octets: impl Into<Bytes>) -> Self {
        Self { body: Body::Data(vec![octets.into()]), ..Self::default() }
    }

    /// A message with a value as its body.
    pub fn value(value: impl Into<Value>) -> Self {
        Self { body: Body::Value(value.into()), ..Self::default() }
    }

    /// The octets of the body if it is data: borrowed where it is one section.
    pub fn octets(&self) -> Option<Bytes> {
        match &self.body {
            Body::Data(sections) => match sections.as_slice() {
                [one] => Some(one.clone()),
                many => Some(many.concat().into()),
            },
            _ => None,
        }
    }

    /// Appends header and delivery-annotations.
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        if self.header != Header::default() {
            self.header.encode(out);
        }
        annotations(out, section::DELIVERY_ANNOTATIONS, &self.delivery_annotations);
    }

    /// Appends the bare message and the footer.
    pub fn encode_bare(&self, out: &mut Vec<u8>) {
        if !self.properties.is_empty() {
            self.properties.encode(out);
        }
        if !self.application_properties.is_empty() {
            describe(out, section::APPLICATION_PROPERTIES);
            encode_map(out, self.application_properties.len(), |out| {
                for (key, value) in &self.application_properties {
                    key.encode(out);
                    value.encode(out);
                }
            });
        }
        self.encode_body(out);
        annotations(out, section::FOOTER, &self.footer);
    }

    /// A message without a body is none (3.2): where no section is given, an empty one is written.
    fn encode_body(&self, out: &mut Vec<u8>) {
        match &self.body {
            Body::Data(sections) if sections.is_empty() => {
                describe(out, section::DATA);
                Bytes::new().encode(out);
            }
            Body::Sequence(sections) if sections.is_empty() => {
                describe(out, section::SEQUENCE);
                encode_list(out, &[]);
            }
            Body::Data(sections) => sections.iter().for_each(|octets| {
                describe(out, section::DATA);
                octets.encode(out);
            }),
            Body::Sequence(sections) => sections.iter().for_each(|items| {
                describe(out, section::SEQUENCE);
                encode_list(out, items);
            }),
            Body::Value(value) => {
                describe(out, section::VALUE);
                value.encode(out);
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// What [`Layout::scan`] refuses, and values that do not decode.
    pub fn decode(octets: &Bytes) -> Result<Self, WireError> {
        let layout = Layout::scan(octets)?;
        let part = |range: &Option<Range<usize>>| {
            range.clone().and_then(|range| octets.get(range)).map(Reader::new)
        };
        let fields = |range| part(range).map(|mut r| symbol_fields(&mut r)).transpose();
        Ok(Self {
            header: layout.header.clone().unwrap_or_default(),
            delivery_annotations: fields(&layout.delivery_annotations)?.unwrap_or_default(),
            message_annotations: fields(&layout.message_annotations)?.unwrap_or_default(),
            properties: part(&layout.properties)
                .map(|mut r| Properties::decode_fields(&mut r))
                .transpose()?
                .unwrap_or_default(),
            application_properties: part(&layout.application_properties)
                .map(|mut r| string_map(&mut r))
                .transpose()?
                .unwrap_or_default(),
            body: decode_body(octets, layout.body)?,
            footer: fields(&layout.footer)?.unwrap_or_default(),
        })
    }
}

impl Encode for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        annotations(out, section::MESSAGE_ANNOTATIONS, &self.message_annotations);
        self.encode_bare(out);
    }
}

/// Appends the descriptor of a section.
pub(crate) fn describe(out: &mut Vec<u8>, section: u8) {
    out.extend_from_slice(&[code::DESCRIBED, code::SMALL_ULONG, section]);
}

fn annotations(out: &mut Vec<u8>, section: u8, fields: &Fields) {
    if !fields.is_empty() {
        describe(out, section);
        fields.encode(out);
    }
}

/// Annotations whose keys are symbols; those with ulong keys, which are reserved, are left out.
fn symbol_fields(r: &mut Reader<'_>) -> Result<Fields, WireError> {
    let (mut inner, count) = r.map("annotations")?;
    let mut fields = Vec::new();
    for _ in 0..count / 2 {
        let (key, value) = (Value::decode(&mut inner)?, Value::decode(&mut inner)?);
        if let Value::Symbol(key) = key {
            fields.push((key, value));
        }
    }
    Ok(Fields(fields))
}

fn string_map(r: &mut Reader<'_>) -> Result<Vec<(String, Value)>, WireError> {
    let (mut inner, count) = r.map("application-properties")?;
    let mut pairs = Vec::new();
    for _ in 0..count / 2 {
        pairs.push((String::decode(&mut inner)?, Value::decode(&mut inner)?));
    }
    inner.end("application-properties")?;
    Ok(pairs)
}

fn decode_body(octets: &Bytes, body: Range<usize>) -> Result<Body, WireError> {
    let body = octets.slice(body);
    let mut r = Reader::new(&body);
    let (mut data, mut sequences) = (Vec::new(), Vec::new());
    while !r.is_empty() {
        match super::layout::read_section(&mut r)? {
            section::DATA => {
                let found = read_binary(&mut r)?;
                data.push(body.slice_ref(found));
            }
            section::SEQUENCE => match Value::decode(&mut r)? {
                Value::List(items) => sequences.push(items),
                _ => {
                    return Err(WireError::Invalid { what: "amqp-sequence", detail: "is no list" });
                }
            },
            _ => return Value::decode(&mut r).map(Body::Value),
        }
    }
    Ok(if sequences.is_empty() { Body::Data(data) } else { Body::Sequence(sequences) })
}
