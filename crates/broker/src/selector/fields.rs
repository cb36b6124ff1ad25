//! The names in a selector, and what a message has under them.

use super::number::Number;
use super::program::Operand;
use super::{Fuel, Subject};
use hopline_driver::engine::wire::Value;
use hopline_driver::engine::wire::codec::{Decode, Reader, code};
use hopline_driver::engine::wire::message::Head;
use std::borrow::Cow;
use std::collections::HashMap;

/// A field of header or properties.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Field {
    Durable,
    Priority,
    Ttl,
    FirstAcquirer,
    DeliveryCount,
    /// JMS: `PERSISTENT` or `NON_PERSISTENT`.
    DeliveryMode,
    /// JMS: deliveries, this one included.
    Deliveries,
    /// JMS: whether a delivery has failed.
    Redelivered,
    /// The so manieth of the properties (3.2.4).
    Property(usize),
    /// Likewise, an id as JMS spells it.
    Id(usize),
}

/// The place of `message-id` among the properties.
const MESSAGE_ID: usize = 0;

/// How many properties there are (3.2.4).
const PROPERTIES: usize = 13;

/// Names under this prefix are all known.
const PREFIX: &str = "amqp.";

const FIELDS: [(&str, Field); 32] = [
    ("amqp.durable", Field::Durable),
    ("amqp.priority", Field::Priority),
    ("amqp.ttl", Field::Ttl),
    ("amqp.first_acquirer", Field::FirstAcquirer),
    ("amqp.delivery_count", Field::DeliveryCount),
    ("amqp.message_id", Field::Property(0)),
    ("amqp.user_id", Field::Property(1)),
    ("amqp.to", Field::Property(2)),
    ("amqp.subject", Field::Property(3)),
    ("amqp.reply_to", Field::Property(4)),
    ("amqp.correlation_id", Field::Property(5)),
    ("amqp.content_type", Field::Property(6)),
    ("amqp.content_encoding", Field::Property(7)),
    ("amqp.absolute_expiry_time", Field::Property(8)),
    ("amqp.creation_time", Field::Property(9)),
    ("amqp.group_id", Field::Property(10)),
    ("amqp.group_sequence", Field::Property(11)),
    ("amqp.reply_to_group_id", Field::Property(12)),
    ("JMSDeliveryMode", Field::DeliveryMode),
    ("JMSPriority", Field::Priority),
    ("JMSRedelivered", Field::Redelivered),
    ("JMSXDeliveryCount", Field::Deliveries),
    ("JMSMessageID", Field::Id(0)),
    ("JMSXUserID", Field::Property(1)),
    ("JMSDestination", Field::Property(2)),
    ("JMSType", Field::Property(3)),
    ("JMSReplyTo", Field::Property(4)),
    ("JMSCorrelationID", Field::Id(5)),
    ("JMSExpiration", Field::Property(8)),
    ("JMSTimestamp", Field::Property(9)),
    ("JMSXGroupID", Field::Property(10)),
    ("JMSXGroupSeq", Field::Property(11)),
];

/// The names that a selector loads: each has a slot, so that one pass over a message fills all.
#[derive(Debug, Default)]
pub(super) struct Names {
    fields: Vec<(Field, usize)>,
    application_properties: HashMap<String, usize>,
}

impl Names {
    /// The slot of a name. The error says what is wrong with it.
    pub(super) fn slot(&mut self, name: String) -> Result<usize, String> {
        let free = self.len();
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
            if name.starts_with(PREFIX) {
                return Err(format!("there is no field {name}: see the list of amqp. names"));
            }
            return Ok(*self.application_properties.entry(name).or_insert(free));
        };
        if let Some((_, slot)) = self.fields.iter().find(|(known, _)| known == field) {
            return Ok(*slot);
        }
        self.fields.push((*field, free));
        Ok(free)
    }

    fn len(&self) -> usize {
        self.fields.len() + self.application_properties.len()
    }

    /// Fills the slots. `None`: the message does not decode, or the fuel is spent.
    pub(super) fn load<'a>(
        &self,
        subject: &Subject<'a>,
        fuel: &mut Fuel,
    ) -> Option<Vec<Operand<'a>>> {
        let mut slots = vec![Operand::Null; self.len()];
        let head = Head::scan(subject.bare).ok()?;
        let wants_properties =
            self.fields.iter().any(|(field, _)| matches!(field, Field::Property(_) | Field::Id(_)));
        let properties = match head.properties.filter(|_| wants_properties) {
            Some(octets) => {
                fuel.burn(octets.len())?;
                properties(octets)?
            }
            None => [const { Operand::Null }; PROPERTIES],
        };
        for (field, slot) in &self.fields {
            *slots.get_mut(*slot)? = field.of(subject, &properties)?;
        }
        if let Some(octets) = head.application_properties
            && !self.application_properties.is_empty()
        {
            fuel.burn(octets.len())?;
            self.load_application_properties(octets, &mut slots)?;
        }
        Some(slots)
    }

    fn load_application_properties<'a>(
        &self,
        octets: &'a [u8],
        slots: &mut [Operand<'a>],
    ) -> Option<()> {
        let (mut r, count) = Reader::new(octets).map("application-properties").ok()?;
        for _ in 0..count / 2 {
            let Operand::Text(key) = operand(&mut r)? else { return None };
            match self.application_properties.get(&*key) {
                Some(slot) => *slots.get_mut(*slot)? = operand(&mut r)?.plain(),
                None => {
                    r.skip().ok()?;
                }
            }
        }
        Some(())
    }
}

