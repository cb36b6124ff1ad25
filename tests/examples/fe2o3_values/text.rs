//! Values and their text, see `tests/values/README.md`.

use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{
    AmqpSequence, ApplicationProperties, Body, Data, Footer, MessageAnnotations, MessageId,
    Properties,
};
use fe2o3_amqp::types::primitives::{
    Array, Binary, OrderedMap, SimpleValue, Symbol, Timestamp, Uuid, Value,
};
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_json::{Map, Value as Json, json};

use crate::{AnyMessage, Failure};

type Pairs = Vec<(Value, Value)>;

/// The library's value for its text.
pub(crate) fn built(text: &Json) -> Result<Value, Failure> {
    let kind = text[0].as_str().ok_or("a value has a type")?;
    let word = text[1].as_str().unwrap_or_default();
    Ok(match kind {
        "null" => Value::Null,
        "boolean" => Value::Bool(text[1] == true),
        "ubyte" => Value::Ubyte(word.parse()?),
        "ushort" => Value::Ushort(word.parse()?),
        "uint" => Value::Uint(word.parse()?),
        "ulong" => Value::Ulong(word.parse()?),
        "byte" => Value::Byte(word.parse()?),
        "short" => Value::Short(word.parse()?),
        "int" => Value::Int(word.parse()?),
        "long" => Value::Long(word.parse()?),
        "timestamp" => Value::Timestamp(Timestamp::from_milliseconds(word.parse()?)),
        "float" => Value::Float(f32::from_be_bytes(octets(word)?).into()),
        "double" => Value::Double(f64::from_be_bytes(octets(word)?).into()),
        "decimal32" => Value::Decimal32(octets(word)?.into()),
        "decimal64" => Value::Decimal64(octets(word)?.into()),
        "decimal128" => Value::Decimal128(octets(word)?.into()),
        "char" => Value::Char(char::from_u32(u32::from_str_radix(word, 16)?).ok_or("no char")?),
        "uuid" => Value::Uuid(Uuid::from(octets::<16>(word)?)),
        "binary" => Value::Binary(unhex(word)?.into()),
        "string" => Value::String(word.into()),
        "symbol" => Value::Symbol(Symbol(word.into())),
        "list" => Value::List(built_list(&text[1])?),
        "map" => Value::Map(OrderedMap::from_iter(built_pairs(&text[1])?)),
        "array" => Value::Array(Array(built_list(&text[2])?)),
        "described" => {
            let descriptor = built_descriptor(&text[1])?;
            Value::Described(Box::new(Described { descriptor, value: built(&text[2])? }))
        }
        other => return Err(format!("no type {other}").into()),
    })
}

fn built_descriptor(text: &Json) -> Result<Descriptor, Failure> {
    match built(text)? {
        Value::Ulong(code) => Ok(Descriptor::Code(code)),
        Value::Symbol(name) => Ok(Descriptor::Name(name)),
        other => Err(format!("the library has no descriptor {other:?}").into()),
    }
}

pub(crate) fn built_list(text: &Json) -> Result<Vec<Value>, Failure> {
    text.as_array().into_iter().flatten().map(built).collect()
}

pub(crate) fn built_pairs(text: &Json) -> Result<Pairs, Failure> {
    let pairs = text.as_array().into_iter().flatten();
    pairs.map(|pair| Ok((built(&pair[0])?, built(&pair[1])?))).collect()
}

pub(crate) fn data<'a>(parts: impl Iterator<Item = &'a Json>) -> Result<Body<Value>, Failure> {
    let octets = parts.map(|part| unhex(part.as_str().ok_or("data is hexadecimal")?));
    let sections = octets.map(|it| it.map(|octets| Data(Binary::from(octets))));
    Ok(Body::Data(sections.collect::<Result<Vec<_>, _>>()?.into()))
}

pub(crate) fn sequences<'a>(parts: impl Iterator<Item = &'a Json>) -> Result<Body<Value>, Failure> {
    let sections = parts.map(|items| built_list(items).map(AmqpSequence));
    Ok(Body::Sequence(sections.collect::<Result<Vec<_>, _>>()?.into()))
}

fn keyed(pairs: Pairs) -> Result<OrderedMap<OwnedKey, Value>, Failure> {
    let keyed = pairs.into_iter().map(|(key, value)| match key {
        Value::Symbol(key) => Ok((OwnedKey::Symbol(key), value)),
        Value::Ulong(key) => Ok((OwnedKey::Ulong(key), value)),
        other => Err(Failure::from(format!("no key of annotations: {other:?}"))),
    });
    keyed.collect()
}

