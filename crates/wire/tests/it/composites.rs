//! The forms that a composite may have on the wire (part 1, 1.4), for each composite of the
//! standard: its fields as the schema lists them, with a sample of each field's type.

use hopline_wire::codec::{Decode, Reader};
use hopline_wire::definitions::AmqpError;
use hopline_wire::message::{Header, Properties};
use hopline_wire::outcome::{
    Accepted, Declared, Modified, Received, Rejected, Released, TransactionalState,
};
use hopline_wire::performative::{Open, SaslMechanisms, SaslPerformative};
use hopline_wire::terminus::{Coordinator, Declare, Discharge, Source, Target};
use hopline_wire::{DeliveryState, Performative, Symbol, WireError};

type Octets = &'static [u8];

const STRING: Octets = &[0xa1, 1, b'a'];
const SYMBOL: Octets = &[0xa3, 1, b'a'];
const BINARY: Octets = &[0xa0, 1, 7];
const BOOLEAN: Octets = &[0x56, 1];
const UBYTE: Octets = &[0x50, 0];
const USHORT: Octets = &[0x60, 0, 1];
const UINT: Octets = &[0x70, 0, 0, 0, 1];
const ULONG: Octets = &[0x80, 0, 0, 0, 0, 0, 0, 0, 1];
const TIMESTAMP: Octets = &[0x83, 0, 0, 0, 0, 0, 0, 0, 1];
const MAP: Octets = &[0xd1, 0, 0, 0, 4, 0, 0, 0, 0];
const SYMBOLS: Octets = &[0xe0, 4, 1, 0xa3, 1, b'a'];
const ERROR: Octets = &[0x00, 0x53, 0x1d, 0xc0, 4, 1, 0xa3, 1, b'a'];
const ACCEPTED: Octets = &[0x00, 0x53, 0x24, 0x45];
const SOURCE: Octets = &[0x00, 0x53, 0x28, 0xc0, 1, 0];
const TARGET: Octets = &[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x45];
/// Of no type that any field has.
const FLOAT: Octets = &[0x72, 0, 0, 0, 0];
const NULL: Octets = &[0x40];

struct Row {
    code: u8,
    name: &'static str,
    fields: &'static [Octets],
    /// Indices of mandatory fields.
    mandatory: &'static [usize],
}

const fn row(
    code: u8,
    name: &'static str,
    mandatory: &'static [usize],
    fields: &'static [Octets],
) -> Row {
    Row { code, name, fields, mandatory }
}

const SCHEMA: &[Row] = &[
    row(
        0x10,
        "amqp:open:list",
        &[0],
        &[STRING, STRING, UINT, USHORT, UINT, SYMBOLS, SYMBOL, SYMBOLS, SYMBOL, MAP],
    ),
    row(
        0x11,
        "amqp:begin:list",
        &[1, 2, 3],
        &[USHORT, UINT, UINT, UINT, UINT, SYMBOLS, SYMBOL, MAP],
    ),
    row(
        0x12,
        "amqp:attach:list",
        &[0, 1, 2],
        &[
            STRING, UINT, BOOLEAN, UBYTE, UBYTE, SOURCE, TARGET, MAP, BOOLEAN, UINT, ULONG,
            SYMBOLS, SYMBOL, MAP,
        ],
    ),
    row(
        0x13,
        "amqp:flow:list",
        &[1, 2, 3],
        &[UINT, UINT, UINT, UINT, UINT, UINT, UINT, UINT, BOOLEAN, BOOLEAN, MAP],
    ),
    row(
        0x14,
        "amqp:transfer:list",
        &[0],
        &[UINT, UINT, BINARY, UINT, BOOLEAN, BOOLEAN, UBYTE, ACCEPTED, BOOLEAN, BOOLEAN, BOOLEAN],
    ),
    row(0x15, "amqp:disposition:list", &[0, 1], &[BOOLEAN, UINT, UINT, BOOLEAN, ACCEPTED, BOOLEAN]),
    row(0x16, "amqp:detach:list", &[0], &[UINT, BOOLEAN, ERROR]),
    row(0x17, "amqp:end:list", &[], &[ERROR]),
    row(0x18, "amqp:close:list", &[], &[ERROR]),
    row(0x1d, "amqp:error:list", &[0], &[SYMBOL, STRING, MAP]),
    row(0x23, "amqp:received:list", &[0, 1], &[UINT, ULONG]),
    row(0x24, "amqp:accepted:list", &[], &[]),
    row(0x25, "amqp:rejected:list", &[], &[ERROR]),
    row(0x26, "amqp:released:list", &[], &[]),
    row(0x27, "amqp:modified:list", &[], &[BOOLEAN, BOOLEAN, MAP]),
    row(
        0x28,
        "amqp:source:list",
        &[],
        &[STRING, UINT, SYMBOL, UINT, BOOLEAN, MAP, SYMBOL, MAP, ACCEPTED, SYMBOLS, SYMBOL],
    ),
    row(0x29, "amqp:target:list", &[], &[STRING, UINT, SYMBOL, UINT, BOOLEAN, MAP, SYMBOLS]),
    row(0x30, "amqp:coordinator:list", &[], &[SYMBOLS]),
    row(0x31, "amqp:declare:list", &[], &[BINARY]),
    row(0x32, "amqp:discharge:list", &[0], &[BINARY, BOOLEAN]),
    row(0x33, "amqp:declared:list", &[0], &[BINARY]),
    row(0x34, "amqp:transactional-state:list", &[0], &[BINARY, ACCEPTED]),
    row(0x40, "amqp:sasl-mechanisms:list", &[0], &[SYMBOLS]),
    row(0x41, "amqp:sasl-init:list", &[0], &[SYMBOL, BINARY, STRING]),
    row(0x42, "amqp:sasl-challenge:list", &[0], &[BINARY]),
    row(0x43, "amqp:sasl-response:list", &[0], &[BINARY]),
    row(0x44, "amqp:sasl-outcome:list", &[0], &[UBYTE, BINARY]),
    row(0x70, "amqp:header:list", &[], &[BOOLEAN, UBYTE, UINT, BOOLEAN, UINT]),
    row(
        0x73,
        "amqp:properties:list",
        &[],
        &[
            ULONG, BINARY, STRING, STRING, STRING, STRING, SYMBOL, SYMBOL, TIMESTAMP, TIMESTAMP,
            STRING, UINT, STRING,
        ],
    ),
];

