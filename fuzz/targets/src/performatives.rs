//! Octets that came as the body of a frame: decoded, encoded, decoded again, and compared with what
//! an independent implementation makes of them.

use crate::{memory, oracle};
use hopline_wire::codec::{Decode, Encode, Reader};
use hopline_wire::performative::SaslPerformative;
use hopline_wire::{Performative, Value, WireError};
use std::fmt::Debug;

/// What a decoded value takes for each octet of it at most: an element of a list of nulls takes the
/// size of a value, twice that while the list grows.
const PER_OCTET: usize = 128;

/// The octets are a performative and payload behind it.
pub fn run(octets: &[u8]) {
    check(octets, Performative::decode, oracle::rewrite);
    check(octets, SaslPerformative::decode, oracle::rewrite_sasl);
}

type Decoded<T> = Result<(T, usize), WireError>;

fn check<T: Debug + PartialEq + Encode>(
    octets: &[u8],
    decode: fn(&[u8]) -> Decoded<T>,
    rewrite: fn(&[u8]) -> Option<Vec<u8>>,
) {
    let read = memory::in_proportion(octets.len(), PER_OCTET, 1024, || decode(octets));
    let Ok((performative, used)) = read else {
        if is_well_formed(octets) {
            let theirs = rewrite(octets).map(|theirs| decode(&theirs));
            let error = theirs.and_then(Result::err);
            assert!(error.as_ref().is_none_or(is_stricter), "others write it: {error:?}");
        }
        return;
    };
    let mut written = Vec::new();
    performative.encode(&mut written);
    let (again, length) = decode(&written).expect("what was written can be read");
    assert_eq!(length, written.len());
    same(&again, &performative);
    if !is_well_formed(&written) {
        return;
    }
    // They refuse some that are right, such as capabilities that they don't know. Of a string in an
    // array they write how many characters it has, not how many octets.
    let theirs = [rewrite(&written), rewrite(&octets[..used])].into_iter().flatten();
    for theirs in theirs.filter(|theirs| is_well_formed(theirs)) {
        let (theirs, _) = decode(&theirs).expect("what others write can be read");
        same(&theirs, &performative);
    }
}

/// Whether all sizes and counts are true, those of arrays too, whose elements are decoded late.
/// Nothing else can be shown to others, who allocate whatever a size announces.
fn is_well_formed(octets: &[u8]) -> bool {
    Value::decode(&mut Reader::new(octets)).is_ok_and(|value| is_sound(&value))
}

fn is_sound(value: &Value) -> bool {
    match value {
        Value::Array(array) => array.values().is_ok_and(|values| values.iter().all(is_sound)),
        Value::List(values) => values.iter().all(is_sound),
        Value::Map(pairs) => pairs.iter().all(|(key, value)| is_sound(key) && is_sound(value)),
        Value::Described(pair) => is_sound(&pair.0) && is_sound(&pair.1),
        _ => true,
    }
}

/// What an independent implementation writes and we refuse all the same.
fn is_stricter(error: &WireError) -> bool {
    matches!(error, WireError::MissingField { composite: "SaslMechanisms", .. })
}

/// Equal, or equal by text: a NaN is not equal to itself.
fn same<T: Debug + PartialEq>(one: &T, other: &T) {
    assert!(one == other || format!("{one:?}") == format!("{other:?}"), "{one:?}\n{other:?}");
}
