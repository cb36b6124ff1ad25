//! Any AMQP value (part 1), for the places where the standard allows any.

use crate::codec::{Decode, Encode, Reader, code, put_variable, read_boolean};
use crate::{Symbol, WireError, limits};
use bytes::Bytes;

/// A value of any AMQP type. Two values are equal if they have the same type and the same octets,
/// except for `float` and `double`, which compare as numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// null.
    Null,
    /// boolean.
    Boolean(bool),
    /// ubyte.
    Ubyte(u8),
    /// ushort.
    Ushort(u16),
    /// uint.
    Uint(u32),
    /// ulong.
    Ulong(u64),
    /// byte.
    Byte(i8),
    /// short.
    Short(i16),
    /// int.
    Int(i32),
    /// long.
    Long(i64),
    /// float.
    Float(f32),
    /// double.
    Double(f64),
    /// decimal32, as its octets.
    Decimal32([u8; 4]),
    /// decimal64, as its octets.
    Decimal64([u8; 8]),
    /// decimal128, as its octets.
    Decimal128([u8; 16]),
    /// char.
    Char(char),
    /// timestamp: milliseconds since 1970, UTC.
    Timestamp(i64),
    /// uuid.
    Uuid([u8; 16]),
    /// binary.
    Binary(Bytes),
    /// string.
    String(String),
    /// symbol.
    Symbol(Symbol),
    /// list.
    List(Vec<Value>),
    /// map, in the order that it was sent.
    Map(Vec<(Value, Value)>),
    /// array, as the octets behind its size: count, constructor, elements. It stays as it was sent.
    Array(Array),
    /// A described value.
    Described(Box<(Value, Value)>),
}

/// An array (part 1, 1.6.24): count and elements, all with one constructor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    count: u32,
    octets: Bytes,
}

impl Array {
    /// Reads the elements.
    ///
    /// # Errors
    /// Elements that do not decode or do not fill the array, more elements without octets than the
    /// limit, or a descriptor so long that a copy for each element would be out of proportion.
    pub fn values(&self) -> Result<Vec<Value>, WireError> {
        // Some leave out the constructor where there is nothing to construct.
        if self.octets.is_empty() && self.is_empty() {
            return Ok(Vec::new());
        }
        let mut r = Reader::new(&self.octets);
        let constructor = Constructor::read(&mut r)?;
        let count = self.count as usize;
        if constructor.is_zero_width() && count > limits::ZERO_WIDTH_ITEMS {
            let limit = limits::ZERO_WIDTH_ITEMS;
            return Err(WireError::Limit { what: "count of an array without octets", limit });
        }
        let mut values = Vec::new();
        for _ in 0..count {
            let value = decode_body(&mut r, constructor.code, limits::NESTING)?;
            values.push(constructor.describe(value));
        }
        r.end("array")?;
        Ok(values)
    }

    /// An array of symbols.
    pub fn symbols(symbols: &[Symbol]) -> Self {
        let mut octets = vec![code::SYMBOL32];
        for symbol in symbols {
            let text = symbol.as_str();
            octets.extend_from_slice(&(text.len() as u32).to_be_bytes());
            octets.extend_from_slice(text.as_bytes());
        }
        Self { count: symbols.len() as u32, octets: octets.into() }
    }

    /// How many elements.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The constructor that all elements of an array share: descriptors, the outermost first, and a
/// format code (1.2).
struct Constructor {
    descriptors: Vec<Value>,
    code: u8,
}

impl Constructor {
    fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let (mut descriptors, start) = (Vec::new(), r.position());
        loop {
            let code = r.octet("array constructor")?;
            if code != code::DESCRIBED {
                return Ok(Self { descriptors, code });
            }
            if descriptors.len() >= limits::ARRAY_DESCRIPTORS {
                let limit = limits::ARRAY_DESCRIPTORS;
                return Err(WireError::Limit { what: "nesting of an array's descriptors", limit });
            }
            descriptors.push(decode_descriptor(r)?);
            let limit = limits::ARRAY_DESCRIPTOR;
            if r.position() - start > limit + 1 {
                return Err(WireError::Limit { what: "descriptor of an array's elements", limit });
            }
        }
    }

