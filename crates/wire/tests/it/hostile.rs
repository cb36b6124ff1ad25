//! Octets from somebody who means harm, or from a broken peer: an error in bounded time and space,
//! never a panic.

use crate::common::{decode, encode, performatives as gen_perf, states};
use bytes::Bytes;
use hopline_wire::codec::{Decode, Reader};
use hopline_wire::message::{Layout, Message, annotation, section};
use hopline_wire::performative::SaslPerformative;
use hopline_wire::{Performative, Value, WireError, condition, limits};
use proptest::collection::vec;
use proptest::prelude::*;

/// Everything that reads octets of a peer.
fn read_all(octets: &[u8]) {
    let _ = Performative::decode(octets);
    let _ = SaslPerformative::decode(octets);
    let _ = Reader::new(octets).skip();
    annotation(octets, |_, key, value| assert!(key.len() + value.len() <= octets.len()));
    if let Ok(value) = Value::decode(&mut Reader::new(octets)) {
        let again: Value = decode(&encode(&value)).unwrap();
        assert_eq!(format!("{value:?}"), format!("{again:?}"), "by text, for the sake of NaN");
        elements(&value);
    }
    if let Ok(layout) = Layout::scan(octets) {
        assert!(layout.bare <= layout.body.start && layout.body.end <= octets.len());
    }
    let _ = Message::decode(&Bytes::copy_from_slice(octets));
}

