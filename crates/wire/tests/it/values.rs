//! Values of every type at their limits: octet by octet against part 1, and against `serde_amqp`.

use crate::common::{decode, encode, round_trip, through_oracle};
use hopline_wire::{Symbol, Value, WireError};

fn both_ways(value: &Value, octets: &[u8]) {
    assert_eq!(encode(value), octets, "{value:?}");
    assert_eq!(decode::<Value>(octets).as_ref(), Ok(value));
    through_oracle::<Value, serde_amqp::Value>(value);
}

#[test]
fn whole_numbers_take_their_shortest_form() {
    both_ways(&Value::Ubyte(0), &[0x50, 0]);
    both_ways(&Value::Ubyte(255), &[0x50, 255]);
    both_ways(&Value::Ushort(u16::MAX), &[0x60, 255, 255]);
    both_ways(&Value::Uint(0), &[0x43]);
    both_ways(&Value::Uint(255), &[0x52, 255]);
    both_ways(&Value::Uint(256), &[0x70, 0, 0, 1, 0]);
    both_ways(&Value::Uint(u32::MAX), &[0x70, 255, 255, 255, 255]);
    both_ways(&Value::Ulong(0), &[0x44]);
    both_ways(&Value::Ulong(255), &[0x53, 255]);
    both_ways(&Value::Ulong(256), &[0x80, 0, 0, 0, 0, 0, 0, 1, 0]);
    both_ways(&Value::Ulong(u64::MAX), &[0x80, 255, 255, 255, 255, 255, 255, 255, 255]);
    both_ways(&Value::Byte(i8::MIN), &[0x51, 0x80]);
    both_ways(&Value::Byte(i8::MAX), &[0x51, 0x7f]);
    both_ways(&Value::Short(i16::MIN), &[0x61, 0x80, 0]);
    both_ways(&Value::Int(-1), &[0x54, 0xff]);
    both_ways(&Value::Int(127), &[0x54, 0x7f]);
    both_ways(&Value::Int(128), &[0x71, 0, 0, 0, 0x80]);
    both_ways(&Value::Int(-129), &[0x71, 0xff, 0xff, 0xff, 0x7f]);
    both_ways(&Value::Int(i32::MIN), &[0x71, 0x80, 0, 0, 0]);
    both_ways(&Value::Long(-128), &[0x55, 0x80]);
    both_ways(&Value::Long(128), &[0x81, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    both_ways(&Value::Long(i64::MIN), &[0x81, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    both_ways(&Value::Long(i64::MAX), &[0x81, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
}

#[test]
fn wide_forms_of_small_numbers_are_read() {
    for (octets, value) in [
        (&[0x56, 0][..], Value::Boolean(false)),
        (&[0x56, 1], Value::Boolean(true)),
        (&[0x52, 0], Value::Uint(0)),
        (&[0x70, 0, 0, 0, 9], Value::Uint(9)),
        (&[0x53, 0], Value::Ulong(0)),
        (&[0x80, 0, 0, 0, 0, 0, 0, 0, 9], Value::Ulong(9)),
        (&[0x71, 255, 255, 255, 255], Value::Int(-1)),
        (&[0x81, 0, 0, 0, 0, 0, 0, 0, 0], Value::Long(0)),
        (&[0xb0, 0, 0, 0, 1, 7], Value::Binary(vec![7].into())),
        (&[0xb1, 0, 0, 0, 1, b'a'], Value::from("a")),
        (&[0xb3, 0, 0, 0, 1, b'a'], Value::Symbol("a".into())),
        (&[0xc0, 1, 0], Value::List(vec![])),
        (&[0xd0, 0, 0, 0, 4, 0, 0, 0, 0], Value::List(vec![])),
        (&[0xd0, 0, 0, 0, 5, 0, 0, 0, 1, 0x40], Value::List(vec![Value::Null])),
        (&[0xd1, 0, 0, 0, 4, 0, 0, 0, 0], Value::Map(vec![])),
    ] {
        assert_eq!(decode::<Value>(octets), Ok(value));
    }
}

#[test]
fn floats_keep_every_bit() {
    for bits in [0, 0x8000_0000, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0xffc0_1234_u32] {
        let octets = encode(&Value::Float(f32::from_bits(bits)));
        assert_eq!(octets, [&[0x72][..], &bits.to_be_bytes()].concat());
        let Ok(Value::Float(back)) = decode(&octets) else { panic!("no float") };
        assert_eq!(back.to_bits(), bits);
    }
    for bits in [0, 1 << 63, 1, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48, (0xfff8 << 48) + 77_u64] {
        let octets = encode(&Value::Double(f64::from_bits(bits)));
        assert_eq!(octets, [&[0x82][..], &bits.to_be_bytes()].concat());
        let Ok(Value::Double(back)) = decode(&octets) else { panic!("no double") };
        assert_eq!(back.to_bits(), bits);
        let theirs: f64 = serde_amqp::from_slice(&octets).unwrap();
        assert_eq!(theirs.to_bits(), bits);
    }
}

#[test]
fn other_fixed_widths() {
    both_ways(&Value::Null, &[0x40]);
    both_ways(&Value::Boolean(true), &[0x41]);
    both_ways(&Value::Boolean(false), &[0x42]);
    both_ways(&Value::Decimal32([1, 2, 3, 4]), &[0x74, 1, 2, 3, 4]);
    both_ways(&Value::Decimal64([9; 8]), &[0x84, 9, 9, 9, 9, 9, 9, 9, 9]);
    both_ways(&Value::Decimal128([255; 16]), &[&[0x94][..], &[255; 16]].concat());
    both_ways(&Value::Uuid([7; 16]), &[&[0x98][..], &[7; 16]].concat());
    both_ways(&Value::Char('\0'), &[0x73, 0, 0, 0, 0]);
    both_ways(&Value::Char('😀'), &[0x73, 0, 1, 0xf6, 0]);
    both_ways(&Value::Char(char::MAX), &[0x73, 0, 0x10, 0xff, 0xff]);
    both_ways(&Value::Timestamp(-1), &[&[0x83][..], &[255; 8]].concat());
    both_ways(&Value::Timestamp(i64::MIN), &[0x83, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    both_ways(&Value::Timestamp(i64::MAX), &[&[0x83, 0x7f][..], &[255; 7]].concat());
}

#[test]
fn the_short_form_ends_at_255_octets() {
    for (octets, short) in [(0, true), (1, true), (255, true), (256, false), (70_000, false)] {
        let text = "a".repeat(octets);
        for (value, small, large) in [
            (Value::Binary(text.clone().into()), 0xa0, 0xb0),
            (Value::String(text.clone()), 0xa1, 0xb1),
            (Value::Symbol(Symbol::from(text.clone())), 0xa3, 0xb3),
        ] {
            let encoded = encode(&value);
            let head = if short { vec![small, octets as u8] } else { wide(large, octets) };
            assert_eq!(encoded[..head.len()], head);
            assert_eq!(encoded.len(), head.len() + octets);
            round_trip(&value);
            through_oracle::<Value, serde_amqp::Value>(&value);
        }
    }
}

fn wide(code: u8, size: usize) -> Vec<u8> {
    [&[code][..], &(size as u32).to_be_bytes()].concat()
}

#[test]
fn compounds_are_short_if_size_and_count_fit_in_an_octet() {
    // The size counts the octet of the count.
    for (items, list, map) in [(2, 0xc0, 0xc1), (254, 0xc0, 0xc1), (256, 0xd0, 0xd1)] {
        let list_value = Value::List(vec![Value::Null; items]);
        assert_eq!(encode(&list_value)[0], list);
        let map_value = Value::Map(vec![(Value::Null, Value::Null); items / 2]);
        assert_eq!(encode(&map_value)[0], map);
        for value in [list_value, map_value] {
            round_trip(&value);
        }
    }
    for (text, code) in [(252, 0xc0), (253, 0xd0)] {
        let value = Value::List(vec![Value::from("a".repeat(text).as_str())]);
        assert_eq!(encode(&value)[0], code, "size {} in all", text + 3);
        both_ways(&value, &encode(&value));
    }
    both_ways(&Value::List(vec![]), &[0x45]);
    both_ways(&Value::Map(vec![]), &[0xc1, 1, 0]);
}

#[test]
fn arrays_stay_as_they_are_and_give_their_elements() {
    let array = |octets: &[u8]| {
        let value: Value = decode(octets).unwrap();
        round_trip(&value);
        let Value::Array(array) = value else { panic!("no array") };
        array
    };
    let short = array(&[0xe0, 4, 2, 0x54, 5, 0x80]);
    assert_eq!(short.values(), Ok(vec![Value::Int(5), Value::Int(-128)]));
    let long = array(&[0xf0, 0, 0, 0, 7, 0, 0, 0, 2, 0x54, 5, 0x80]);
    assert_eq!(long, short);
    let nested = array(&[0xe0, 10, 2, 0xe0, 3, 1, 0x50, 1, 3, 1, 0x50, 2]);
    let inner: Vec<_> = nested.values().unwrap();
    for (value, want) in inner.iter().zip([1, 2]) {
        let Value::Array(inner) = value else { panic!("no array within") };
        assert_eq!(inner.values(), Ok(vec![Value::Ubyte(want)]));
    }
    let described = array(&[0xe0, 7, 2, 0x00, 0x53, 9, 0x50, 1, 2]);
    let nine = |n| Value::Described(Box::new((Value::Ulong(9), Value::Ubyte(n))));
    assert_eq!(described.values(), Ok(vec![nine(1), nine(2)]));
    assert_eq!(array(&[0xe0, 2, 3, 0x41]).values(), Ok(vec![Value::Boolean(true); 3]));
    assert_eq!(array(&[0xe0, 1, 0]).values(), Ok(vec![]));
    assert_eq!(array(&[0xe0, 2, 0, 0x50]).values(), Ok(vec![]));
    assert!(array(&[0xe0, 3, 0, 0x50, 1]).values().is_err(), "an element, but none is counted");
    assert!(array(&[0xe0, 5, 2, 0x50, 1, 2, 3]).values().is_err(), "an element too many");
    assert!(array(&[0xe0, 3, 2, 0x50, 1]).values().is_err(), "an element too few");
}

#[test]
fn described_values_nest_in_the_value_but_not_in_the_descriptor() {
    let inner = Value::Described(Box::new((Value::Symbol("a:b".into()), Value::Null)));
    let outer = Value::Described(Box::new((Value::Ulong(1 << 40), inner)));
    both_ways(&outer, &encode(&outer));
    for descriptor in [&[0x00, 0x53, 1, 0x53, 2][..], &[0x45], &[0xc0, 1, 0], &[0xe0, 2, 0, 0x40]] {
        let octets = [&[0x00], descriptor, &[0x40]].concat();
        let error = decode::<Value>(&octets).unwrap_err();
        assert!(matches!(error, WireError::Invalid { what: "descriptor", .. }), "{error}");
    }
}

#[test]
fn octets_that_are_no_value_of_their_type_are_refused() {
    for octets in [
        &[0x56, 2][..],
        &[0x73, 0, 0, 0xd8, 0],
        &[0x73, 0, 0x11, 0, 0],
        &[0xa1, 1, 0xff],
        &[0xa1, 2, 0xc0, 0x80],
        &[0xa3, 2, 0xc3, 0xa9],
        &[0xc1, 2, 1, 0x40],
        &[0xc0, 3, 1, 0x40, 0x40],
        &[0xc0, 2, 2, 0x40],
        &[0xc0, 0],
        &[0xd0, 0, 0, 0, 3, 0, 0, 0],
        &[0x3f],
        &[0x46],
        &[0x57],
        &[0x99, 0],
        &[0xff, 0],
    ] {
        assert!(decode::<Value>(octets).is_err(), "{octets:02x?}");
    }
}
