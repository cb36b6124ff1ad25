//! Inputs that public reports name, where no other test has them: sizes at their limits, arrays.

use crate::common::{decode, encode, round_trip};
use hopline_wire::codec::{Decode, Reader};
use hopline_wire::message::{Layout, Message, Properties};
use hopline_wire::value::Array;
use hopline_wire::{Symbol, Value};

fn array(octets: &[u8]) -> Array {
    match decode::<Value>(octets).unwrap() {
        Value::Array(array) => array,
        other => panic!("no array: {other:?}"),
    }
}

/// An array of `count` ubytes.
fn ubytes(count: u32) -> Vec<u8> {
    let size = (count + 5).to_be_bytes();
    let elements = vec![7; count as usize];
    [&[0xf0][..], &size, &count.to_be_bytes(), &[0x50], &elements].concat()
}

#[test]
fn an_array_costs_what_its_elements_do_and_nothing_until_it_is_read() {
    for count in [10_000, 100_000, 1_000_000] {
        let octets = ubytes(count);
        let message = [&[0x00, 0x53, 0x77][..], &octets].concat();
        let passed = allocation_counter::measure(|| {
            assert!(Layout::scan(&message).is_ok());
            assert_eq!(Reader::new(&octets).skip().unwrap().len(), octets.len());
        });
        assert_eq!(passed.bytes_total, 0, "it is passed by its size");
        let kept = allocation_counter::measure(|| {
            assert_eq!(Value::decode(&mut Reader::new(&octets)).map(|_| ()), Ok(()));
        });
        assert!(kept.bytes_total < octets.len() as u64 + 256, "{}", kept.bytes_total);
        let array = array(&octets);
        let read = allocation_counter::measure(|| {
            assert_eq!(array.values().unwrap().len(), count as usize);
        });
        // Growing by doubling: twice what is needed in all, and a logarithm of allocations. Were
        // the rest copied for each element, it would be millions of times that.
        let needed = u64::from(count) * size_of::<Value>() as u64;
        assert!(read.bytes_total < 5 * needed, "{} for {count}", read.bytes_total);
        assert!(read.count_total < 40, "{} allocations", read.count_total);
    }
}

#[test]
fn a_map_is_short_while_its_size_with_the_count_fits_in_an_octet() {
    // The key takes 3 octets, the value 2 and its text, the count 1.
    for (text, size) in [(248, 254), (249, 255), (250, 256), (251, 257)] {
        let value = Value::Map(vec![("k".into(), Value::from("v".repeat(text).as_str()))]);
        let octets = encode(&value);
        match u8::try_from(size) {
            Ok(size) => assert_eq!(octets[..3], [0xc1, size, 2]),
            Err(_) => assert_eq!(octets[..9], [0xd1, 0, 0, 1, size as u8 + 3, 0, 0, 0, 2]),
        }
        round_trip(&value);
        crate::common::through_oracle::<Value, serde_amqp::Value>(&value);
    }
    // 127 pairs of nulls are 254 elements: the count would fit with a pair more, but not the size.
    for (pairs, code) in [(127, 0xc1), (128, 0xd1)] {
        let value = Value::Map(vec![(Value::Null, Value::Null); pairs]);
        assert_eq!(encode(&value)[0], code);
        round_trip(&value);
    }
}

#[test]
fn elements_of_an_array_keep_their_sign_and_constructor() {
    let small = [0xe0, 6, 4, 0x55, 127, 128, 255, 0];
    let longs = |values: &[i64]| values.iter().map(|n| Value::Long(*n)).collect::<Vec<_>>();
    assert_eq!(array(&small).values().unwrap(), longs(&[127, -128, -1, 0]));
    let wide: Vec<u8> = [128, 255, -129].iter().flat_map(|n: &i64| n.to_be_bytes()).collect();
    let wide = [&[0xe0, 26, 3, 0x81][..], &wide].concat();
    assert_eq!(array(&wide).values().unwrap(), longs(&[128, 255, -129]));
    for octets in [&small[..], &wide] {
        let again = encode(&decode::<Value>(octets).unwrap());
        assert_eq!(array(&again), array(octets), "nothing is squeezed into another constructor");
        let theirs: serde_amqp::primitives::Array<i64> = serde_amqp::from_slice(&again).unwrap();
        assert_eq!(longs(&theirs.0), array(octets).values().unwrap());
    }
}

#[test]
fn texts_of_one_character_and_of_none() {
    for (octets, value) in [
        (&[0xa1, 0][..], Value::from("")),
        (&[0xa1, 1, b'a'], Value::from("a")),
        (&[0xb1, 0, 0, 0, 1, b'a'], Value::from("a")),
        (&[0xa3, 0], Value::Symbol(Symbol::from_static(""))),
        (&[0xa3, 1, b's'], Value::Symbol(Symbol::from_static("s"))),
        (&[0xa0, 1, 0], Value::Binary(vec![0].into())),
    ] {
        assert_eq!(decode::<Value>(octets), Ok(value.clone()));
        assert!(decode::<Value>(&octets[..octets.len() - 1]).is_err(), "{octets:02x?} cut short");
        // As the value of an annotation, where the next key must be found behind it.
        let map = [&[0xd1, 0, 0, 0, 0, 0, 0, 0, 4, 0xa3, 1, b'a'][..], octets].concat();
        let mut map = [&map[..], &[0xa3, 1, b'b', 0x41]].concat();
        let size = (map.len() as u32 - 5).to_be_bytes();
        map[1..5].copy_from_slice(&size);
        let message = [&[0x00, 0x53, 0x72][..], &map, &[0x00, 0x53, 0x77, 0x40]].concat();
        let message = Message::decode(&message.into()).unwrap();
        assert_eq!(message.message_annotations.get("a"), Some(&value));
        assert_eq!(message.message_annotations.get("b"), Some(&Value::Boolean(true)));
    }
}

#[test]
fn what_an_application_does_not_set_is_not_sent() {
    let plain = Message::data("m");
    assert_eq!(encode(&plain), b"\x00\x53\x75\xa0\x01m", "no section of defaults");
    let properties = Properties { subject: Some("s".into()), ..Properties::default() };
    let octets = encode(&Message { properties, ..plain });
    let back = Message::decode(&octets.into()).unwrap().properties;
    assert_eq!(
        (back.absolute_expiry_time, back.creation_time, back.message_id),
        (None, None, None)
    );
}