fn elements(value: &Value) {
    match value {
        Value::Array(array) => {
            let _ = array.values();
        }
        Value::List(items) => items.iter().for_each(elements),
        _ => {}
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let parts =
        (states::header(), crate::common::fields(), states::properties(), crate::common::value());
    parts.prop_map(|(header, message_annotations, properties, body)| {
        encode(&Message { header, message_annotations, properties, ..Message::value(body) })
    })
}

fn legal() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        gen_perf::performative().prop_map(|p| encode(&p)),
        gen_perf::sasl().prop_map(|p| encode(&p)),
        crate::common::value().prop_map(|value| encode(&value)),
        crate::common::fields().prop_map(|fields| encode(&fields)),
        message(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_octets_do_no_harm(octets in vec(any::<u8>(), 0..200)) {
        read_all(&octets);
        read_all(&[&[0x00, 0x53][..], &octets].concat());
    }

    #[test]
    fn legal_octets_with_some_changed_do_no_harm(
        mut octets in legal(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for (at, octet) in changes {
            let at = at.index(octets.len());
            octets[at] = octet;
        }
        read_all(&octets);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_performative_cut_short_is_refused(p in gen_perf::performative()) {
        let octets = encode(&p);
        for cut in 0..octets.len() {
            prop_assert!(Performative::decode(&octets[..cut]).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn a_sasl_performative_cut_short_is_refused(p in gen_perf::sasl()) {
        let octets = encode(&p);
        for cut in 0..octets.len() {
            prop_assert!(SaslPerformative::decode(&octets[..cut]).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn a_message_cut_within_a_section_is_refused(octets in message()) {
        let mut sections = Reader::new(&octets);
        let mut ends = Vec::new();
        while sections.skip().is_ok() {
            ends.push(sections.position());
        }
        for cut in 0..octets.len() {
            let is_whole = ends.contains(&cut);
            prop_assert_eq!(Layout::scan(&octets[..cut]).is_ok(), is_whole, "cut at {}", cut);
        }
    }
}

/// `codes`, `depth` times, then `end`; with sizes if they are lists.
fn nested_lists(depth: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    for level in (0..depth).rev() {
        octets.push(0xd0);
        octets.extend_from_slice(&(level as u32 * 9 + 5).to_be_bytes());
        octets.extend_from_slice(&1_u32.to_be_bytes());
    }
    octets.push(0x40);
    octets
}

#[test]
fn nesting_is_bounded() {
    let deepest = nested_lists(limits::NESTING);
    crate::common::round_trip(&decode::<Value>(&deepest).unwrap());
    let beyond = nested_lists(limits::NESTING + 1);
    let error = decode::<Value>(&beyond).unwrap_err();
    assert_eq!(error.condition(), condition::RESOURCE_LIMIT_EXCEEDED);

    let described = |prefix: &[u8]| [prefix.repeat(100_000), vec![0x40]].concat();
    let body = [0x00, 0x53, section::VALUE];
    for octets in [
        nested_lists(100_000),
        described(&[0x00, 0x53, 1]),
        described(&[0x00]),
        described(&[0x00, 0x53, 0x34, 0xc0, 255, 2, 0xa0, 0]),
    ] {
        assert!(Value::decode(&mut Reader::new(&octets)).is_err());
        read_all(&octets);
        read_all(&[&body[..], &octets].concat());
        let state = [&[0x00, 0x53, 0x14, 0xd0, 0, 0x7f, 0, 0, 0, 0, 0, 8, 0x43][..], &[0x40; 6]];
        read_all(&[&state.concat()[..], &octets].concat());
    }
}

#[test]
fn arrays_without_octets_cost_no_more_than_the_limit() {
    for constructor in [&[0x40][..], &[0x41], &[0x43], &[0x44], &[0x45], &[0x00, 0x53, 1, 0x40]] {
        for count in [1024_u32, 1025, u32::MAX] {
            let size = constructor.len() as u32 + 4;
            let head = [&[0xf0][..], &size.to_be_bytes(), &count.to_be_bytes()].concat();
            let value: Value = decode(&[&head[..], constructor].concat()).unwrap();
            let Value::Array(array) = &value else { panic!("no array") };
            assert_eq!(array.values().is_ok(), count as usize <= limits::ZERO_WIDTH_ITEMS);
            crate::common::round_trip(&value);
        }
    }
    let bytes: Value = decode(&[0xf0, 0, 0, 0, 6, 255, 255, 255, 255, 0x50, 1]).unwrap();
    let Value::Array(array) = bytes else { panic!("no array") };
    assert!(matches!(array.values(), Err(WireError::Truncated { .. })));
}

#[test]
fn sizes_and_counts_beyond_what_is_there_are_refused() {
    for octets in [
        // A list, map, array or string in a list, each longer than the list.
        &[0xc0, 4, 1, 0xc0, 9, 0, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40][..],
        &[0xc0, 4, 1, 0xc1, 9, 0, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40],
        &[0xc0, 4, 1, 0xe0, 9, 0, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40],
        &[0xc0, 4, 1, 0xa1, 9, b'a', b'a', b'a', b'a', b'a', b'a', b'a', b'a'],
        &[0xd0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        &[0xb0, 0xff, 0xff, 0xff, 0xff, 0],
        &[0xb0, 0xff, 0xff, 0xff, 0xfb, 0],
        &[0xd0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40],
        &[0xd1, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfe, 0x40],
        &[0xd0, 0, 0, 0, 0],
        &[0xe0, 0],
    ] {
        assert!(Value::decode(&mut Reader::new(octets)).is_err(), "{octets:02x?}");
        read_all(octets);
        read_all(&[&[0x00, 0x53, section::VALUE][..], octets].concat());
        read_all(&[&[0x00, 0x53, 0x10][..], octets].concat());
    }
}

/// Octets allocated at most while `octets` are read as a value, and as an array's elements.
/// An open whose offered capabilities are this array.
fn open_offering(array: &[u8]) -> Vec<u8> {
    let mut fields = vec![8, 0xa1, 1, b'c', 0x40, 0x40, 0x40, 0x40, 0x40, 0x40];
    fields.extend(array);
    [&[0, 0x53, 0x10, 0xc0, fields.len() as u8], &fields[..]].concat()
}

#[test]
fn an_array_of_no_symbols_has_nothing_behind_its_constructor() {
    for right in [&[0xe0, 1, 0][..], &[0xe0, 2, 0, 0xa3], &[0xf0, 0, 0, 0, 5, 0, 0, 0, 0, 0xb3]] {
        let (open, _) = Performative::decode(&open_offering(right)).unwrap();
        let Performative::Open(open) = open else { panic!("{open:?}") };
        assert!(open.offered_capabilities.is_empty());
    }
    let stray: [&[u8]; 3] = [
        &[0xe0, 3, 0, 0xa3, 0],
        &[0xe0, 2, 0, 0x70],
        &[0xf0, 0, 0, 0, 9, 0, 0, 0, 0, 0xb3, 0, 0, 0, 0],
    ];
    for wrong in stray {
        assert!(Performative::decode(&open_offering(wrong)).is_err(), "{wrong:x?}");
    }
}

fn allocated(octets: &[u8]) -> u64 {
    let info = allocation_counter::measure(|| {
        if let Ok(value) = Value::decode(&mut Reader::new(octets)) {
            elements(&value);
        }
    });
    info.bytes_max
}

#[test]
fn allocation_stays_in_proportion_to_the_octets() {
    let list = |item: &[u8], count: usize| {
        let body = item.repeat(count);
        let size = (body.len() as u32 + 4).to_be_bytes();
        [&[0xd0][..], &size, &(count as u32).to_be_bytes(), &body].concat()
    };
    let long_descriptor = |count: u32| {
        let name = [&[0x00, 0xb3, 0, 0, 0x40, 0][..], &[b'a'; 0x4000], &[0x50]].concat();
        let size = (name.len() as u32 + count + 4).to_be_bytes();
        let elements = vec![7; count as usize];
        [&[0xf0][..], &size, &count.to_be_bytes(), &name, &elements].concat()
    };
    let described = |depth: u8| {
        let constructor = [&[0x00, 0x44].repeat(depth.into())[..], &[0x50]].concat();
        let size = (constructor.len() as u32 + 10_004).to_be_bytes();
        [&[0xf0][..], &size, &10_000_u32.to_be_bytes(), &constructor, &[7; 10_000]].concat()
    };
    let Value::Array(array) = decode(&described(5)).unwrap() else { panic!("no array") };
    assert!(array.values().is_err(), "a fifth descriptor would cost too much");
    assert!(allocated(&list(&[0x40], 10_000)) > 10_000, "the count of allocations is at work");
    for (what, octets) in [
        ("nulls", list(&[0x40], 10_000)),
        ("lists of one", list(&[0xc0, 2, 1, 0x40], 10_000)),
        ("maps of one", list(&[0xc1, 3, 2, 0x40, 0x40], 10_000)),
        ("described", list(&[0x00, 0x44, 0x40], 10_000)),
        ("empty symbols", list(&[0xa3, 0], 10_000)),
        ("arrays of nulls", list(&[0xe0, 2, 255, 0x40], 10_000)),
        ("an array whose elements share a long descriptor", long_descriptor(10_000)),
        ("an array whose elements share four descriptors", described(4)),
        ("counts without elements", list(&[0xd0, 0, 0, 0, 4, 255, 255, 255, 255], 1)),
    ] {
        let (used, length) = (allocated(&octets), octets.len() as u64);
        assert!(used <= 512 * length + 65_536, "{what}: {used} for {length}");
    }
}
