//! Every composite goes out and comes back the same: through our own code, and through
//! `serde_amqp` with `fe2o3-amqp-types`, which share none of it.

use crate::common::{performatives as gen_perf, states, through_oracle};
use fe2o3_amqp_types::{definitions as def, messaging, performatives, sasl};
use hopline_wire::codec::Reader;
use hopline_wire::frame::FrameHeader;
use hopline_wire::performative::{SaslPerformative, Transfer};
use hopline_wire::{AmqpError, DeliveryState, DeliveryTag, Performative, Value};
use proptest::prelude::*;

fn through_peer(performative: &Performative) {
    match performative {
        Performative::Open(p) => through_oracle::<_, performatives::Open>(p),
        Performative::Begin(p) => through_oracle::<_, performatives::Begin>(p),
        Performative::Attach(p) => through_oracle::<_, performatives::Attach>(p),
        Performative::Flow(p) => through_oracle::<_, performatives::Flow>(p),
        Performative::Transfer(p) => through_oracle::<_, performatives::Transfer>(p),
        Performative::Disposition(p) => through_oracle::<_, performatives::Disposition>(p),
        Performative::Detach(p) => through_oracle::<_, performatives::Detach>(p),
        Performative::End(p) => through_oracle::<_, performatives::End>(p),
        Performative::Close(p) => through_oracle::<_, performatives::Close>(p),
    }
}

fn sasl_through_peer(performative: &SaslPerformative) {
    match performative {
        SaslPerformative::SaslMechanisms(p) => through_oracle::<_, sasl::SaslMechanisms>(p),
        SaslPerformative::SaslInit(p) => through_oracle::<_, sasl::SaslInit>(p),
        SaslPerformative::SaslChallenge(p) => through_oracle::<_, sasl::SaslChallenge>(p),
        SaslPerformative::SaslResponse(p) => through_oracle::<_, sasl::SaslResponse>(p),
        SaslPerformative::SaslOutcome(p) => through_oracle::<_, sasl::SaslOutcome>(p),
    }
}

/// Each element is a value of its own: it comes back, and arrays within arrays have theirs.
fn check_elements(elements: Vec<Value>) {
    for element in elements {
        let again: Value = crate::common::decode(&crate::common::encode(&element)).unwrap();
        assert_eq!(format!("{again:?}"), format!("{element:?}"), "by text, for the sake of NaN");
        if let Value::Array(inner) = element {
            check_elements(inner.values().unwrap());
        }
    }
}

/// A value in the longest form of each part of it.
fn long_form(value: &Value) -> Vec<u8> {
    let sized =
        |code: u8, body: &[u8]| [&[code], &(body.len() as u32).to_be_bytes()[..], body].concat();
    let compound = |code: u8, count: usize, items: Vec<u8>| {
        sized(code, &[&(count as u32).to_be_bytes()[..], &items].concat())
    };
    match value {
        Value::Boolean(v) => vec![0x56, u8::from(*v)],
        Value::Uint(v) => [&[0x70], &v.to_be_bytes()[..]].concat(),
        Value::Ulong(v) => [&[0x80], &v.to_be_bytes()[..]].concat(),
        Value::Int(v) => [&[0x71], &v.to_be_bytes()[..]].concat(),
        Value::Long(v) => [&[0x81], &v.to_be_bytes()[..]].concat(),
        Value::Binary(v) => sized(0xb0, v),
        Value::String(v) => sized(0xb1, v.as_bytes()),
        Value::Symbol(v) => sized(0xb3, v.as_str().as_bytes()),
        Value::List(v) => compound(0xd0, v.len(), v.iter().flat_map(long_form).collect()),
        Value::Map(v) => {
            let pairs = v.iter().flat_map(|(key, value)| [long_form(key), long_form(value)]);
            compound(0xd1, v.len() * 2, pairs.flatten().collect())
        }
        Value::Described(v) => [&[0x00], &long_form(&v.0)[..], &long_form(&v.1)].concat(),
        other => crate::common::encode(other),
    }
}

/// A transfer without its descriptor.
fn fields_of(transfer: &Transfer) -> Vec<u8> {
    crate::common::encode(transfer).split_off(3)
}

#[test]
fn a_plain_transfer_takes_the_short_way() {
    let plain = [0xc0, 10, 5, 0x43, 0x52, 9, 0xa0, 2, 1, 2, 0x43, 0x42];
    let (transfer, used) = Transfer::decode_plain(&plain).unwrap();
    assert_eq!((used, fields_of(&transfer)), (12, plain.to_vec()));
    let spelled_out = [0xc0, 16, 11, 0x43, 0x52, 9, 0xa0, 2, 1, 2, 0x43, 0x42, 0x42];
    let rest = [0x40, 0x40, 0x42, 0x40, 0x42];
    let same = Transfer::decode_plain(&[&spelled_out[..], &rest].concat());
    assert_eq!(same, Some((transfer, 18)), "as Proton and others write it");
}

