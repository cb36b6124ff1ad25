//! Which brokers a forwarded message has passed: the guard against circles.
//!
//! The message annotation `x-opt-hopline-path` is a list of strings, one for each broker that has
//! forwarded the message, `NAME/RUN`: two brokers of one name are told apart by what is drawn at
//! each start. A broker does not take a message that has passed it, nor one of too long a path.

use hopline_driver::engine::wire::codec::{Decode, Reader};
use hopline_driver::engine::wire::{AmqpError, Symbol, Value};
use std::fmt::Write;

/// The annotation.
pub(crate) const ANNOTATION: &str = "x-opt-hopline-path";

/// Brokers that a message may pass.
pub(crate) const HOPS_MAX: usize = 16;

/// Why a message is turned away. Said in the log; its sender gets it back for others.
pub(crate) const CIRCLE: Symbol = Symbol::from_static("hopline:circle");

/// The name of a broker in paths, from its start to its end.
pub(crate) fn own_name(name: &str) -> String {
    let mut run = uuid::Uuid::new_v4().simple().to_string();
    run.truncate(8);
    format!("{name}/{run}")
}

/// The brokers of a path as it stands on the wire. What is no list of strings is no path of ours.
pub(crate) fn read(octets: &[u8]) -> Vec<String> {
    let Ok(Value::List(items)) = Value::decode(&mut Reader::new(octets)) else { return Vec::new() };
    let names = items.into_iter().map(|item| match item {
        Value::String(name) => Some(name),
        _ => None,
    });
    names.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The path with one more broker at its end.
pub(crate) fn longer(octets: Option<&[u8]>, own: &str) -> Value {
    let mut names = octets.map(read).unwrap_or_default();
    if names.last().is_none_or(|last| last != own) {
        names.push(own.to_owned());
    }
    Value::List(names.into_iter().map(Value::String).collect())
}

/// Whether a message may come in.
///
/// # Errors
/// It has been here, or has passed too many brokers: [`CIRCLE`].
pub(crate) fn check(octets: &[u8], own: &str) -> Result<(), AmqpError> {
    let names = read(octets);
    let has_been_here = names.iter().any(|name| name == own);
    if !has_been_here && names.len() < HOPS_MAX {
        return Ok(());
    }
    let mut text = match has_been_here {
        true => format!("the message has been at {own} before; it came by"),
        false => format!("the message has passed {HOPS_MAX} brokers or more; it came by"),
    };
    for name in names.iter().take(HOPS_MAX) {
        let _ = write!(text, " {name}");
    }
    Err(AmqpError::new(CIRCLE, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_driver::engine::wire::codec::Encode;

    fn wire(value: &Value) -> Vec<u8> {
        let mut octets = Vec::new();
        value.encode(&mut octets);
        octets
    }

    #[test]
    fn a_broker_is_put_behind_the_others_once() {
        let one = wire(&longer(None, "a/1"));
        assert_eq!(read(&one), ["a/1"]);
        let two = wire(&longer(Some(&one), "b/2"));
        assert_eq!(read(&two), ["a/1", "b/2"]);
        assert_eq!(wire(&longer(Some(&two), "b/2")), two, "it was not sent the first time");
    }

    #[test]
    fn who_was_here_and_who_has_come_too_far_is_turned_away() {
        let mut path = wire(&longer(None, "a/1"));
        assert_eq!(check(&path, "a/2"), Ok(()), "another run, or another broker of this name");
        assert_eq!(check(&path, "a/1").unwrap_err().condition, CIRCLE);
        for n in 1..HOPS_MAX {
            assert_eq!(check(&path, "x/1"), Ok(()), "{n} hops");
            path = wire(&longer(Some(&path), &format!("b/{n}")));
        }
        assert_eq!(check(&path, "x/1").unwrap_err().condition, CIRCLE);
    }

    #[test]
    fn what_is_no_list_of_strings_is_no_path() {
        for value in [Value::Null, Value::Uint(7), Value::List(vec![Value::Uint(1)])] {
            assert_eq!(read(&wire(&value)), [""; 0]);
            assert_eq!(check(&wire(&value), "a/1"), Ok(()));
        }
        assert_eq!(read(&[0xc0, 9, 1]), [""; 0]);
    }
}