    /// An element with its descriptors.
    fn describe(&self, value: Value) -> Value {
        let described =
            |value, descriptor: &Value| Value::Described(Box::new((descriptor.clone(), value)));
        self.descriptors.iter().rev().fold(value, described)
    }

    const fn is_zero_width(&self) -> bool {
        self.code >> 4 == 4
    }
}

impl Decode for Value {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        decode_nested(r, limits::NESTING)
    }
}

fn decode_nested(r: &mut Reader<'_>, depth: usize) -> Result<Value, WireError> {
    match r.octet("value")? {
        code::DESCRIBED => {
            let depth = deeper(depth)?;
            let descriptor = decode_descriptor(r)?;
            let value = decode_nested(r, depth)?;
            Ok(Value::Described(Box::new((descriptor, value))))
        }
        code => decode_body(r, code, depth),
    }
}

fn deeper(depth: usize) -> Result<usize, WireError> {
    let limit = limits::NESTING;
    depth.checked_sub(1).ok_or(WireError::Limit { what: "nesting of values", limit })
}

fn decode_descriptor(r: &mut Reader<'_>) -> Result<Value, WireError> {
    match r.octet("descriptor")? {
        code::DESCRIBED => {
            Err(WireError::Invalid { what: "descriptor", detail: "is itself described" })
        }
        code::LIST0 | code::LIST8.. => {
            Err(WireError::Invalid { what: "descriptor", detail: "is a compound" })
        }
        code => decode_body(r, code, 0),
    }
}

fn decode_body(r: &mut Reader<'_>, code: u8, depth: usize) -> Result<Value, WireError> {
    Ok(match code {
        code::NULL => Value::Null,
        code::TRUE => Value::Boolean(true),
        code::FALSE => Value::Boolean(false),
        code::BOOLEAN => Value::Boolean(read_boolean(r)?),
        code::UBYTE => Value::Ubyte(r.octet("ubyte")?),
        code::USHORT => Value::Ushort(u16::from_be_bytes(r.array("ushort")?)),
        code::UINT => Value::Uint(u32::from_be_bytes(r.array("uint")?)),
        code::SMALL_UINT => Value::Uint(r.octet("uint")?.into()),
        code::UINT0 => Value::Uint(0),
        code::ULONG => Value::Ulong(u64::from_be_bytes(r.array("ulong")?)),
        code::SMALL_ULONG => Value::Ulong(r.octet("ulong")?.into()),
        code::ULONG0 => Value::Ulong(0),
        code::BYTE => Value::Byte(r.octet("byte")? as i8),
        code::SHORT => Value::Short(i16::from_be_bytes(r.array("short")?)),
        code::INT => Value::Int(i32::from_be_bytes(r.array("int")?)),
        code::SMALL_INT => Value::Int((r.octet("int")? as i8).into()),
        code::LONG => Value::Long(i64::from_be_bytes(r.array("long")?)),
        code::SMALL_LONG => Value::Long((r.octet("long")? as i8).into()),
        code::FLOAT => Value::Float(f32::from_be_bytes(r.array("float")?)),
        code::DOUBLE => Value::Double(f64::from_be_bytes(r.array("double")?)),
        code::DECIMAL32 => Value::Decimal32(r.array("decimal32")?),
        code::DECIMAL64 => Value::Decimal64(r.array("decimal64")?),
        code::DECIMAL128 => Value::Decimal128(r.array("decimal128")?),
        code::CHAR => Value::Char(
            char::from_u32(u32::from_be_bytes(r.array("char")?))
                .ok_or(WireError::Invalid { what: "char", detail: "is not a Unicode scalar" })?,
        ),
        code::TIMESTAMP => Value::Timestamp(i64::from_be_bytes(r.array("timestamp")?)),
        code::UUID => Value::Uuid(r.array("uuid")?),
        code::BINARY8 | code::BINARY32 => {
            let octets = r.variable(code == code::BINARY32, "binary")?;
            Value::Binary(Bytes::copy_from_slice(octets))
        }
        code::STRING8 | code::STRING32 => {
            let octets = r.variable(code == code::STRING32, "string")?;
            let text = std::str::from_utf8(octets)
                .map_err(|_| WireError::Invalid { what: "string", detail: "is not UTF-8" })?;
            Value::String(text.to_owned())
        }
        code::SYMBOL8 | code::SYMBOL32 => {
            Value::Symbol(Symbol::from_octets(r.variable(code == code::SYMBOL32, "symbol")?)?)
        }
        _ => return decode_compound(r, code, deeper(depth)?),
    })
}

