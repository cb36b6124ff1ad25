//! What the tests share: values of every kind for proptest, and octets to and fro.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use hopline_wire::codec::{Decode, Encode, Reader};
use hopline_wire::value::Array;
use hopline_wire::{AmqpError, DeliveryTag, Fields, Symbol, Value, WireError};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

pub mod arrays;
pub mod performatives;
pub mod states;

pub fn encode(value: &(impl Encode + ?Sized)) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Reads one value that takes all of the octets.
pub fn decode<T: Decode>(octets: &[u8]) -> Result<T, WireError> {
    let mut r = Reader::new(octets);
    let value = T::decode(&mut r)?;
    assert!(r.is_empty(), "{} octets are left over", r.rest().len());
    Ok(value)
}

pub fn round_trip<T: Encode + Decode + PartialEq + std::fmt::Debug>(value: &T) {
    assert_eq!(&decode::<T>(&encode(value)).unwrap(), value);
}

/// Our octets, read and written again by an independent implementation, read by us.
pub fn through_oracle<T, O>(value: &T)
where
    T: Encode + Decode + PartialEq + std::fmt::Debug,
    O: serde::Serialize + serde::de::DeserializeOwned,
{
    let theirs: O = serde_amqp::from_slice(&encode(value)).unwrap();
    let back = serde_amqp::to_vec(&theirs).unwrap();
    assert_eq!(&decode::<T>(&back).unwrap(), value);
}

pub fn symbol() -> BoxedStrategy<Symbol> {
    prop_oneof![4 => "[ -~]{0,20}", 1 => "[a-z]{254,257}"].prop_map(Symbol::from).boxed()
}

pub fn symbols() -> BoxedStrategy<Vec<Symbol>> {
    prop_oneof![2 => Just(Vec::new()), 1 => vec(symbol(), 1..5)].boxed()
}

pub fn text() -> BoxedStrategy<String> {
    prop_oneof![4 => ".{0,12}", 1 => "[a-z]{254,257}"].boxed()
}

pub fn binary() -> BoxedStrategy<bytes::Bytes> {
    prop_oneof![4 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 254..258)]
        .prop_map(bytes::Bytes::from)
        .boxed()
}

pub fn tag() -> impl Strategy<Value = DeliveryTag> {
    vec(any::<u8>(), 0..=32).prop_map(|octets| DeliveryTag::new(&octets).unwrap())
}

/// Numbers of 32 bits, those at the edges of the encodings more often.
pub fn uint() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(255), Just(256), Just(u32::MAX), any::<u32>()]
}

fn plain_value() -> BoxedStrategy<Value> {
    let numbers = prop_oneof![
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        uint().prop_map(Value::Uint),
        prop_oneof![any::<u64>(), 0..300u64].prop_map(Value::Ulong),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        prop_oneof![any::<i32>(), -200..200i32].prop_map(Value::Int),
        prop_oneof![any::<i64>(), -200..200i64].prop_map(Value::Long),
        any::<f32>().prop_map(Value::Float),
        any::<f64>().prop_map(Value::Double),
        any::<[u8; 4]>().prop_map(Value::Decimal32),
        any::<[u8; 8]>().prop_map(Value::Decimal64),
        any::<[u8; 16]>().prop_map(Value::Decimal128),
    ];
    prop_oneof![
        numbers,
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<char>().prop_map(Value::Char),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        binary().prop_map(Value::Binary),
        text().prop_map(Value::String),
        symbol().prop_map(Value::Symbol),
        vec(symbol(), 1..4).prop_map(|s| Value::Array(Array::symbols(&s))),
    ]
    .boxed()
}

fn descriptor() -> impl Strategy<Value = Value> {
    prop_oneof![any::<u64>().prop_map(Value::Ulong), symbol().prop_map(Value::Symbol)]
}

/// Any value without NaN, which is not equal to itself; keys of maps differ.
pub fn value() -> BoxedStrategy<Value> {
    plain_value()
        .prop_recursive(4, 24, 6, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..6).prop_map(Value::List),
                vec((text(), inner.clone()), 0..6).prop_map(|pairs| {
                    let pairs = distinct(pairs);
                    Value::Map(pairs.into_iter().map(|(k, v)| (Value::String(k), v)).collect())
                }),
                (descriptor(), inner).prop_map(|pair| Value::Described(Box::new(pair))),
            ]
        })
        .boxed()
}

fn distinct<K: PartialEq, V>(pairs: Vec<(K, V)>) -> Vec<(K, V)> {
    let mut kept: Vec<(K, V)> = Vec::new();
    for (key, value) in pairs {
        if kept.iter().all(|(k, _)| *k != key) {
            kept.push((key, value));
        }
    }
    kept
}

pub fn fields() -> BoxedStrategy<Fields> {
    vec((symbol(), value()), 0..4).prop_map(|pairs| Fields(distinct(pairs))).boxed()
}

pub fn error() -> BoxedStrategy<AmqpError> {
    (symbol(), of(text()), of(fields()))
        .prop_map(|(condition, description, info)| AmqpError { condition, description, info })
        .boxed()
}
