//! Which messages `Layout` finds its way in, and where it says that their sections are.

use crate::common::{encode, states};
use bytes::Bytes;
use hopline_wire::codec::{Decode, Reader};
use hopline_wire::message::{Body, Header, Layout, Message, annotation, section};
use hopline_wire::{Fields, Value};
use proptest::prelude::*;
use std::ops::Range;

const NAMES: [(u8, &str); 9] = [
    (section::HEADER, "amqp:header:list"),
    (section::DELIVERY_ANNOTATIONS, "amqp:delivery-annotations:map"),
    (section::MESSAGE_ANNOTATIONS, "amqp:message-annotations:map"),
    (section::PROPERTIES, "amqp:properties:list"),
    (section::APPLICATION_PROPERTIES, "amqp:application-properties:map"),
    (section::DATA, "amqp:data:binary"),
    (section::SEQUENCE, "amqp:amqp-sequence:list"),
    (section::VALUE, "amqp:amqp-value:*"),
    (section::FOOTER, "amqp:footer:map"),
];

/// A small legal value of that section.
fn sample(section: u8) -> &'static [u8] {
    match section {
        section::HEADER => &[0xc0, 2, 1, 0x41],
        section::PROPERTIES => &[0xc0, 4, 1, 0xa1, 1, b'i'],
        section::DATA => &[0xa0, 2, 1, 2],
        section::SEQUENCE => &[0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x43],
        section::VALUE => &[0x40],
        section::APPLICATION_PROPERTIES => &[0xc1, 5, 2, 0xa1, 1, b'k', 0x43],
        _ => &[0xc1, 5, 2, 0xa3, 1, b'k', 0x43],
    }
}

fn numeric(section: u8) -> Vec<u8> {
    vec![0x00, 0x53, section]
}

fn symbolic(section: u8) -> Vec<u8> {
    let name = NAMES.iter().find(|(code, _)| *code == section).unwrap().1;
    [&[0x00, 0xa3, name.len() as u8][..], name.as_bytes()].concat()
}

fn message(sections: &[u8], descriptor: fn(u8) -> Vec<u8>) -> Vec<u8> {
    sections.iter().flat_map(|s| [descriptor(*s), sample(*s).to_vec()].concat()).collect()
}

/// The grammar of part 3, 3.2, in its own words: each section at most once and in order, the body
/// one or more data, or one or more sequences, or one value; and, beyond the standard, none.
fn is_legal(sections: &[u8]) -> bool {
    let is_body = |s: &u8| (section::DATA..=section::VALUE).contains(s);
    let body: Vec<u8> = sections.iter().copied().filter(is_body).collect();
    let ordered = sections.is_sorted();
    let once = sections.windows(2).all(|pair| pair[0] != pair[1] || is_body(&pair[0]));
    let of_a_kind = body.windows(2).all(|pair| pair[0] == pair[1] && pair[0] != section::VALUE);
    ordered && once && of_a_kind
}

#[test]
fn every_sequence_of_up_to_five_sections_is_judged_by_the_grammar() {
    let codes: Vec<u8> = NAMES.iter().map(|(code, _)| *code).collect();
    let mut sequences: Vec<Vec<u8>> = vec![vec![]];
    for _ in 0..5 {
        sequences =
            sequences.iter().flat_map(|s| codes.iter().map(|c| [&s[..], &[*c]].concat())).collect();
        for sections in &sequences {
            let octets = message(sections, numeric);
            let legal = is_legal(sections);
            assert_eq!(Layout::scan(&octets).is_ok(), legal, "{sections:02x?}");
        }
    }
    assert!(Layout::scan(&[]).is_err());
}

#[test]
fn ranges_hold_the_sections_values() {
    let bodies: [&[u8]; 6] = [&[], &[0x75], &[0x75; 3], &[0x76], &[0x76; 3], &[0x77]];
    for descriptor in [numeric, symbolic] {
        for choice in 0..64_u8 {
            for body in bodies {
                let head = (0..5).filter(|n| choice >> n & 1 == 1).map(|n| section::HEADER + n);
                let footer = (choice >> 5 == 1).then_some(section::FOOTER);
                let sections: Vec<u8> = head.chain(body.iter().copied()).chain(footer).collect();
                if !sections.is_empty() {
                    check_ranges(&sections, descriptor);
                }
            }
        }
    }
}