fn decode_compound(r: &mut Reader<'_>, code: u8, depth: usize) -> Result<Value, WireError> {
    match code {
        code::LIST0 => Ok(Value::List(Vec::new())),
        code::LIST8 | code::LIST32 => {
            let (mut inner, count) = r.compound(code == code::LIST32, "list")?;
            decode_items(&mut inner, count, depth).map(Value::List)
        }
        code::MAP8 | code::MAP32 => {
            let (mut inner, count) = r.compound(code == code::MAP32, "map")?;
            decode_pairs(&mut inner, count, depth).map(Value::Map)
        }
        code::ARRAY8 | code::ARRAY32 => {
            let (inner, count) = r.compound(code == code::ARRAY32, "array")?;
            let octets = Bytes::copy_from_slice(inner.rest());
            Ok(Value::Array(Array { count: count as u32, octets }))
        }
        code => Err(WireError::Constructor { code, expected: "a value" }),
    }
}

fn decode_items(r: &mut Reader<'_>, count: usize, depth: usize) -> Result<Vec<Value>, WireError> {
    // Each item takes an octet at least: the octets bound the loop, whatever the count says.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(decode_nested(r, depth)?);
    }
    r.end("list")?;
    Ok(items)
}

fn decode_pairs(
    r: &mut Reader<'_>,
    count: usize,
    depth: usize,
) -> Result<Vec<(Value, Value)>, WireError> {
    if count % 2 == 1 {
        return Err(WireError::Invalid { what: "map", detail: "has a key without a value" });
    }
    let mut pairs = Vec::new();
    for _ in 0..count / 2 {
        pairs.push((decode_nested(r, depth)?, decode_nested(r, depth)?));
    }
    r.end("map")?;
    Ok(pairs)
}

impl Encode for Value {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(code::NULL),
            Self::Boolean(v) => v.encode(out),
            Self::Ubyte(v) => v.encode(out),
            Self::Ushort(v) => v.encode(out),
            Self::Uint(v) => v.encode(out),
            Self::Ulong(v) => v.encode(out),
            Self::Byte(v) => out.extend_from_slice(&[code::BYTE, *v as u8]),
            Self::Short(v) => fixed(out, code::SHORT, &v.to_be_bytes()),
            Self::Int(v) => match i8::try_from(*v) {
                Ok(small) => out.extend_from_slice(&[code::SMALL_INT, small as u8]),
                Err(_) => fixed(out, code::INT, &v.to_be_bytes()),
            },
            Self::Long(v) => v.encode(out),
            Self::Float(v) => fixed(out, code::FLOAT, &v.to_be_bytes()),
            Self::Double(v) => fixed(out, code::DOUBLE, &v.to_be_bytes()),
            Self::Decimal32(v) => fixed(out, code::DECIMAL32, v),
            Self::Decimal64(v) => fixed(out, code::DECIMAL64, v),
            Self::Decimal128(v) => fixed(out, code::DECIMAL128, v),
            Self::Char(v) => fixed(out, code::CHAR, &u32::from(*v).to_be_bytes()),
            Self::Timestamp(v) => fixed(out, code::TIMESTAMP, &v.to_be_bytes()),
            Self::Uuid(v) => fixed(out, code::UUID, v),
            Self::Binary(v) => v.encode(out),
            Self::String(v) => v.encode(out),
            Self::Symbol(v) => v.encode(out),
            Self::List(items) => encode_list(out, items),
            Self::Map(pairs) => encode_map(out, pairs.len(), |out| {
                for (key, value) in pairs {
                    key.encode(out);
                    value.encode(out);
                }
            }),
            Self::Array(array) => {
                out.push(code::ARRAY32);
                out.extend_from_slice(&(array.octets.len() as u32 + 4).to_be_bytes());
                out.extend_from_slice(&array.count.to_be_bytes());
                out.extend_from_slice(&array.octets);
            }
            Self::Described(pair) => {
                out.push(code::DESCRIBED);
                pair.0.encode(out);
                pair.1.encode(out);
            }
        }
    }
}