pub(crate) fn annotations(pairs: Pairs) -> Result<MessageAnnotations, Failure> {
    Ok(MessageAnnotations(keyed(pairs)?))
}

pub(crate) fn footer(pairs: Pairs) -> Result<Footer, Failure> {
    Ok(Footer(keyed(pairs)?))
}

pub(crate) fn application_properties(pairs: Pairs) -> Result<ApplicationProperties, Failure> {
    let simple = pairs.into_iter().map(|(key, value)| {
        let Value::String(key) = key else { return Err("a key is a string".into()) };
        let value = SimpleValue::try_from(value).map_err(|_| "the library calls it not simple")?;
        Ok::<_, Failure>((key, value))
    });
    Ok(ApplicationProperties(simple.collect::<Result<_, _>>()?))
}

pub(crate) fn built_properties(text: &Json) -> Result<Properties, Failure> {
    let field = |name: &str| text.get(name).map(built).transpose();
    let word = |name: &str| Ok::<_, Failure>(text[name][1].as_str().map(str::to_owned));
    let instant = |name: &str| {
        let millis = text[name][1].as_str().map(str::parse::<i64>).transpose();
        millis.map(|it| it.map(Timestamp::from_milliseconds))
    };
    Ok(Properties {
        message_id: field("message-id")?.map(message_id).transpose()?,
        user_id: word("user-id")?.map(|it| unhex(&it)).transpose()?.map(Binary::from),
        to: word("to")?,
        subject: word("subject")?,
        reply_to: word("reply-to")?,
        correlation_id: field("correlation-id")?.map(message_id).transpose()?,
        content_type: word("content-type")?.map(Symbol),
        content_encoding: word("content-encoding")?.map(Symbol),
        absolute_expiry_time: instant("absolute-expiry-time")?,
        creation_time: instant("creation-time")?,
        group_id: word("group-id")?,
        group_sequence: word("group-sequence")?.map(|it| it.parse()).transpose()?,
        reply_to_group_id: word("reply-to-group-id")?,
    })
}

fn message_id(value: Value) -> Result<MessageId, Failure> {
    Ok(match value {
        Value::Ulong(id) => MessageId::Ulong(id),
        Value::Uuid(id) => MessageId::Uuid(id),
        Value::Binary(id) => MessageId::Binary(id),
        Value::String(id) => MessageId::String(id),
        other => return Err(format!("no message-id: {other:?}").into()),
    })
}

/// The text of a message that the library decoded.
pub(crate) fn of_message(message: &AnyMessage) -> Json {
    let mut text = Map::new();
    let header = message.header.clone().unwrap_or_default();
    if header.durable {
        text.insert("durable".into(), true.into());
    }
    if header.priority.0 != 4 {
        text.insert("priority".into(), header.priority.0.into());
    }
    let annotations = message.message_annotations.iter().flat_map(|it| it.0.iter());
    note(&mut text, "message-annotations", annotations.map(of_keyed).collect());
    let application = message.application_properties.iter().flat_map(|it| it.0.iter());
    let application = application.map(|(k, v)| json!([["string", k], of(&v.clone().into())]));
    note(&mut text, "application-properties", application.collect());
    let footer = message.footer.iter().flat_map(|it| it.0.iter());
    note(&mut text, "footer", footer.map(of_keyed).collect());
    if let Some(properties) = message.properties.as_ref().map(of_properties)
        && !properties.is_empty()
    {
        text.insert("properties".into(), properties.into());
    }
    let body = match &message.body {
        Body::Data(parts) => json!(["data", parts.iter().map(|it| hex(&it.0)).collect::<Vec<_>>()]),
        Body::Sequence(parts) => {
            json!(["sequence", parts.iter().map(|it| of_list(&it.0)).collect::<Vec<_>>()])
        }
        Body::Value(value) => json!(["value", of(&value.0)]),
        Body::Empty => json!(["value", ["null"]]),
    };
    text.insert("body".into(), body);
    text.into()
}

fn note(text: &mut Map<String, Json>, section: &str, pairs: Vec<Json>) {
    if !pairs.is_empty() {
        text.insert(section.into(), pairs.into());
    }
}

fn of_keyed((key, value): (&OwnedKey, &Value)) -> Json {
    match key {
        OwnedKey::Symbol(key) => json!([["symbol", key.0], of(value)]),
        OwnedKey::Ulong(key) => json!([["ulong", key.to_string()], of(value)]),
    }
}

