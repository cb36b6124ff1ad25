//! Composite types (part 1, 1.4): a descriptor and a list of fields, declared once by
//! [`composite!`](crate::composite!) and read and written by [`FieldReader`] and [`FieldWriter`].

use crate::codec::{Decode, Encode, Reader, code};
use crate::value::Array;
use crate::{Symbol, Value, WireError};

/// A descriptor as it stands on the wire: the number of a standard type, or a symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// `domain << 32 | id`.
    Code(u64),
    /// The symbolic name.
    Name(&'a [u8]),
}

impl<'a> Descriptor<'a> {
    /// Takes the constructor octet 0x00 and the descriptor behind it.
    ///
    /// # Errors
    /// Anything but a described value with a ulong or symbol descriptor.
    #[inline]
    pub fn read(r: &mut Reader<'a>, expected: &'static str) -> Result<Self, WireError> {
        match r.octet(expected)? {
            code::DESCRIBED => {}
            code => return Err(WireError::Constructor { code, expected }),
        }
        match r.octet("descriptor")? {
            code::SMALL_ULONG => r.octet("descriptor").map(|n| Self::Code(n.into())),
            code::ULONG => r.array("descriptor").map(|n| Self::Code(u64::from_be_bytes(n))),
            code::ULONG0 => Ok(Self::Code(0)),
            code::SYMBOL8 => r.variable(false, "descriptor").map(Self::Name),
            code::SYMBOL32 => r.variable(true, "descriptor").map(Self::Name),
            code => Err(WireError::Constructor { code, expected: "a ulong or symbol descriptor" }),
        }
    }

    /// Whether this is the type with that number or name.
    pub fn is(&self, number: u64, name: &str) -> bool {
        match self {
            Self::Code(n) => *n == number,
            Self::Name(s) => *s == name.as_bytes(),
        }
    }

    /// The refusal of a descriptor where something else belongs.
    pub fn unexpected(&self, expected: &'static str) -> WireError {
        let descriptor = match self {
            Self::Code(n) => format!("0x{n:x}"),
            Self::Name(s) => String::from_utf8_lossy(s).chars().take(64).collect(),
        };
        WireError::Descriptor { descriptor, expected }
    }
}

/// Reads the fields of a composite in order. A field that is absent is null.
#[derive(Debug)]
pub struct FieldReader<'a> {
    fields: Reader<'a>,
    left: usize,
    composite: &'static str,
}

impl<'a> FieldReader<'a> {
    /// Takes the list of a composite whose descriptor was read.
    ///
    /// # Errors
    /// Anything but a list, or more than `max` fields.
    #[inline]
    pub fn new(r: &mut Reader<'a>, composite: &'static str, max: usize) -> Result<Self, WireError> {
        let (fields, left) = r.list(composite)?;
        if left > max {
            return Err(WireError::TooManyFields { composite, count: left });
        }
        Ok(Self { fields, left, composite })
    }

    /// Refuses octets behind the last field; for who has read all fields.
    ///
    /// # Errors
    /// A list that is longer than its fields.
    #[inline]
    pub fn end(&self) -> Result<(), WireError> {
        self.fields.end(self.composite)
    }

    fn present(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        !self.fields.take_null()
    }

    /// A field that may be null.
    #[inline]
    pub fn optional<T: Decode>(&mut self, _field: &'static str) -> Result<Option<T>, WireError> {
        if self.present() { T::decode(&mut self.fields).map(Some) } else { Ok(None) }
    }

    /// A field that may not be null.
    #[inline]
    pub fn required<T: Decode>(&mut self, field: &'static str) -> Result<T, WireError> {
        let composite = self.composite;
        self.optional(field)?.ok_or(WireError::MissingField { composite, field })
    }

    /// A field whose null means a default.
    #[inline]
    pub fn or<T: Decode>(&mut self, field: &'static str, default: T) -> Result<T, WireError> {
        Ok(self.optional(field)?.unwrap_or(default))
    }

    /// A field with `multiple="true"`: null, one symbol, or an array of symbols (part 1, 1.3.4).
    pub fn multiple(&mut self, _field: &'static str) -> Result<Vec<Symbol>, WireError> {
        if !self.present() {
            return Ok(Vec::new());
        }
        match self.fields.peek() {
            Some(code::ARRAY8 | code::ARRAY32) => read_symbols(&mut self.fields),
            _ => Symbol::decode(&mut self.fields).map(|one| vec![one]),
        }
    }

    /// A field with `multiple="true"` that may not be empty.
    pub fn multiple_required(&mut self, field: &'static str) -> Result<Vec<Symbol>, WireError> {
        let symbols = self.multiple(field)?;
        let composite = self.composite;
        if symbols.is_empty() {
            return Err(WireError::MissingField { composite, field });
        }
        Ok(symbols)
    }

    /// A field that provides a message-id (part 3, 3.2.11 to 3.2.14), or null.
    pub fn message_id(&mut self, field: &'static str) -> Result<Option<Value>, WireError> {
        let id = self.optional(field)?;
        match id {
            None | Some(Value::Ulong(_) | Value::Uuid(_) | Value::Binary(_) | Value::String(_)) => {
                Ok(id)
            }
            Some(_) => {
                let detail = "is neither ulong, uuid, binary nor string";
                Err(WireError::Invalid { what: field, detail })
            }
        }
    }

    /// A field that is a map with keys of any type, or null.
    pub fn map(&mut self, field: &'static str) -> Result<Option<Value>, WireError> {
        let map = self.optional(field)?;
        match map {
            None | Some(Value::Map(_)) => Ok(map),
            Some(_) => Err(WireError::Invalid { what: field, detail: "is no map" }),
        }
    }
}