/// A descriptor and a list of these fields; `wide` for `list32`.
fn composite(descriptor: &[u8], fields: &[Octets], wide: bool) -> Vec<u8> {
    let body = fields.concat();
    let mut out = [&[0x00], descriptor].concat();
    if wide {
        out.push(0xd0);
        out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
    } else {
        out.extend_from_slice(&[0xc0, body.len() as u8 + 1, fields.len() as u8]);
    }
    out.extend_from_slice(&body);
    out
}

fn short(code: u8) -> Vec<u8> {
    vec![0x53, code]
}

fn read<T: Decode>(octets: &[u8]) -> Result<(), WireError> {
    let mut r = Reader::new(octets);
    T::decode(&mut r)?;
    assert!(r.is_empty());
    Ok(())
}

fn read_as(code: u8, octets: &[u8]) -> Result<(), WireError> {
    match code {
        0x10..=0x18 => Performative::decode(octets).map(|_| ()),
        0x1d => read::<AmqpError>(octets),
        0x23 => read::<Received>(octets),
        0x24 => read::<Accepted>(octets),
        0x25 => read::<Rejected>(octets),
        0x26 => read::<Released>(octets),
        0x27 => read::<Modified>(octets),
        0x28 => read::<Source>(octets),
        0x29 => read::<Target>(octets),
        0x30 => read::<Coordinator>(octets),
        0x31 => read::<Declare>(octets),
        0x32 => read::<Discharge>(octets),
        0x33 => read::<Declared>(octets),
        0x34 => read::<TransactionalState>(octets),
        0x40..=0x44 => SaslPerformative::decode(octets).map(|_| ()),
        0x70 => read::<Header>(octets),
        _ => read::<Properties>(octets),
    }
}

#[test]
fn each_way_to_spell_descriptor_and_list_is_read() {
    for Row { code, name, fields, .. } in SCHEMA {
        let number = [&[0x80][..], &u64::from(*code).to_be_bytes()].concat();
        let sym8 = [&[0xa3, name.len() as u8][..], name.as_bytes()].concat();
        let sym32 = [&[0xb3, 0, 0, 0, name.len() as u8][..], name.as_bytes()].concat();
        for descriptor in [short(*code), number, sym8, sym32] {
            for wide in [false, true] {
                let octets = composite(&descriptor, fields, wide);
                assert_eq!(read_as(*code, &octets), Ok(()), "{name} {octets:02x?}");
            }
        }
    }
}