fn check_ranges(sections: &[u8], descriptor: fn(u8) -> Vec<u8>) {
    let octets = message(sections, descriptor);
    let layout = Layout::scan(&octets).unwrap();
    let holds = |range: &Option<Range<usize>>, section: u8| {
        let found = range.clone().map(|range| &octets[range]);
        assert_eq!(found, sections.contains(&section).then(|| sample(section)));
    };
    holds(&layout.delivery_annotations, section::DELIVERY_ANNOTATIONS);
    holds(&layout.message_annotations, section::MESSAGE_ANNOTATIONS);
    holds(&layout.properties, section::PROPERTIES);
    holds(&layout.application_properties, section::APPLICATION_PROPERTIES);
    holds(&layout.footer, section::FOOTER);
    let durable = Header { durable: true, ..Header::default() };
    assert_eq!(layout.header, sections.contains(&section::HEADER).then_some(durable));
    let part = |wanted: Range<u8>| {
        let kept: Vec<u8> = sections.iter().copied().filter(|s| wanted.contains(s)).collect();
        message(&kept, descriptor)
    };
    assert_eq!(octets[layout.bare..], part(section::PROPERTIES..section::FOOTER + 1));
    assert_eq!(octets[layout.body], part(section::DATA..section::FOOTER));
    assert!(Message::decode(&octets.into()).is_ok());
}

fn with_body(section: u8, value: &[u8]) -> Vec<u8> {
    [numeric(section), value.to_vec(), message(&[section::DATA], numeric)].concat()
}

#[test]
fn a_section_has_its_own_type() {
    for (code, _) in NAMES {
        for value in [&[0x40][..], &[0x52, 1], &[0xa1, 1, b'a'], &[0x00, 0x53, 0x75, 0xa0, 0]] {
            let octets = [numeric(code), value.to_vec()].concat();
            let octets = if code < section::DATA { with_body(code, value) } else { octets };
            assert_eq!(Layout::scan(&octets).is_ok(), code == section::VALUE, "{octets:02x?}");
        }
    }
}

#[test]
fn unknown_sections_and_values_that_are_no_sections_are_refused() {
    for octets in [
        &[0xa1, 1, b'a'][..],
        &[0x40],
        &[0x00, 0x53, 0x79, 0x40],
        &[0x00, 0x53, 0x6f, 0x45],
        &[0x00, 0x80, 0, 0, 0, 1, 0, 0, 0, 0x75, 0xa0, 0],
        &[0x00, 0x44, 0x40],
        &[0x00, 0x00, 0x53, 0x75, 0x40, 0xa0, 0],
        &[0x00, 0x53, 0x75],
        &[0x00, 0x53],
        &[0x00],
    ] {
        assert!(Layout::scan(octets).is_err(), "{octets:02x?}");
        let behind = [message(&[section::DATA], numeric), octets.to_vec()].concat();
        assert!(Layout::scan(&behind).is_err(), "{behind:02x?}");
    }
}

#[test]
fn symbolic_descriptors_match_in_full() {
    for (code, name) in NAMES {
        for wrong in [format!("{name}X"), name[..name.len() - 1].to_owned(), name.to_uppercase()] {
            let octets =
                [&[0x00, 0xa3, wrong.len() as u8][..], wrong.as_bytes(), sample(code)].concat();
            assert!(Layout::scan(&octets).is_err(), "{wrong}");
        }
    }
}

#[test]
fn keys_of_annotations_are_symbols_or_ulongs() {
    let map = |key: &[u8]| [&[0xc1, key.len() as u8 + 2, 2], key, &[0x40]].concat();
    for (key, ok) in [
        (&[0xa3, 1, b'k'][..], true),
        (&[0xb3, 0, 0, 0, 1, b'k'], true),
        (&[0x44], true),
        (&[0x53, 7], true),
        (&[0x80, 0, 0, 0, 0, 0, 0, 0, 7], true),
        (&[0xa1, 1, b'k'], false),
        (&[0x43], false),
        (&[0x40], false),
    ] {
        for code in [section::DELIVERY_ANNOTATIONS, section::MESSAGE_ANNOTATIONS] {
            assert_eq!(Layout::scan(&with_body(code, &map(key))).is_ok(), ok, "{key:02x?}");
        }
        let body = message(&[section::VALUE], numeric);
        let footer = [body, numeric(section::FOOTER), map(key)].concat();
        assert_eq!(Layout::scan(&footer).is_ok(), ok, "{key:02x?}");
    }
    for map in [&[0xc1, 4, 1, 0xa3, 1, b'k'][..], &[0xc1, 3, 0, 0x40, 0x40], &[0xc1, 2, 4, 0x40]] {
        let octets = with_body(section::MESSAGE_ANNOTATIONS, map);
        assert!(Layout::scan(&octets).is_err(), "{map:02x?}");
    }
}

#[test]
fn application_properties_have_string_keys() {
    let symbol_key = with_body(section::APPLICATION_PROPERTIES, sample(section::FOOTER));
    assert!(Layout::scan(&symbol_key).is_ok(), "a forwarder leaves them unread");
    assert!(Message::decode(&symbol_key.into()).is_err());
}

