use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// The schema of the records: always 1 here. Reading any other number is an error, so that a
/// record is never misunderstood.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug, Default)]
pub struct Schema;

impl Schema {
    const NUMBER: u64 = 1;
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(Self::NUMBER)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            Self::NUMBER => Ok(Schema),
            other => {
                Err(de::Error::custom(format_args!("schema {other} is not read here, only 1")))
            }
        }
    }
}

/// Reads a value from text, without a copy where the JSON holds it unescaped.
struct TextVisitor<T, F> {
    expected: &'static str,
    read: F,
    result: PhantomData<T>,
}

impl<'de, T, F: Fn(&str) -> Option<T>> Visitor<'de> for TextVisitor<T, F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

fn read_text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(TextVisitor { expected, read, result: PhantomData })
}

/// Integers of 64 bits as strings.
pub(crate) mod decimal {
    use super::*;

    pub(crate) fn serialize<T: fmt::Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        read_text(deserializer, "a 64-bit integer as a string", |text| text.parse().ok())
    }
}

/// The same, or null.
pub(crate) mod decimal_option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Number(#[serde(with = "decimal")] u64);
        Ok(Option::<Number>::deserialize(deserializer)?.map(|Number(value)| value))
    }
}

/// An instant in ns as a string, or null where the slot was not filled in.
pub(crate) mod instant {
    use super::*;
    use crate::Instant;

    pub(crate) fn serialize<S: Serializer>(
        at: &Option<Instant>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.collect_str(&at.as_nanos()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Instant>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Nanos(#[serde(with = "decimal")] i64);
        let at = Option::<Nanos>::deserialize(deserializer)?;
        Ok(at.map(|Nanos(ns)| Instant::from_nanos(ns)).filter(|at| *at != Instant::UNFILLED))
    }
}

/// A stage's code by its name.
pub(crate) mod stage {
    use super::*;
    use crate::Stage;

    pub(crate) fn serialize<S: Serializer>(code: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Stage::name_of(*code))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
        read_text(deserializer, "a stage such as SEND or #77", Stage::code_of)
    }
}

/// What a message waited for, by its name; a name that is not known is read as no reason.
pub(crate) mod wait {
    use super::*;
    use crate::Wait;

    pub(crate) fn serialize<S: Serializer>(
        wait: &Option<Wait>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        wait.map(Wait::name).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Wait>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Name(#[serde(deserialize_with = "by_name")] Option<Wait>);
        fn by_name<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Wait>, D::Error> {
            read_text(d, "what the message waited for", |name| Some(Wait::from_name(name)))
        }
        Ok(Option::<Name>::deserialize(deserializer)?.and_then(|Name(wait)| wait))
    }
}

/// Why octets were held back, by its name; a name that is not known is [`Held::Unknown`].
pub(crate) mod held {
    use super::*;
    use crate::record::Held;

    pub(crate) fn serialize<S: Serializer>(
        held: &Option<Held>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        held.map(Held::name).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Held>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Name(#[serde(deserialize_with = "by_name")] Held);
        fn by_name<'de, D: Deserializer<'de>>(d: D) -> Result<Held, D::Error> {
            let read = |name: &str| Some(Held::from_name(name).unwrap_or(Held::Unknown));
            read_text(d, "why octets were held back", read)
        }
        Ok(Option::<Name>::deserialize(deserializer)?.map(|Name(held)| held))
    }
}

/// A clock's kind by its name.
pub(crate) mod clock_kind {
    use super::*;
    use crate::ClockKind;

    pub(crate) fn serialize<S: Serializer>(
        kind: &ClockKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(kind)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ClockKind, D::Error> {
        read_text(deserializer, "a clock such as monotonic or #3", ClockKind::from_name)
    }
}

/// 16 octets as 32 hexadecimal digits.
pub(crate) mod hex {
    use super::*;
    use crate::TimelineId;
    use crate::id::parse_hex;

    pub(crate) fn serialize<S: Serializer>(
        octets: &[u8; 16],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&TimelineId(*octets))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; 16], D::Error> {
        read_text(deserializer, "32 hexadecimal digits", parse_hex)
    }
}