#[test]
fn descriptors_that_almost_match_are_refused() {
    for Row { code, name, fields, .. } in SCHEMA {
        let other_domain = [&[0x80, 0, 0, 0, 1, 0, 0, 0][..], &[*code]].concat();
        let longer = [&[0xa3, name.len() as u8 + 1][..], name.as_bytes(), b"X"].concat();
        let cut = &name.as_bytes()[..name.len() - 1];
        let shorter = [&[0xa3, cut.len() as u8][..], cut].concat();
        for descriptor in [other_domain, longer, shorter, vec![0x53, 0x99], vec![0x44]] {
            let error = read_as(*code, &composite(&descriptor, fields, false)).unwrap_err();
            assert!(matches!(error, WireError::Descriptor { .. }), "{name}: {error}");
        }
        for descriptor in [&[0x52, *code][..], &[0x00, 0x53, *code, 0x40], &[0x40], &[0xa1, 1, 1]] {
            let error = read_as(*code, &composite(descriptor, fields, false)).unwrap_err();
            assert!(matches!(error, WireError::Constructor { .. }), "{name}: {error}");
        }
    }
}

#[test]
fn null_is_refused_in_mandatory_fields_and_read_in_others() {
    for Row { code, name, fields, mandatory } in SCHEMA {
        for at in 0..fields.len() {
            let mut some = fields.to_vec();
            some[at] = NULL;
            let result = read_as(*code, &composite(&short(*code), &some, false));
            if mandatory.contains(&at) {
                let error = result.unwrap_err();
                assert!(matches!(error, WireError::MissingField { .. }), "{name} {at}: {error}");
            } else {
                assert_eq!(result, Ok(()), "{name} {at}");
            }
        }
    }
}

#[test]
fn fields_may_be_left_out_at_the_end_unless_they_are_mandatory() {
    for Row { code, name, fields, mandatory } in SCHEMA {
        let needed = mandatory.last().map_or(0, |last| last + 1);
        for count in 0..=fields.len() {
            let result =
                read_as(*code, &composite(&short(*code), &fields[..count], count % 2 == 0));
            assert_eq!(result.is_ok(), count >= needed, "{name} with {count}: {result:?}");
        }
        let list0 = [&[0x00, 0x53, *code][..], &[0x45]].concat();
        assert_eq!(read_as(*code, &list0).is_ok(), needed == 0, "{name} with list0");
    }
}

#[test]
fn more_fields_than_the_standard_defines_are_refused() {
    for Row { code, name, fields, .. } in SCHEMA {
        let more = [fields, &[NULL][..]].concat();
        let error = read_as(*code, &composite(&short(*code), &more, false)).unwrap_err();
        assert!(matches!(error, WireError::TooManyFields { .. }), "{name}: {error}");
    }
}

#[test]
fn a_field_of_another_type_is_refused() {
    for Row { code, name, fields, .. } in SCHEMA {
        for at in 0..fields.len() {
            let mut wrong = fields.to_vec();
            wrong[at] = FLOAT;
            let result = read_as(*code, &composite(&short(*code), &wrong, true));
            // declare.global-id may be of any type.
            assert_eq!(result.is_err(), *code != 0x31, "{name} {at}");
        }
    }
}

#[test]
fn what_is_no_list_or_is_longer_than_its_fields_is_refused() {
    for Row { code, name, fields, .. } in SCHEMA {
        for value in [MAP, UINT, NULL, SYMBOLS, STRING] {
            let octets = [&[0x00, 0x53, *code][..], value].concat();
            assert!(read_as(*code, &octets).is_err(), "{name} as {value:02x?}");
        }
        let mut octets = composite(&short(*code), fields, false);
        octets.push(0x40);
        octets[4] += 1;
        assert!(read_as(*code, &octets).is_err(), "{name} with an octet behind its fields");
    }
}

#[test]
fn null_means_the_default() {
    let open = composite(&short(0x10), &[STRING, NULL, NULL, NULL], false);
    let Ok((Performative::Open(open), _)) = Performative::decode(&open) else { panic!("no open") };
    assert_eq!((open.max_frame_size, open.channel_max), (u32::MAX, u16::MAX));
    let header = composite(&short(0x70), &[NULL; 5], false);
    assert_eq!(Header::decode(&mut Reader::new(&header)), Ok(Header::default()));
    let source = composite(&short(0x28), &[NULL; 11], false);
    assert_eq!(Source::decode(&mut Reader::new(&source)), Ok(Source::default()));
    let target = composite(&short(0x29), &[NULL; 7], false);
    assert_eq!(Target::decode(&mut Reader::new(&target)), Ok(Target::default()));
}

