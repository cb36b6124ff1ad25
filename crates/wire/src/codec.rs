//! The primitive encodings of part 1 (1.6): a [`Reader`] over octets, and `Encode`/`Decode`.

use crate::{WireError, limits};
use bytes::Bytes;

/// Format codes of part 1, 1.6.
#[allow(missing_docs)]
pub mod code {
    pub const DESCRIBED: u8 = 0x00;
    pub const NULL: u8 = 0x40;
    pub const TRUE: u8 = 0x41;
    pub const FALSE: u8 = 0x42;
    pub const BOOLEAN: u8 = 0x56;
    pub const UBYTE: u8 = 0x50;
    pub const USHORT: u8 = 0x60;
    pub const UINT: u8 = 0x70;
    pub const SMALL_UINT: u8 = 0x52;
    pub const UINT0: u8 = 0x43;
    pub const ULONG: u8 = 0x80;
    pub const SMALL_ULONG: u8 = 0x53;
    pub const ULONG0: u8 = 0x44;
    pub const BYTE: u8 = 0x51;
    pub const SHORT: u8 = 0x61;
    pub const INT: u8 = 0x71;
    pub const SMALL_INT: u8 = 0x54;
    pub const LONG: u8 = 0x81;
    pub const SMALL_LONG: u8 = 0x55;
    pub const FLOAT: u8 = 0x72;
    pub const DOUBLE: u8 = 0x82;
    pub const DECIMAL32: u8 = 0x74;
    pub const DECIMAL64: u8 = 0x84;
    pub const DECIMAL128: u8 = 0x94;
    pub const CHAR: u8 = 0x73;
    pub const TIMESTAMP: u8 = 0x83;
    pub const UUID: u8 = 0x98;
    pub const BINARY8: u8 = 0xa0;
    pub const BINARY32: u8 = 0xb0;
    pub const STRING8: u8 = 0xa1;
    pub const STRING32: u8 = 0xb1;
    pub const SYMBOL8: u8 = 0xa3;
    pub const SYMBOL32: u8 = 0xb3;
    pub const LIST0: u8 = 0x45;
    pub const LIST8: u8 = 0xc0;
    pub const LIST32: u8 = 0xd0;
    pub const MAP8: u8 = 0xc1;
    pub const MAP32: u8 = 0xd1;
    pub const ARRAY8: u8 = 0xe0;
    pub const ARRAY32: u8 = 0xf0;
}

