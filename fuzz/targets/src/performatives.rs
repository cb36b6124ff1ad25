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
    match read {
        Ok((performative, used)) => {
            let mut written = Vec::new();
            performative.encode(&mut written);
            let (again, length) = decode(&written).expect("what was written can be read");
            assert_eq!(length, written.len());
            same(&again, &performative);
            let theirs = rewrite(&written).expect("what was written can be read by others");
            let (theirs, _) = decode(&theirs).expect("what others write can be read");
            same(&theirs, &performative);
            if let Some(theirs) = rewrite(&octets[..used]) {
                let (theirs, _) = decode(&theirs).expect("what others write can be read");
                same(&theirs, &performative);
            }
        }
        // They allocate whatever a size announces: only what is well-formed can be shown to them.
        Err(_) if Value::decode(&mut Reader::new(octets)).is_err() => {}
        Err(_) => {
            let theirs = rewrite(octets).map(|theirs| decode(&theirs));
            let error = theirs.and_then(Result::err);
            assert!(error.as_ref().is_none_or(is_stricter), "others write it: {error:?}");
        }
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
