use hopline_messenger::driver::engine::wire::WireError;
use hopline_messenger::driver::engine::wire::codec::{Decode, Encode, Reader, code};
use hopline_messenger::driver::engine::wire::message::Layout;
use hopline_messenger::driver::engine::wire::value::Array;
use hopline_messenger::timeline::ANNOTATION;
use hopline_messenger::{Body, Message, Value};
use serde_json::{Map, Value as Json, json};
use std::ops::Range;

use super::hex;

/// The fields of the properties, in the order of the standard (part 3, 3.2.4).
const PROPERTIES: [&str; 13] = [
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
];

/// The bare message and the footer: what must come through a broker octet by octet.
///
/// # Panics
/// If it is no message.
pub fn bare(octets: &[u8]) -> &[u8] {
    let layout = Layout::scan(octets).unwrap_or_else(|error| panic!("{error}: {}", hex(octets)));
    &octets[layout.bare..]
}

/// A message as text, by our own decoder; a timeline in it is left out.
///
/// # Errors
/// It is no message, or a value in it does not decode.
pub fn text_of_message(octets: &[u8]) -> Result<Json, WireError> {
    let layout = Layout::scan(octets)?;
    let value =
        |range: Option<Range<usize>>| range.map(|range| decoded(&octets[range])).transpose();
    let mut text = Map::new();
    let header = layout.header.unwrap_or_default();
    if header.durable {
        text.insert("durable".into(), true.into());
    }
    if header.priority != 4 {
        text.insert("priority".into(), header.priority.into());
    }
    for (name, range) in [
        ("message-annotations", layout.message_annotations),
        ("application-properties", layout.application_properties),
        ("footer", layout.footer),
    ] {
        note_map(&mut text, name, value(range)?)?;
    }
    if let Some(Value::List(fields)) = value(layout.properties)? {
        note_properties(&mut text, &fields)?;
    }
    // Where there is none, Qpid Proton means null.
    let none = || json!(["value", ["null"]]);
    text.insert("body".into(), if layout.body.is_empty() { none() } else { body(octets)? });
    Ok(text.into())
}

fn decoded(octets: &[u8]) -> Result<Value, WireError> {
    let mut reader = Reader::new(octets);
    let value = Value::decode(&mut reader)?;
    reader.end("value")?;
    Ok(value)
}

fn note_map(text: &mut Map<String, Json>, name: &str, map: Option<Value>) -> Result<(), WireError> {
    let Some(Value::Map(pairs)) = map else { return Ok(()) };
    let is_timeline =
        |key: &Value| matches!(key, Value::Symbol(symbol) if symbol.as_str() == ANNOTATION);
    let pairs: Vec<_> = pairs.into_iter().filter(|(key, _)| !is_timeline(key)).collect();
    if !pairs.is_empty() {
        text.insert(name.into(), text_of_pairs(&pairs)?);
    }
    Ok(())
}

fn text_of_pairs(pairs: &[(Value, Value)]) -> Result<Json, WireError> {
    let pairs = pairs.iter().map(|(key, value)| Ok(json!([text_of(key)?, text_of(value)?])));
    pairs.collect()
}

fn note_properties(text: &mut Map<String, Json>, fields: &[Value]) -> Result<(), WireError> {
    let fields = PROPERTIES.iter().zip(fields).filter(|(_, value)| **value != Value::Null);
    let fields = fields.map(|(name, value)| Ok(((*name).to_owned(), text_of(value)?)));
    let fields: Map<_, _> = fields.collect::<Result<_, WireError>>()?;
    if !fields.is_empty() {
        text.insert("properties".into(), fields.into());
    }
    Ok(())
}

fn body(octets: &[u8]) -> Result<Json, WireError> {
    Ok(match Message::decode(&octets.to_vec().into())?.body {
        Body::Data(parts) => json!(["data", parts.iter().map(|it| hex(it)).collect::<Vec<_>>()]),
        Body::Sequence(parts) => {
            let parts: Result<Vec<_>, _> = parts.iter().map(|items| list(items)).collect();
            json!(["sequence", parts?])
        }
        Body::Value(value) => json!(["value", text_of(&value)?]),
    })
}