impl Field {
    fn of<'a>(
        self,
        subject: &Subject<'a>,
        properties: &[Operand<'a>; PROPERTIES],
    ) -> Option<Operand<'a>> {
        let header = &subject.header;
        let exact = |n: u32| Operand::Number(Number::Exact(n.into()));
        Some(match self {
            Self::Durable => Operand::Boolean(header.durable),
            Self::Priority => exact(header.priority.into()),
            Self::Ttl => header.ttl.map_or(Operand::Null, exact),
            Self::FirstAcquirer => Operand::Boolean(header.first_acquirer),
            Self::DeliveryCount => exact(header.delivery_count),
            Self::DeliveryMode => {
                let mode = if header.durable { "PERSISTENT" } else { "NON_PERSISTENT" };
                Operand::Text(Cow::Borrowed(mode))
            }
            Self::Deliveries => exact(header.delivery_count.saturating_add(1)),
            Self::Redelivered => Operand::Boolean(header.delivery_count > 0),
            Self::Property(at) => properties.get(at)?.clone().plain(),
            Self::Id(at) => id(properties.get(at)?, at == MESSAGE_ID)?,
        })
    }
}

/// An id as JMS clients see it, its type in front (JMS mapping, 3.2.1.1). A correlation-id that is
/// a text is the application's own.
fn id<'a>(id: &Operand<'a>, is_message_id: bool) -> Option<Operand<'a>> {
    Some(Operand::Text(match id {
        Operand::Null => return Some(Operand::Null),
        Operand::Text(text) if text.starts_with("ID:") || !is_message_id => text.clone(),
        Operand::Text(text) => format!("ID:AMQP_NO_PREFIX:{text}").into(),
        Operand::Number(Number::Exact(n)) => format!("ID:AMQP_ULONG:{n}").into(),
        Operand::Uuid(uuid) => format!("ID:AMQP_UUID:{}", uuid.hyphenated()).into(),
        Operand::Binary(octets) => {
            let digits = octets.iter().map(|octet| format!("{octet:02X}"));
            format!("ID:AMQP_BINARY:{}", digits.collect::<String>()).into()
        }
        _ => return None,
    }))
}

fn properties(octets: &[u8]) -> Option<[Operand<'_>; PROPERTIES]> {
    let mut properties = [const { Operand::Null }; PROPERTIES];
    let (mut r, count) = Reader::new(octets).list("properties").ok()?;
    for at in 0..count {
        *properties.get_mut(at)? = operand(&mut r)?;
    }
    Some(properties)
}

/// Takes one value; texts and binaries are borrowed.
fn operand<'a>(r: &mut Reader<'a>) -> Option<Operand<'a>> {
    let code = r.peek()?;
    let mut variable = |is_wide| {
        r.octet("value").ok()?;
        r.variable(is_wide, "value").ok()
    };
    match code {
        code::STRING8 | code::SYMBOL8 => {
            std::str::from_utf8(variable(false)?).ok().map(|text| Operand::Text(text.into()))
        }
        code::STRING32 | code::SYMBOL32 => {
            std::str::from_utf8(variable(true)?).ok().map(|text| Operand::Text(text.into()))
        }
        code::BINARY8 => variable(false).map(Operand::Binary),
        code::BINARY32 => variable(true).map(Operand::Binary),
        code::DESCRIBED | code::LIST0 | code::LIST8.. => r.skip().ok().map(|_| Operand::Other),
        _ => Value::decode(r).ok().map(|value| fixed(&value)),
    }
}

/// A value of fixed width.
fn fixed<'a>(value: &Value) -> Operand<'a> {
    let exact = |n: i128| Operand::Number(Number::Exact(n));
    let approximate = |n| Operand::Number(Number::Approximate(n));
    match value {
        Value::Null => Operand::Null,
        Value::Boolean(truth) => Operand::Boolean(*truth),
        Value::Ubyte(n) => exact((*n).into()),
        Value::Ushort(n) => exact((*n).into()),
        Value::Uint(n) => exact((*n).into()),
        Value::Ulong(n) => exact((*n).into()),
        Value::Byte(n) => exact((*n).into()),
        Value::Short(n) => exact((*n).into()),
        Value::Int(n) => exact((*n).into()),
        Value::Long(n) | Value::Timestamp(n) => exact((*n).into()),
        Value::Float(n) => approximate((*n).into()),
        Value::Double(n) => approximate(*n),
        Value::Decimal32(octets) => Operand::Number(Number::decimal(octets)),
        Value::Decimal64(octets) => Operand::Number(Number::decimal(octets)),
        Value::Decimal128(octets) => Operand::Number(Number::decimal(octets)),
        Value::Char(c) => Operand::Text(c.to_string().into()),
        Value::Uuid(octets) => Operand::Uuid(uuid::Uuid::from_bytes(*octets)),
        _ => Operand::Other,
    }
}