#[test]
fn a_transfer_in_one_piece_says_what_the_long_way_says() {
    for (handle, id, settled) in [(0, 0, true), (255, u32::MAX, false), (7, 300, true)] {
        let mut frame = vec![1, 2, 3];
        let tag = DeliveryTag::from(u64::MAX - 5);
        assert!(Transfer::put_plain(&mut frame, (0x0102, handle), id, &tag, settled));
        let mut frame = frame.split_off(3);
        hopline_wire::frame::finish(&mut frame, 0, 0);
        let header = FrameHeader::parse(&frame, 512).unwrap().unwrap();
        assert_eq!((header.size, header.body, header.channel), (frame.len(), 8, 0x0102));
        let (said, used) = Performative::decode(&frame[8..]).unwrap();
        assert_eq!(used, frame.len() - 8);
        let Performative::Transfer(said) = said else { panic!("{said:?}") };
        let again = Transfer::decode_plain(&frame[11..]);
        assert_eq!(again, Some((said.clone(), used - 3)));
        let fields = (said.handle, said.delivery_id, said.delivery_tag, said.message_format);
        assert_eq!(fields, (handle, Some(id), Some(tag), Some(0)));
        assert_eq!((said.settled, said.more, said.state), (Some(settled), false, None));
    }
    let short = DeliveryTag::new(&[1]).unwrap();
    for (handle, tag) in [(256, DeliveryTag::from(1)), (0, short)] {
        assert!(!Transfer::put_plain(&mut Vec::new(), (0, handle), 1, &tag, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_short_way_of_a_transfer_agrees_with_the_long_one(
        mut transfer in gen_perf::transfer(),
        is_plain in any::<bool>(),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        if is_plain {
            (transfer.rcv_settle_mode, transfer.state) = (None, None);
            (transfer.resume, transfer.aborted, transfer.batchable) = (false, false, false);
        }
        let mut octets = fields_of(&transfer);
        if let Some((index, octet)) = change {
            *index.get_mut(&mut octets) = octet;
        }
        let mut r = Reader::new(&octets);
        let long = Transfer::decode_fields(&mut r).map(|transfer| (transfer, r.position())).ok();
        if let Some(short) = Transfer::decode_plain(&octets) {
            prop_assert_eq!(Some(short), long);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn performatives_come_back(p in gen_perf::performative(), payload in crate::common::binary()) {
        let mut octets = crate::common::encode(&p);
        let length = octets.len();
        octets.extend_from_slice(&payload);
        prop_assert_eq!(Performative::decode(&octets), Ok((p, length)));
    }

    #[test]
    fn performatives_come_back_from_a_peer(p in gen_perf::performative()) {
        through_peer(&p);
    }

    #[test]
    fn sasl_performatives_come_back(p in gen_perf::sasl()) {
        let octets = crate::common::encode(&p);
        prop_assert_eq!(SaslPerformative::decode(&octets), Ok((p.clone(), octets.len())));
        sasl_through_peer(&p);
    }

    #[test]
    fn values_come_back(value in crate::common::value()) {
        crate::common::round_trip(&value);
        through_oracle::<Value, serde_amqp::Value>(&value);
    }

    #[test]
    fn arrays_of_every_constructor_come_back(raw in crate::common::arrays::array()) {
        let octets = raw.encoded();
        let value: Value = crate::common::decode(&octets).unwrap();
        prop_assert_eq!(&crate::common::encode(&value), &octets, "it stays as it was sent");
        let Value::Array(array) = value else { panic!("no array") };
        let elements = array.values().unwrap();
        prop_assert_eq!(elements.len(), raw.count as usize);
        check_elements(elements);
    }

    #[test]
    fn the_long_forms_of_a_value_mean_the_same(value in crate::common::value()) {
        let long = long_form(&value);
        prop_assert_eq!(crate::common::decode::<Value>(&long), Ok(value));
    }

    #[test]
    fn states_come_back(state in states::state(), foreign in states::foreign_state()) {
        crate::common::round_trip(&state);
        through_oracle::<DeliveryState, messaging::DeliveryState>(&state);
        crate::common::round_trip(&foreign);
    }

    #[test]
    fn termini_come_back(source in states::source(), target in states::target_kind()) {
        crate::common::round_trip(&source);
        crate::common::round_trip(&target);
        through_oracle::<_, messaging::Source>(&source);
        through_oracle::<_, messaging::TargetArchetype>(&target);
    }

    #[test]
    fn header_and_properties_come_back(
        header in states::header(),
        properties in states::properties(),
    ) {
        crate::common::round_trip(&header);
        crate::common::round_trip(&properties);
        through_oracle::<_, messaging::Header>(&header);
        through_oracle::<_, messaging::Properties>(&properties);
    }

    #[test]
    fn errors_come_back(error in crate::common::error()) {
        crate::common::round_trip(&error);
        through_oracle::<AmqpError, def::Error>(&error);
    }
}