fn of_properties(properties: &Properties) -> Map<String, Json> {
    let string = |it: &Option<String>| it.as_ref().map(|it| json!(["string", it]));
    let symbol = |it: &Option<Symbol>| it.as_ref().map(|it| json!(["symbol", it.0]));
    let instant = |it: &Option<Timestamp>| it.as_ref().map(|it| of(&Value::Timestamp(it.clone())));
    let fields = [
        ("message-id", properties.message_id.as_ref().map(of_message_id)),
        ("user-id", properties.user_id.as_ref().map(|it| json!(["binary", hex(it)]))),
        ("to", string(&properties.to)),
        ("subject", string(&properties.subject)),
        ("reply-to", string(&properties.reply_to)),
        ("correlation-id", properties.correlation_id.as_ref().map(of_message_id)),
        ("content-type", symbol(&properties.content_type)),
        ("content-encoding", symbol(&properties.content_encoding)),
        ("absolute-expiry-time", instant(&properties.absolute_expiry_time)),
        ("creation-time", instant(&properties.creation_time)),
        ("group-id", string(&properties.group_id)),
        ("group-sequence", properties.group_sequence.map(|it| json!(["uint", it.to_string()]))),
        ("reply-to-group-id", string(&properties.reply_to_group_id)),
    ];
    fields.into_iter().filter_map(|(name, field)| Some((name.to_owned(), field?))).collect()
}

fn of_message_id(id: &MessageId) -> Json {
    of(&match id.clone() {
        MessageId::Ulong(id) => Value::Ulong(id),
        MessageId::Uuid(id) => Value::Uuid(id),
        MessageId::Binary(id) => Value::Binary(id),
        MessageId::String(id) => Value::String(id),
    })
}

/// The text of a value that the library decoded.
fn of(value: &Value) -> Json {
    match value {
        Value::Null => json!(["null"]),
        Value::Bool(it) => json!(["boolean", it]),
        Value::Ubyte(it) => json!(["ubyte", it.to_string()]),
        Value::Ushort(it) => json!(["ushort", it.to_string()]),
        Value::Uint(it) => json!(["uint", it.to_string()]),
        Value::Ulong(it) => json!(["ulong", it.to_string()]),
        Value::Byte(it) => json!(["byte", it.to_string()]),
        Value::Short(it) => json!(["short", it.to_string()]),
        Value::Int(it) => json!(["int", it.to_string()]),
        Value::Long(it) => json!(["long", it.to_string()]),
        Value::Float(it) => json!(["float", hex(&it.0.to_be_bytes())]),
        Value::Double(it) => json!(["double", hex(&it.0.to_be_bytes())]),
        Value::Decimal32(it) => json!(["decimal32", hex(it.as_inner())]),
        Value::Decimal64(it) => json!(["decimal64", hex(it.as_inner())]),
        Value::Decimal128(it) => json!(["decimal128", hex(it.as_inner())]),
        Value::Char(it) => json!(["char", format!("{:x}", u32::from(*it))]),
        Value::Timestamp(it) => json!(["timestamp", it.milliseconds().to_string()]),
        Value::Uuid(it) => json!(["uuid", hex(it.as_inner())]),
        Value::Binary(it) => json!(["binary", hex(it)]),
        Value::String(it) => json!(["string", it]),
        Value::Symbol(it) => json!(["symbol", it.0]),
        Value::List(it) => json!(["list", of_list(it)]),
        Value::Map(it) => {
            json!(["map", it.iter().map(|(k, v)| json!([of(k), of(v)])).collect::<Vec<_>>()])
        }
        Value::Array(it) => {
            let items = of_list(&it.0);
            json!(["array", items.first().map(kind_of), items])
        }
        Value::Described(it) => json!(["described", of_descriptor(&it.descriptor), of(&it.value)]),
    }
}

fn of_list(items: &[Value]) -> Vec<Json> {
    items.iter().map(of).collect()
}

/// The type of an array by its first element; one without elements has lost its type.
fn kind_of(text: &Json) -> Json {
    match text[0].as_str() {
        Some("described") => json!(["described", text[1], text[2][0]]),
        _ => text[0].clone(),
    }
}

fn of_descriptor(descriptor: &Descriptor) -> Json {
    match descriptor {
        Descriptor::Code(code) => json!(["ulong", code.to_string()]),
        Descriptor::Name(name) => json!(["symbol", name.0]),
    }
}

fn octets<const N: usize>(text: &str) -> Result<[u8; N], Failure> {
    unhex(text)?.try_into().map_err(|_| format!("not {N} octets: {text}").into())
}

fn unhex(text: &str) -> Result<Vec<u8>, Failure> {
    let octet = |at| Ok(u8::from_str_radix(&text[at..at + 2], 16)?);
    (0..text.len()).step_by(2).map(octet).collect()
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