#[test]
fn a_field_of_many_symbols_has_four_forms() {
    let array8: Octets = &[0xe0, 6, 2, 0xa3, 1, b'a', 1, b'b'];
    let array32: Octets =
        &[0xf0, 0, 0, 0, 15, 0, 0, 0, 2, 0xb3, 0, 0, 0, 1, b'a', 0, 0, 0, 1, b'b'];
    let empty: Octets = &[0xe0, 2, 0, 0xa3];
    for (octets, want) in [
        (array8, &["a", "b"][..]),
        (array32, &["a", "b"]),
        (SYMBOL, &["a"]),
        (SYMBOLS, &["a"]),
        (NULL, &[]),
        (empty, &[]),
    ] {
        let want: Vec<Symbol> = want.iter().map(|name| Symbol::from_static(name)).collect();
        let open =
            composite(&short(0x10), &[STRING, NULL, NULL, NULL, NULL, NULL, NULL, octets], false);
        let open = Open::decode(&mut Reader::new(&open)).unwrap();
        assert_eq!(open.offered_capabilities, want);

        let mechanisms = composite(&short(0x40), &[octets], true);
        let mechanisms = SaslMechanisms::decode(&mut Reader::new(&mechanisms));
        match mechanisms {
            Ok(found) => assert_eq!(found.sasl_server_mechanisms, want),
            Err(_) => assert!(want.is_empty(), "mechanisms may not be empty"),
        }
    }
    for octets in [
        &[0xe0, 4, 1, 0xa1, 1, b'a'][..],
        &[0xe0, 4, 2, 0xa3, 1, b'a'],
        &[0xe0, 5, 1, 0xa3, 1, b'a', 0],
        &[0xf0, 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0xa3, 0],
        &[0xe0, 2, 9, 0x40],
        STRING,
    ] {
        let coordinator = composite(&short(0x30), &[octets], false);
        let result = Coordinator::decode(&mut Reader::new(&coordinator));
        assert!(result.is_err(), "{octets:02x?}: {result:?}");
    }
}

#[test]
fn restricted_values_outside_their_choices_are_refused() {
    let attach = |at: usize, field: Octets| {
        let mut fields = vec![STRING, UINT, BOOLEAN, UBYTE, UBYTE];
        fields[at] = field;
        read_as(0x12, &composite(&short(0x12), &fields, false))
    };
    for (at, choices) in [(3, 3), (4, 2)] {
        for (choice, octets) in [&[0x50, 0], &[0x50, 1], &[0x50, 2], &[0x50, 3]].iter().enumerate()
        {
            assert_eq!(attach(at, *octets).is_ok(), choice < choices, "{at} {choice}");
        }
    }
    assert!(read_as(0x44, &composite(&short(0x44), &[&[0x50, 4]], false)).is_ok());
    assert!(read_as(0x44, &composite(&short(0x44), &[&[0x50, 5]], false)).is_err());
}

#[test]
fn a_tag_has_32_octets_at_most() {
    for (octets, ok) in [(0_u8, true), (1, true), (32, true), (33, false), (255, false)] {
        let tag = [vec![0xa0, octets], vec![1; octets.into()]].concat();
        let fields: &[Octets] = &[UINT, UINT, tag.leak()];
        assert_eq!(read_as(0x14, &composite(&short(0x14), fields, true)).is_ok(), ok, "{octets}");
    }
}

#[test]
fn ids_of_messages_have_four_types() {
    const UUID: Octets = &[0x98, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    for (id, ok) in [
        (ULONG, true),
        (UUID, true),
        (BINARY, true),
        (STRING, true),
        (UINT, false),
        (SYMBOL, false),
        (ACCEPTED, false),
    ] {
        let fields = [id, NULL, NULL, NULL, NULL, id];
        assert_eq!(read_as(0x73, &composite(&short(0x73), &fields, false)).is_ok(), ok);
    }
}

#[test]
fn states_within_states_are_bounded_and_unknown_ones_are_kept() {
    let state = |octets: &[u8]| DeliveryState::decode(&mut Reader::new(octets));
    let plain = composite(&short(0x34), &[BINARY, ACCEPTED], false);
    assert!(matches!(state(&plain), Ok(DeliveryState::Transactional(_))));
    let twice = composite(&short(0x34), &[BINARY, plain.leak()], false);
    assert!(state(&twice).is_err());
    let received = composite(&short(0x23), &[UINT, ULONG], false).leak();
    assert!(state(&composite(&short(0x34), &[BINARY, received], false)).is_err());
    let unknown = [0x00, 0x53, 0x99, 0x45];
    let kept = state(&unknown).unwrap();
    assert!(matches!(kept, DeliveryState::Other(_)));
    let mut out = Vec::new();
    hopline_wire::codec::Encode::encode(&kept, &mut out);
    assert_eq!(out, unknown);
}