/// A cursor over octets. No method reads past the end or panics.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    buf: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `buf`.
    pub const fn new(buf: &'a [u8]) -> Self {
        Self { buf, at: 0 }
    }

    /// Octets read so far.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.buf.get(self.at..).unwrap_or_default()
    }

    /// Whether nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.at >= self.buf.len()
    }

    /// The next octet, without taking it.
    pub fn peek(&self) -> Option<u8> {
        self.buf.get(self.at).copied()
    }

    /// Passes over `n` octets that were looked at.
    pub(crate) const fn advance(&mut self, n: usize) {
        self.at += n;
    }

    /// Takes `n` octets.
    pub fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let have = self.buf.len() - self.at;
        match self.at.checked_add(n).and_then(|end| self.buf.get(self.at..end)) {
            Some(octets) => {
                self.at += n;
                Ok(octets)
            }
            None => Err(WireError::Truncated { what, need: n, have }),
        }
    }

    /// Takes exactly `N` octets as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        match self.rest().first_chunk::<N>() {
            Some(octets) => {
                self.at += N;
                Ok(*octets)
            }
            None => {
                let have = self.buf.len() - self.at;
                Err(WireError::Truncated { what, need: N, have })
            }
        }
    }

    /// Takes one octet.
    pub fn octet(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array::<1>(what).map(|[octet]| octet)
    }

    /// Takes a null if one is next.
    pub fn take_null(&mut self) -> bool {
        let null = self.peek() == Some(code::NULL);
        if null {
            self.at += 1;
        }
        null
    }

    /// Takes a size (or count) of one or four octets.
    fn size(&mut self, wide: bool, what: &'static str) -> Result<usize, WireError> {
        if wide {
            self.array::<4>(what).map(|octets| u32::from_be_bytes(octets) as usize)
        } else {
            self.octet(what).map(usize::from)
        }
    }

    /// Takes the contents of a variable-width value whose constructor was read.
    pub fn variable(&mut self, wide: bool, what: &'static str) -> Result<&'a [u8], WireError> {
        let size = self.size(wide, what)?;
        self.take(size, what)
    }

    /// Takes a compound (list, map) or array whose constructor was read: a cursor over its
    /// elements, and their count as the peer announces it.
    pub fn compound(
        &mut self,
        wide: bool,
        what: &'static str,
    ) -> Result<(Reader<'a>, usize), WireError> {
        let size = self.size(wide, what)?;
        let mut inner = Reader::new(self.take(size, what)?);
        let count = inner.size(wide, what)?;
        Ok((inner, count))
    }

    /// Takes a list: its elements and their count, at most one per octet.
    pub fn list(&mut self, what: &'static str) -> Result<(Reader<'a>, usize), WireError> {
        let (inner, count) = match self.octet(what)? {
            code::LIST0 => return Ok((Reader::new(&[]), 0)),
            code::LIST8 => self.compound(false, what)?,
            code::LIST32 => self.compound(true, what)?,
            code => return Err(WireError::Constructor { code, expected: what }),
        };
        inner.check_count(count, what)?;
        Ok((inner, count))
    }

    /// Takes a map: its keys and values in turn, and how many there are (an even number).
    pub fn map(&mut self, what: &'static str) -> Result<(Reader<'a>, usize), WireError> {
        let (inner, count) = match self.octet(what)? {
            code::MAP8 => self.compound(false, what)?,
            code::MAP32 => self.compound(true, what)?,
            code => return Err(WireError::Constructor { code, expected: what }),
        };
        inner.check_count(count, what)?;
        if count % 2 == 1 {
            return Err(WireError::Invalid { what, detail: "has a key without a value" });
        }
        Ok((inner, count))
    }

    /// Refuses octets behind the last element of a compound or array.
    pub fn end(&self, what: &'static str) -> Result<(), WireError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(WireError::Invalid { what, detail: "has octets behind its last element" })
    }

    fn check_count(&self, count: usize, what: &'static str) -> Result<(), WireError> {
        let have = self.rest().len();
        if count > have {
            return Err(WireError::Truncated { what, need: count, have });
        }
        Ok(())
    }

    /// Passes over one value, in time proportional to its constructors: compounds and arrays are
    /// passed by their size. Returns its octets.
    ///
    /// # Errors
    /// Truncated values, unknown constructors, descriptors nested deeper than the limit.
    #[inline]
    pub fn skip(&mut self) -> Result<&'a [u8], WireError> {
        // What most values are that are passed over.
        use code::{BINARY8, LIST8, MAP8, STRING8, SYMBOL8};
        if let Some([BINARY8 | STRING8 | SYMBOL8 | LIST8 | MAP8, size, ..]) =
            self.buf.get(self.at..)
            && let Some(value) = self.buf.get(self.at..self.at + 2 + usize::from(*size))
        {
            self.at += value.len();
            return Ok(value);
        }
        self.skip_any()
    }

    fn skip_any(&mut self) -> Result<&'a [u8], WireError> {
        let start = self.at;
        let mut described = 0;
        loop {
            let code = self.octet("value")?;
            if code == code::DESCRIBED {
                described += 1;
                if described > limits::NESTING {
                    let limit = limits::NESTING;
                    return Err(WireError::Limit { what: "nesting of descriptors", limit });
                }
                self.descriptor_skip()?;
                continue;
            }
            self.skip_body(code)?;
            return Ok(self.buf.get(start..self.at).unwrap_or_default());
        }
    }

    /// A descriptor is a symbol or a ulong; others are reserved and read as one plain value.
    fn descriptor_skip(&mut self) -> Result<(), WireError> {
        match self.octet("descriptor")? {
            code::DESCRIBED => {
                Err(WireError::Invalid { what: "descriptor", detail: "is itself described" })
            }
            code => self.skip_body(code),
        }
    }

    fn skip_body(&mut self, code: u8) -> Result<(), WireError> {
        let size = match code >> 4 {
            0x4 if matches!(code, 0x40..=0x45) => 0,
            0x5 if matches!(code, 0x50..=0x56) => 1,
            0x6 if matches!(code, 0x60 | 0x61) => 2,
            0x7 if matches!(code, 0x70..=0x74) => 4,
            0x8 if matches!(code, 0x80..=0x84) => 8,
            0x9 if matches!(code, 0x94 | 0x98) => 16,
            0xa if matches!(code, 0xa0 | 0xa1 | 0xa3) => self.size(false, "value")?,
            0xb if matches!(code, 0xb0 | 0xb1 | 0xb3) => self.size(true, "value")?,
            0xc | 0xe if matches!(code, 0xc0 | 0xc1 | 0xe0) => {
                self.size(false, "compound value")?
            }
            0xd | 0xf if matches!(code, 0xd0 | 0xd1 | 0xf0) => self.size(true, "compound value")?,
            _ => return Err(WireError::Constructor { code, expected: "a value" }),
        };
        self.take(size, "value").map(|_| ())
    }
}

/// A type that is read from its AMQP encoding, constructor included.
pub trait Decode: Sized {
    /// Reads one value.
    ///
    /// # Errors
    /// A constructor of another type, or octets that are cut short or out of range.
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError>;
}