fn list(items: &[Value]) -> Result<Vec<Json>, WireError> {
    items.iter().map(text_of).collect()
}

fn text_of(value: &Value) -> Result<Json, WireError> {
    Ok(match value {
        Value::Null => json!(["null"]),
        Value::Boolean(it) => json!(["boolean", it]),
        Value::Ubyte(it) => json!(["ubyte", it.to_string()]),
        Value::Ushort(it) => json!(["ushort", it.to_string()]),
        Value::Uint(it) => json!(["uint", it.to_string()]),
        Value::Ulong(it) => json!(["ulong", it.to_string()]),
        Value::Byte(it) => json!(["byte", it.to_string()]),
        Value::Short(it) => json!(["short", it.to_string()]),
        Value::Int(it) => json!(["int", it.to_string()]),
        Value::Long(it) => json!(["long", it.to_string()]),
        Value::Float(it) => json!(["float", hex(&it.to_be_bytes())]),
        Value::Double(it) => json!(["double", hex(&it.to_be_bytes())]),
        Value::Decimal32(it) => json!(["decimal32", hex(it)]),
        Value::Decimal64(it) => json!(["decimal64", hex(it)]),
        Value::Decimal128(it) => json!(["decimal128", hex(it)]),
        Value::Char(it) => json!(["char", format!("{:x}", u32::from(*it))]),
        Value::Timestamp(it) => json!(["timestamp", it.to_string()]),
        Value::Uuid(it) => json!(["uuid", hex(it)]),
        Value::Binary(it) => json!(["binary", hex(it)]),
        Value::String(it) => json!(["string", it]),
        Value::Symbol(it) => json!(["symbol", it.as_str()]),
        Value::List(it) => json!(["list", list(it)?]),
        Value::Map(it) => json!(["map", text_of_pairs(it)?]),
        Value::Array(it) => text_of_array(it)?,
        Value::Described(it) => json!(["described", text_of(&it.0)?, text_of(&it.1)?]),
    })
}

fn text_of_array(array: &Array) -> Result<Json, WireError> {
    let mut octets = Vec::new();
    Value::Array(array.clone()).encode(&mut octets);
    // Behind the array's own constructor, size and count is that of its elements.
    let mut reader = Reader::new(&octets[9..]);
    let kind = match reader.octet("constructor")? {
        code::DESCRIBED => {
            let descriptor = Value::decode(&mut reader)?;
            json!(["described", text_of(&descriptor)?, kind_of(reader.octet("constructor")?)])
        }
        constructor => kind_of(constructor).into(),
    };
    Ok(json!(["array", kind, list(&array.values()?)?]))
}

const fn kind_of(constructor: u8) -> &'static str {
    use code::*;
    match constructor {
        NULL => "null",
        TRUE | FALSE | BOOLEAN => "boolean",
        UBYTE => "ubyte",
        USHORT => "ushort",
        UINT | SMALL_UINT | UINT0 => "uint",
        ULONG | SMALL_ULONG | ULONG0 => "ulong",
        BYTE => "byte",
        SHORT => "short",
        INT | SMALL_INT => "int",
        LONG | SMALL_LONG => "long",
        FLOAT => "float",
        DOUBLE => "double",
        DECIMAL32 => "decimal32",
        DECIMAL64 => "decimal64",
        DECIMAL128 => "decimal128",
        CHAR => "char",
        TIMESTAMP => "timestamp",
        UUID => "uuid",
        BINARY8 | BINARY32 => "binary",
        STRING8 | STRING32 => "string",
        SYMBOL8 | SYMBOL32 => "symbol",
        LIST0 | LIST8 | LIST32 => "list",
        MAP8 | MAP32 => "map",
        ARRAY8 | ARRAY32 => "array",
        _ => "unknown",
    }
}
