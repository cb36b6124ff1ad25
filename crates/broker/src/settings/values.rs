//! How single values are written. A kind of value is written the same way in the file, in a
//! variable and in a flag.

use super::print::MASK;
use crate::side::ADDRESS;
use crate::{DurableMessages, Sampling, SideSink};
use bytesize::ByteSize;
use hopline_driver::KernelTimestamps;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// A kind of value: how it is read and written.
pub(super) trait Kind {
    /// What is meant by it.
    type Meant;
    /// Reads what somebody wrote; the error says what to write.
    fn parse(text: &str) -> Result<Self::Meant, String>;
    /// The way back.
    fn write(meant: &Self::Meant) -> Written;
}

/// A value in TOML.
pub(super) enum Written {
    Truth(bool),
    Integer(i64),
    Text(String),
}

/// A value of a kind.
pub(super) struct Value<K: Kind>(pub(super) K::Meant);

impl<'de, K: Kind> Deserialize<'de> for Value<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfKind<K>(PhantomData<K>);

        impl<K: Kind> Visitor<'_> for OfKind<K> {
            type Value = Value<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a whole number or a truth value")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value<K>, E> {
                K::parse(text).map(Value).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value<K>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Value<K>, E> {
                self.visit_str(if truth { "true" } else { "false" })
            }
        }

        deserializer.deserialize_any(OfKind(PhantomData))
    }
}

impl<K: Kind> Serialize for Value<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match K::write(&self.0) {
            Written::Truth(truth) => serializer.serialize_bool(truth),
            Written::Integer(number) => serializer.serialize_i64(number),
            Written::Text(text) => serializer.serialize_str(&text),
        }
    }
}

/// A truth value.
pub(super) struct Switch;

impl Kind for Switch {
    type Meant = bool;

    fn parse(text: &str) -> Result<bool, String> {
        match text {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err("write on or off, true or false".into()),
        }
    }

    fn write(meant: &bool) -> Written {
        Written::Truth(*meant)
    }
}

/// A whole number, `MIN` or more.
pub(super) struct Whole<T, const MIN: u64 = 0>(PhantomData<T>);

impl<T: Unsigned, const MIN: u64> Kind for Whole<T, MIN> {
    type Meant = T;

    fn parse(text: &str) -> Result<T, String> {
        let range = || format!("write a whole number from {MIN} to {}", T::LARGEST);
        text.parse().ok().and_then(|number| within::<T, MIN>(number)).ok_or_else(range)
    }

    fn write(meant: &T) -> Written {
        Written::Integer(meant.to_integer())
    }
}

/// A number of octets, `MIN` or more: `65536` or `64KiB`.
pub(super) struct Octets<T, const MIN: u64 = 1>(PhantomData<T>);

impl<T: Unsigned, const MIN: u64> Kind for Octets<T, MIN> {
    type Meant = T;

    fn parse(text: &str) -> Result<T, String> {
        let range = || {
            let most = T::LARGEST;
            format!("write octets as 65536 or 64KiB, from {MIN} to {most}")
        };
        let octets = text.parse::<ByteSize>().ok().map(|octets| octets.as_u64());
        octets.and_then(within::<T, MIN>).ok_or_else(range)
    }

    fn write(meant: &T) -> Written {
        Written::Integer(meant.to_integer())
    }
}

fn within<T: Unsigned, const MIN: u64>(number: u64) -> Option<T> {
    (MIN..=T::LARGEST).contains(&number).then(|| T::try_from(number).ok()).flatten()
}

/// What numbers of the configuration are held in.
pub(super) trait Unsigned: TryFrom<u64> + TryInto<i64> + Copy {
    /// The largest that TOML can hold too, whose integers are signed.
    const LARGEST: u64 = {
        let bits = 8 * size_of::<Self>();
        if bits < 64 { u64::MAX >> (64 - bits) } else { i64::MAX as u64 }
    };

    fn to_integer(self) -> i64 {
        self.try_into().unwrap_or(i64::MAX)
    }
}

impl Unsigned for u16 {}
impl Unsigned for u32 {}
impl Unsigned for u64 {}
impl Unsigned for usize {}

/// A length of time, `500ms` or `2m`, from `MIN_MS` to `MAX_MS` in milliseconds.
pub(super) struct Time<const MIN_MS: u64 = 1, const MAX_MS: u64 = { u32::MAX as u64 }>;

impl<const MIN_MS: u64, const MAX_MS: u64> Kind for Time<MIN_MS, MAX_MS> {
    type Meant = Duration;

    fn parse(text: &str) -> Result<Duration, String> {
        let (min, max) = (Duration::from_millis(MIN_MS), Duration::from_millis(MAX_MS));
        let time = humantime::parse_duration(text).ok();
        time.filter(|time| (min..=max).contains(time)).ok_or_else(|| {
            let (min, max) = (humantime::format_duration(min), humantime::format_duration(max));
            format!("write a time with its unit, such as 500ms, 10s or 2m, from {min} to {max}")
        })
    }

