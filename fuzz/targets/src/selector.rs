//! A selector and messages that it is run on: bounded cost, and no selector is true together with
//! its negation or of other messages than the same one twice over.

use crate::input::Input;
use crate::memory;
use hopline_broker::fuzzing::select;
use hopline_wire::codec::Encode;
use hopline_wire::message::{Header, Message, Properties};
use hopline_wire::{Symbol, Value};

/// Octets that one evaluation may look at, and a step beyond.
const FUEL: usize = 1 << 20;

/// Two octets give the length of the selector; the message is behind it.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let length = usize::from(u16::from_be_bytes([input.octet(), input.octet()]));
    let text = String::from_utf8_lossy(input.take(length));
    let message = input.take(usize::MAX);
    for message in [message, &sample()] {
        check(&text, message);
    }
}

fn check(text: &str, message: &[u8]) {
    let octets = text.len() + message.len();
    let once = memory::in_proportion(octets, 256, 16 << 10, || select(text, message));
    let Ok((matches, used)) = once else { return };
    assert!(used <= FUEL);
    if used > FUEL / 4 {
        return;
    }
    // Twice as many steps, or deeper ones, may be beyond the limits.
    if let Ok((negated, _)) = select(&format!("NOT ({text})"), message) {
        assert!(!(matches && negated), "both {text:?} and its negation");
    }
    if let Ok((both, _)) = select(&format!("({text}) AND ({text})"), message) {
        assert_eq!(both, matches, "{text:?} and the same again");
    }
}

/// A message with a property of every kind.
pub(crate) fn sample() -> Vec<u8> {
    let application_properties = vec![
        ("colour".into(), Value::from("red")),
        ("n".into(), Value::Int(7)),
        ("big".into(), Value::Ulong(u64::MAX)),
        ("weight".into(), Value::Double(2.5)),
        ("nan".into(), Value::Float(f32::NAN)),
        ("price".into(), Value::Decimal64([0x22, 0x34, 0, 0, 0, 0, 0, 1])),
        ("yes".into(), Value::Boolean(true)),
        ("none".into(), Value::Null),
    ];
    let properties = Properties {
        message_id: Some(Value::Ulong(42)),
        subject: Some("news".into()),
        content_type: Some(Symbol::from_static("text/plain")),
        group_sequence: Some(u32::MAX),
        ..Properties::default()
    };
    let header = Header { durable: true, priority: 9, ..Header::default() };
    let mut out = Vec::new();
    Message { header, properties, application_properties, ..Message::data("body") }
        .encode(&mut out);
    out
}