#[test]
fn annotations_are_told_entry_by_entry() {
    let map = [0xc1, 11, 6, 0xa3, 1, b'a', 0x43, 0x53, 7, 0x41, 0xa3, 0, 0x40];
    let mut entries = Vec::new();
    annotation(&map, |name, key, value| entries.push((name, key.to_vec(), value.to_vec())));
    assert_eq!(
        entries,
        [
            (Some(&b"a"[..]), vec![0xa3, 1, b'a'], vec![0x43]),
            (None, vec![0x53, 7], vec![0x41]),
            (Some(&b""[..]), vec![0xa3, 0], vec![0x40]),
        ]
    );
    annotation(&[0x40], |_, _, _| panic!("nothing is in there"));
}

#[test]
fn a_message_is_never_written_without_a_body() {
    for (body, want) in [
        (Body::Data(vec![]), Body::Data(vec![Bytes::new()])),
        (Body::Sequence(vec![]), Body::Sequence(vec![vec![]])),
    ] {
        let octets = encode(&Message { body, ..Message::default() });
        assert_eq!(Message::decode(&octets.into()).unwrap().body, want);
    }
}

#[test]
fn data_is_shared_with_the_octets_of_the_message() {
    let octets = Bytes::from(encode(&Message::data(vec![7; 100])));
    let found = Message::decode(&octets).unwrap().octets().unwrap();
    assert_eq!(found.as_ptr(), octets[octets.len() - 100..].as_ptr());
    let two = Body::Data(vec![Bytes::from_static(b"a"), Bytes::from_static(b"bc")]);
    let two = Message { body: two, ..Message::default() };
    assert_eq!(two.octets(), Some(Bytes::from_static(b"abc")));
}

fn body() -> BoxedStrategy<Body> {
    use proptest::collection::vec;
    prop_oneof![
        vec(crate::common::binary(), 1..4).prop_map(Body::Data),
        vec(vec(crate::common::value(), 0..4), 1..4).prop_map(Body::Sequence),
        crate::common::value().prop_map(Body::Value),
    ]
    .boxed()
}

fn any_message() -> impl Strategy<Value = Message> {
    let maps = (crate::common::fields(), crate::common::fields(), crate::common::fields());
    let own = proptest::collection::vec((crate::common::text(), crate::common::value()), 0..4);
    (states::header(), maps, states::properties(), own, body()).prop_map(
        |(header, maps, properties, application_properties, body)| Message {
            header,
            delivery_annotations: maps.0,
            message_annotations: maps.1,
            properties,
            application_properties,
            body,
            footer: maps.2,
        },
    )
}

proptest! {
    #[test]
    fn messages_come_back(message in any_message()) {
        let octets = Bytes::from(encode(&message));
        prop_assert_eq!(&Message::decode(&octets).unwrap(), &message);
        let layout = Layout::scan(&octets).unwrap();
        let mut bare = Vec::new();
        message.encode_bare(&mut bare);
        prop_assert_eq!(&octets[layout.bare..], &bare);
        let annotations = layout.message_annotations.map(|range| octets.slice(range));
        let found = annotations.map(|map| Fields::decode(&mut Reader::new(&map)).unwrap());
        prop_assert_eq!(found.unwrap_or_default(), message.message_annotations);
    }

    #[test]
    fn a_peer_reads_our_messages(
        header in states::header(),
        properties in states::properties(),
        body in crate::common::value(),
    ) {
        use fe2o3_amqp_types::messaging::message::__private::{Deserializable, Serializable};
        type Theirs = fe2o3_amqp_types::messaging::Message<
            fe2o3_amqp_types::messaging::AmqpValue<serde_amqp::Value>,
        >;
        let ours = Message { header, properties, body: Body::Value(body), ..Message::default() };
        let theirs: Deserializable<Theirs> = serde_amqp::from_slice(&encode(&ours)).unwrap();
        let back = serde_amqp::to_vec(&Serializable(theirs.0)).unwrap();
        prop_assert_eq!(Message::decode(&back.into()).unwrap(), ours);
    }
}

#[test]
fn a_value_of_every_kind_may_be_the_body() {
    let described = Value::Described(Box::new((Value::Ulong(0x75), Value::Null)));
    for value in [Value::Null, Value::List(vec![]), Value::Decimal128([1; 16]), described] {
        let octets = Bytes::from(encode(&Message::value(value.clone())));
        assert_eq!(Message::decode(&octets).unwrap().body, Body::Value(value));
    }
    let array = [&numeric(section::VALUE)[..], &[0xe0, 4, 2, 0x50, 1, 2]].concat();
    let Body::Value(Value::Array(array)) = Message::decode(&array.into()).unwrap().body else {
        panic!("no array")
    };
    assert_eq!(array.len(), 2);
}