    fn write(meant: &Duration) -> Written {
        Written::Text(humantime::format_duration(*meant).to_string())
    }
}

/// A value, or `off` for none.
pub(super) struct OrOff<K>(PhantomData<K>);

impl<K: Kind> Kind for OrOff<K> {
    type Meant = Option<K::Meant>;

    fn parse(text: &str) -> Result<Self::Meant, String> {
        if text == "off" {
            return Ok(None);
        }
        K::parse(text).map(Some).map_err(|problem| problem + ", or off")
    }

    fn write(meant: &Self::Meant) -> Written {
        meant.as_ref().map_or_else(|| Written::Text("off".into()), K::write)
    }
}

/// A text of 1 to `MAX` octets.
pub(super) struct Text<const MAX: usize = { usize::MAX }>;

impl<const MAX: usize> Kind for Text<MAX> {
    type Meant = String;

    fn parse(text: &str) -> Result<String, String> {
        match text.len() {
            0 => Err("write a name that is not empty".into()),
            length if length > MAX => Err(format!("write a name of {MAX} octets at most")),
            _ => Ok(text.to_owned()),
        }
    }

    fn write(meant: &String) -> Written {
        Written::Text(meant.clone())
    }
}

/// `HOST:PORT`.
pub(super) struct Address;

impl Kind for Address {
    type Meant = String;

    fn parse(text: &str) -> Result<String, String> {
        let parts = text.rsplit_once(':').filter(|(host, port)| {
            let bracketed = host.starts_with('[') && host.ends_with(']');
            port.parse::<u16>().is_ok() && !host.is_empty() && (bracketed || !host.contains(':'))
        });
        let cure = "write HOST:PORT, such as 127.0.0.1:5672 or [::]:5672; port 0 takes a free one";
        parts.map(|_| text.to_owned()).ok_or_else(|| cure.into())
    }

    fn write(meant: &String) -> Written {
        Written::Text(meant.clone())
    }
}

/// A password; written, it is a mask.
pub(super) struct Secret;

impl Kind for Secret {
    type Meant = String;

    fn parse(text: &str) -> Result<String, String> {
        match text {
            "" => Err("write a password that is not empty".into()),
            MASK => Err("this is the mask of a printed configuration; write the password".into()),
            _ => Ok(text.to_owned()),
        }
    }

    fn write(_: &String) -> Written {
        Written::Text(MASK.into())
    }
}

impl Kind for Sampling {
    type Meant = Sampling;

    fn parse(text: &str) -> Result<Sampling, String> {
        match text {
            "all" => Ok(Sampling::All),
            "carried" => Ok(Sampling::Carried),
            "off" => Ok(Sampling::Off),
            _ => match text.strip_prefix("1/").and_then(|count| count.parse().ok()) {
                Some(count) if count > 0 => Ok(Sampling::OneIn(count)),
                _ => Err("write all, carried, off or 1/N, such as 1/100".into()),
            },
        }
    }

    fn write(meant: &Sampling) -> Written {
        Written::Text(match meant {
            Sampling::All => "all".into(),
            Sampling::Carried => "carried".into(),
            Sampling::Off => "off".into(),
            Sampling::OneIn(count) => format!("1/{count}"),
        })
    }
}

impl Kind for KernelTimestamps {
    type Meant = KernelTimestamps;

    fn parse(text: &str) -> Result<KernelTimestamps, String> {
        Ok(text.parse()?)
    }

    fn write(meant: &KernelTimestamps) -> Written {
        Written::Text(meant.to_string())
    }
}

impl Kind for SideSink {
    type Meant = SideSink;

    fn parse(text: &str) -> Result<SideSink, String> {
        match text {
            "" => Err("write off, a file, or $timeline".into()),
            "off" => Ok(SideSink::Off),
            ADDRESS => Ok(SideSink::Timeline),
            path => Ok(SideSink::File(path.into())),
        }
    }

    fn write(meant: &SideSink) -> Written {
        Written::Text(match meant {
            SideSink::Off => "off".into(),
            SideSink::Timeline => ADDRESS.into(),
            SideSink::File(path) => path.to_string_lossy().into_owned(),
        })
    }
}

impl Kind for DurableMessages {
    type Meant = DurableMessages;

    fn parse(text: &str) -> Result<DurableMessages, String> {
        match text {
            "accept" => Ok(DurableMessages::Accept),
            "reject" => Ok(DurableMessages::Reject),
            _ => Err("write accept or reject".into()),
        }
    }

    fn write(meant: &DurableMessages) -> Written {
        Written::Text(match meant {
            DurableMessages::Accept => "accept".into(),
            DurableMessages::Reject => "reject".into(),
        })
    }
}
