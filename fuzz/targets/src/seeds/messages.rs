use crate::wire_values::{self as generators, states};
use hopline_wire::Value;
use hopline_wire::message::{Body, Message};
use proptest::prelude::*;

/// Messages of every shape.
pub(super) fn message() -> impl Strategy<Value = Message> {
    use proptest::collection::vec;
    let body = prop_oneof![
        vec(generators::binary(), 1..4).prop_map(Body::Data),
        vec(vec(generators::value(), 0..3), 1..4).prop_map(Body::Sequence),
        generators::value().prop_map(Body::Value),
    ];
    let annotations = (generators::fields(), generators::fields(), generators::fields());
    let application = vec((generators::text(), generators::value()), 0..3);
    let head = (states::header(), annotations, states::properties(), any::<bool>());
    (head, application, body).prop_map(|(head, application_properties, body)| {
        let (header, annotations, properties, is_plain) = head;
        let (delivery_annotations, message_annotations, footer) = annotations;
        let whole = Message {
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application_properties: simple(application_properties),
            body,
            footer,
        };
        if is_plain { Message { body: whole.body, ..Message::default() } } else { whole }
    })
}

/// Application properties are no lists, maps or arrays (3.2.5).
fn simple(properties: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let is_simple = |value: &Value| {
        !matches!(value, Value::List(_) | Value::Map(_) | Value::Array(_) | Value::Described(_))
    };
    properties.into_iter().filter(|(_, value)| is_simple(value)).collect()
}