fn fixed(out: &mut Vec<u8>, code: u8, octets: &[u8]) {
    out.push(code);
    out.extend_from_slice(octets);
}

pub(crate) fn encode_list(out: &mut Vec<u8>, items: &[Value]) {
    if items.is_empty() {
        return out.push(code::LIST0);
    }
    compound(out, code::LIST8, code::LIST32, items.len(), |out| {
        items.iter().for_each(|item| item.encode(out));
    });
}

/// Writes a map of `pairs` pairs whose keys and values `write` appends.
pub fn encode_map(out: &mut Vec<u8>, pairs: usize, write: impl FnOnce(&mut Vec<u8>)) {
    compound(out, code::MAP8, code::MAP32, pairs * 2, write);
}

/// Writes a compound in the short form if size and count fit in it, else in the long one.
fn compound(
    out: &mut Vec<u8>,
    short: u8,
    long: u8,
    count: usize,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let at = out.len();
    out.extend_from_slice(&[long, 0, 0, 0, 0, 0, 0, 0, 0]);
    write(out);
    let octets = out.len() - at - 9;
    if octets < 255 && count <= 255 {
        out.splice(at..at + 9, [short, octets as u8 + 1, count as u8]);
        return;
    }
    let (size, count) = ((octets as u32 + 4).to_be_bytes(), (count as u32).to_be_bytes());
    for (slot, octet) in out.iter_mut().skip(at + 1).zip(size.into_iter().chain(count)) {
        *slot = octet;
    }
}

/// Writes a binary in the long form and returns where its octets begin: a place that can grow.
pub fn start_binary32(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[code::BINARY32, 0, 0, 0, 0]);
    out.len()
}

/// Fills in the size of the binary whose octets begin at `start` and end with `out`.
pub fn finish_binary32(out: &mut [u8], start: usize) {
    let size = ((out.len() - start) as u32).to_be_bytes();
    if let Some(slot) = out.get_mut(start - 4..start) {
        slot.copy_from_slice(&size);
    }
}

/// Writes a map in the long form, its size and count to be filled in, and returns where its
/// entries begin.
pub fn start_map32(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[code::MAP32, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.len()
}

/// Fills in size and count of the map of `pairs` pairs that begin at `start` and end with `out`.
pub fn finish_map32(out: &mut [u8], start: usize, pairs: usize) {
    let size = (out.len() - start + 4) as u32;
    let numbers = size.to_be_bytes().into_iter().chain((pairs as u32 * 2).to_be_bytes());
    for (slot, octet) in out.iter_mut().skip(start - 8).zip(numbers) {
        *slot = octet;
    }
}

macro_rules! value_from {
    ($($type:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })+
    };
}

value_from! {
    bool => Boolean, u8 => Ubyte, u16 => Ushort, u32 => Uint, u64 => Ulong,
    i8 => Byte, i16 => Short, i32 => Int, i64 => Long, f32 => Float, f64 => Double,
    char => Char, Bytes => Binary, String => String, &str => String, Symbol => Symbol,
    Vec<Value> => List,
}

impl Value {
    /// Appends a variable-width value in its shortest form; for who writes octets by hand.
    pub fn put_binary(out: &mut Vec<u8>, octets: &[u8]) {
        put_variable(out, code::BINARY8, code::BINARY32, octets);
    }

    /// The text of a string or symbol.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Symbol(symbol) => Some(symbol.as_str()),
            _ => None,
        }
    }
}