/// A type that is written in its AMQP encoding, constructor included.
pub trait Encode {
    /// Appends the value, in the shortest form.
    fn encode(&self, out: &mut Vec<u8>);
}

macro_rules! decode_number {
    ($type:ty, $name:literal, { $($code:pat => $r:ident $read:expr),+ $(,)? }) => {
        impl Decode for $type {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
                match r.octet($name)? {
                    $($code => { let $r = r; $read })+
                    code => Err(WireError::Constructor { code, expected: $name }),
                }
            }
        }
    };
}

decode_number!(bool, "boolean", {
    code::TRUE => _r Ok(true),
    code::FALSE => _r Ok(false),
    code::BOOLEAN => r read_boolean(r),
});
decode_number!(u8, "ubyte", { code::UBYTE => r r.octet("ubyte") });
decode_number!(u16, "ushort", { code::USHORT => r r.array("ushort").map(Self::from_be_bytes) });
decode_number!(u32, "uint", {
    code::SMALL_UINT => r r.octet("uint").map(Self::from),
    code::UINT0 => _r Ok(0),
    code::UINT => r r.array("uint").map(Self::from_be_bytes),
});
decode_number!(u64, "ulong", {
    code::SMALL_ULONG => r r.octet("ulong").map(Self::from),
    code::ULONG0 => _r Ok(0),
    code::ULONG => r r.array("ulong").map(Self::from_be_bytes),
});
decode_number!(i64, "long", {
    code::SMALL_LONG => r r.octet("long").map(|o| Self::from(o as i8)),
    code::LONG => r r.array("long").map(Self::from_be_bytes),
});

/// Takes the octet of a boolean whose constructor, 0x56, was read.
pub(crate) fn read_boolean(r: &mut Reader<'_>) -> Result<bool, WireError> {
    match r.octet("boolean")? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Invalid { what: "boolean", detail: "is neither 0 nor 1" }),
    }
}

impl Encode for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(if *self { code::TRUE } else { code::FALSE });
    }
}

impl Encode for u8 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[code::UBYTE, *self]);
    }
}

impl Encode for u16 {
    fn encode(&self, out: &mut Vec<u8>) {
        let [a, b] = self.to_be_bytes();
        out.extend_from_slice(&[code::USHORT, a, b]);
    }
}

impl Encode for u32 {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            0 => out.push(code::UINT0),
            n @ 1..=255 => out.extend_from_slice(&[code::SMALL_UINT, n as u8]),
            n => {
                let [a, b, c, d] = n.to_be_bytes();
                out.extend_from_slice(&[code::UINT, a, b, c, d]);
            }
        }
    }
}

impl Encode for u64 {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            0 => out.push(code::ULONG0),
            n @ 1..=255 => out.extend_from_slice(&[code::SMALL_ULONG, n as u8]),
            n => {
                out.push(code::ULONG);
                out.extend_from_slice(&n.to_be_bytes());
            }
        }
    }
}

impl Encode for i64 {
    fn encode(&self, out: &mut Vec<u8>) {
        match i8::try_from(*self) {
            Ok(n) => out.extend_from_slice(&[code::SMALL_LONG, n as u8]),
            Err(_) => {
                out.push(code::LONG);
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    }
}

/// Writes a variable-width value: `short` with one octet of size, `long` with four.
pub(crate) fn put_variable(out: &mut Vec<u8>, short: u8, long: u8, octets: &[u8]) {
    match u8::try_from(octets.len()) {
        Ok(size) => out.extend_from_slice(&[short, size]),
        Err(_) => {
            out.push(long);
            out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(octets);
}

impl Encode for str {
    fn encode(&self, out: &mut Vec<u8>) {
        put_variable(out, code::STRING8, code::STRING32, self.as_bytes());
    }
}

impl Encode for String {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_str().encode(out);
    }
}

impl Decode for String {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let octets = match r.octet("string")? {
            code::STRING8 => r.variable(false, "string")?,
            code::STRING32 => r.variable(true, "string")?,
            code => return Err(WireError::Constructor { code, expected: "string" }),
        };
        match std::str::from_utf8(octets) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(WireError::Invalid { what: "string", detail: "is not UTF-8" }),
        }
    }
}

impl Encode for Bytes {
    fn encode(&self, out: &mut Vec<u8>) {
        put_variable(out, code::BINARY8, code::BINARY32, self);
    }
}

impl Decode for Bytes {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        read_binary(r).map(Self::copy_from_slice)
    }
}

/// Takes a binary without copying it.
pub fn read_binary<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
    match r.octet("binary")? {
        code::BINARY8 => r.variable(false, "binary"),
        code::BINARY32 => r.variable(true, "binary"),
        code => Err(WireError::Constructor { code, expected: "binary" }),
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, WireError> {
        T::decode(r).map(Self::new)
    }
}