fn read_symbols(r: &mut Reader<'_>) -> Result<Vec<Symbol>, WireError> {
    let wide = r.octet("array")? == code::ARRAY32;
    let (mut items, count) = r.compound(wide, "array of symbols")?;
    // Some leave out the constructor where there is nothing to construct.
    if count == 0 && items.is_empty() {
        return Ok(Vec::new());
    }
    let wide = match items.octet("array of symbols")? {
        code::SYMBOL8 => false,
        code::SYMBOL32 => true,
        code => return Err(WireError::Constructor { code, expected: "array of symbols" }),
    };
    // Each element takes an octet at least, so the loop ends with the octets of the array.
    let mut symbols = Vec::new();
    for _ in 0..count {
        symbols.push(Symbol::from_octets(items.variable(wide, "symbol")?)?);
    }
    items.end("array of symbols")?;
    Ok(symbols)
}

/// Writes the fields of a composite in order; nulls at the end are left out.
#[derive(Debug)]
pub struct FieldWriter<'o> {
    out: &'o mut Vec<u8>,
    list: usize,
    count: u8,
    kept: (usize, u8),
}

impl<'o> FieldWriter<'o> {
    /// Writes the descriptor `code` (below 256, as all of the standard's are) and opens the list.
    pub fn new(out: &'o mut Vec<u8>, code: u8) -> Self {
        out.extend_from_slice(&[0x00, code::SMALL_ULONG, code, code::LIST8, 0, 0]);
        let list = out.len() - 3;
        let kept = (out.len(), 0);
        Self { out, list, count: 0, kept }
    }

    /// A field that is there.
    #[inline]
    pub fn required<T: Encode + ?Sized>(&mut self, value: &T) {
        value.encode(self.out);
        self.count += 1;
        self.kept = (self.out.len(), self.count);
    }

    /// A null.
    #[inline]
    pub fn null(&mut self) {
        self.out.push(code::NULL);
        self.count += 1;
    }

    /// A field that may be null.
    #[inline]
    pub fn optional<T: Encode>(&mut self, value: &Option<T>) {
        match value {
            Some(value) => self.required(value),
            None => self.null(),
        }
    }

    /// A field that is left out where it has its default.
    #[inline]
    pub fn or<T: Encode + PartialEq>(&mut self, value: &T, default: T) {
        if *value == default { self.null() } else { self.required(value) }
    }

    /// A field with `multiple="true"`: null if empty, else an array.
    pub fn multiple(&mut self, symbols: &[Symbol]) {
        if symbols.is_empty() { self.null() } else { self.multiple_required(symbols) }
    }

    /// A field with `multiple="true"` that may not be empty.
    pub fn multiple_required(&mut self, symbols: &[Symbol]) {
        self.required(&Value::Array(Array::symbols(symbols)));
    }

    /// A field that provides a message-id, or null.
    pub fn message_id(&mut self, id: &Option<Value>) {
        self.optional(id);
    }

    /// A field that is a map with keys of any type, or null.
    pub fn map(&mut self, map: &Option<Value>) {
        self.optional(map);
    }

    /// Closes the list: `list0` if it is empty, `list8` if it is short, else `list32`.
    pub fn finish(self) {
        let Self { out, list, kept: (end, count), .. } = self;
        out.truncate(end);
        let size = end - (list + 2);
        if count == 0 {
            out.truncate(list);
            out.push(code::LIST0);
        } else if size <= 255 {
            out[list + 1] = size as u8;
            out[list + 2] = count;
        } else {
            let mut wide = [code::LIST32, 0, 0, 0, 0, 0, 0, 0, count];
            wide[1..5].copy_from_slice(&(size as u32 + 3).to_be_bytes());
            out.splice(list..list + 3, wide);
        }
    }
}

/// Declares a composite type: the struct, its reading, its writing, its place in the standard.
///
/// Each field says how it is read and written, by the name of the method of [`FieldReader`] and
/// [`FieldWriter`]: `required`, `optional`, `or(DEFAULT)`, `multiple`, `multiple_required`,
/// `message_id` or `map`.
#[macro_export]
macro_rules! composite {
    ($(#[$meta:meta])* $name:ident = $code:literal $symbol:literal {
        $($(#[$doc:meta])* $field:ident: $type:ty => $kind:ident $(($default:expr))?),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            /// The number of its descriptor.
            pub const CODE: u8 = $code;
            /// The symbolic descriptor.
            pub const SYMBOL: &'static str = $symbol;
            const FIELDS: usize = { let names: &[&str] = &[$(stringify!($field)),*]; names.len() };

            /// Reads the fields, the descriptor being read.
            ///
            /// # Errors
            /// What the standard forbids: a mandatory field missing, a wrong type, more fields.
            #[inline]
            pub fn decode_fields(
                r: &mut $crate::codec::Reader<'_>,
            ) -> Result<Self, $crate::WireError> {
                #[allow(unused_mut, unused_variables)]
                let mut fields =
                    $crate::composite::FieldReader::new(r, stringify!($name), Self::FIELDS)?;
                let composite = Self {
                    $($field: fields.$kind(stringify!($field) $(, $default)?)?),*
                };
                fields.end()?;
                Ok(composite)
            }
        }

        impl $crate::codec::Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                #[allow(unused_mut)]
                let mut fields = $crate::composite::FieldWriter::new(out, $code);
                $(fields.$kind(&self.$field $(, $default)?);)*
                fields.finish();
            }
        }

        impl $crate::codec::Decode for $name {
            fn decode(r: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::WireError> {
                let descriptor = $crate::composite::Descriptor::read(r, stringify!($name))?;
                if !descriptor.is($code, $symbol) {
                    return Err(descriptor.unexpected(stringify!($name)));
                }
                Self::decode_fields(r)
            }
        }
    };
}
