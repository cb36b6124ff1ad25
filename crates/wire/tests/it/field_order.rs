//! Each field lands in its own place: composites written by an independent implementation, with
//! a different value in each field, read by us.

use crate::common::decode;
use fe2o3_amqp_types::{definitions as def, messaging, performatives as perf};
use hopline_wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_wire::message::{Header, Properties, Timestamp};
use hopline_wire::performative::{Attach, Begin, Disposition, Flow, Open, Transfer};
use hopline_wire::terminus::{Source, Target, TargetKind};
use hopline_wire::value::Array;
use hopline_wire::{DeliveryState, DeliveryTag, Fields, Role, Symbol, Value};
use serde_amqp::primitives::{self as amqp, OrderedMap};

fn from_peer<T: hopline_wire::codec::Decode>(theirs: &impl serde::Serialize) -> T {
    decode(&serde_amqp::to_vec(theirs).unwrap()).unwrap()
}

fn their_symbols(names: &[&str]) -> Option<amqp::Array<amqp::Symbol>> {
    Some(names.iter().map(|name| amqp::Symbol::from(*name)).collect())
}

fn our_symbols(names: &[&'static str]) -> Vec<Symbol> {
    names.iter().map(|name| Symbol::from_static(name)).collect()
}

fn their_fields(key: &str) -> OrderedMap<amqp::Symbol, serde_amqp::Value> {
    let mut fields = OrderedMap::new();
    fields.insert(amqp::Symbol::from(key), serde_amqp::Value::Int(-7));
    fields
}

fn our_fields(key: &'static str) -> Fields {
    Fields(vec![(Symbol::from_static(key), Value::Int(-7))])
}

#[test]
fn open() {
    let theirs = perf::Open {
        container_id: "c".into(),
        hostname: Some("h".into()),
        max_frame_size: 1024.into(),
        channel_max: 7.into(),
        idle_time_out: Some(60_000),
        outgoing_locales: their_symbols(&["en-US"]),
        incoming_locales: their_symbols(&["de", "fr"]),
        offered_capabilities: their_symbols(&["o"]),
        desired_capabilities: their_symbols(&["d"]),
        properties: Some(their_fields("product")),
    };
    let ours = Open {
        container_id: "c".into(),
        hostname: Some("h".into()),
        max_frame_size: 1024,
        channel_max: 7,
        idle_time_out: Some(60_000),
        outgoing_locales: our_symbols(&["en-US"]),
        incoming_locales: our_symbols(&["de", "fr"]),
        offered_capabilities: our_symbols(&["o"]),
        desired_capabilities: our_symbols(&["d"]),
        properties: Some(our_fields("product")),
    };
    assert_eq!(from_peer::<Open>(&theirs), ours);
}

#[test]
fn begin() {
    let theirs = perf::Begin {
        remote_channel: Some(1),
        next_outgoing_id: 2,
        incoming_window: 300,
        outgoing_window: 4,
        handle_max: 5.into(),
        offered_capabilities: their_symbols(&["o"]),
        desired_capabilities: their_symbols(&["d"]),
        properties: Some(their_fields("p")),
    };
    let ours = Begin {
        remote_channel: Some(1),
        next_outgoing_id: 2,
        incoming_window: 300,
        outgoing_window: 4,
        handle_max: 5,
        offered_capabilities: our_symbols(&["o"]),
        desired_capabilities: our_symbols(&["d"]),
        properties: Some(our_fields("p")),
    };
    assert_eq!(from_peer::<Begin>(&theirs), ours);
}

fn their_source() -> messaging::Source {
    messaging::Source {
        address: Some("s".into()),
        durable: messaging::TerminusDurability::UnsettledState,
        expiry_policy: messaging::TerminusExpiryPolicy::Never,
        timeout: 9,
        dynamic: true,
        dynamic_node_properties: Some(their_fields("lifetime-policy")),
        distribution_mode: Some(messaging::DistributionMode::Copy),
        filter: Some(their_fields("selector")),
        default_outcome: Some(messaging::Outcome::Released(messaging::Released {})),
        outcomes: their_symbols(&["amqp:accepted:list"]),
        capabilities: their_symbols(&["queue"]),
    }
}

fn our_source() -> Source {
    Source {
        address: Some("s".into()),
        durable: 2,
        expiry_policy: Symbol::from_static("never"),
        timeout: 9,
        dynamic: true,
        dynamic_node_properties: Some(our_fields("lifetime-policy")),
        distribution_mode: Some(Symbol::from_static("copy")),
        filter: Some(our_fields("selector")),
        default_outcome: Some(DeliveryState::Released),
        outcomes: our_symbols(&["amqp:accepted:list"]),
        capabilities: our_symbols(&["queue"]),
    }
}

fn their_target() -> messaging::Target {
    messaging::Target {
        address: Some("t".into()),
        durable: messaging::TerminusDurability::Configuration,
        expiry_policy: messaging::TerminusExpiryPolicy::LinkDetach,
        timeout: 11,
        dynamic: true,
        dynamic_node_properties: Some(their_fields("supported-dist-modes")),
        capabilities: their_symbols(&["topic"]),
    }
}

fn our_target() -> Target {
    Target {
        address: Some("t".into()),
        durable: 1,
        expiry_policy: Symbol::from_static("link-detach"),
        timeout: 11,
        dynamic: true,
        dynamic_node_properties: Some(our_fields("supported-dist-modes")),
        capabilities: our_symbols(&["topic"]),
    }
}

#[test]
fn attach_with_source_and_target() {
    let theirs = perf::Attach {
        name: "n".into(),
        handle: 3.into(),
        role: def::Role::Receiver,
        snd_settle_mode: def::SenderSettleMode::Settled,
        rcv_settle_mode: def::ReceiverSettleMode::Second,
        source: Some(Box::new(their_source())),
        target: Some(Box::new(messaging::TargetArchetype::Target(their_target()))),
        unsettled: Some(OrderedMap::new()),
        incomplete_unsettled: true,
        initial_delivery_count: Some(12),
        max_message_size: Some(1 << 40),
        offered_capabilities: their_symbols(&["o"]),
        desired_capabilities: their_symbols(&["d"]),
        properties: Some(their_fields("p")),
    };
    let ours = Attach {
        name: "n".into(),
        handle: 3,
        role: Role::Receiver,
        snd_settle_mode: SenderSettleMode::Settled,
        rcv_settle_mode: ReceiverSettleMode::Second,
        source: Some(Box::new(our_source())),
        target: Some(Box::new(TargetKind::Target(our_target()))),
        unsettled: Some(Value::Map(Vec::new())),
        incomplete_unsettled: true,
        initial_delivery_count: Some(12),
        max_message_size: 1 << 40,
        offered_capabilities: our_symbols(&["o"]),
        desired_capabilities: our_symbols(&["d"]),
        properties: Some(our_fields("p")),
    };
    assert_eq!(from_peer::<Attach>(&theirs), ours);
}

#[test]
fn flow() {
    let theirs = perf::Flow {
        next_incoming_id: Some(1),
        incoming_window: 2,
        next_outgoing_id: 3,
        outgoing_window: 4,
        handle: Some(5.into()),
        delivery_count: Some(6),
        link_credit: Some(7),
        available: Some(8),
        drain: true,
        echo: false,
        properties: Some(their_fields("p")),
    };
    let ours = Flow {
        next_incoming_id: Some(1),
        incoming_window: 2,
        next_outgoing_id: 3,
        outgoing_window: 4,
        handle: Some(5),
        delivery_count: Some(6),
        link_credit: Some(7),
        available: Some(8),
        drain: true,
        echo: false,
        properties: Some(our_fields("p")),
    };
    assert_eq!(from_peer::<Flow>(&theirs), ours);
}

#[test]
fn transfer_flag_by_flag() {
    for flag in 0..4 {
        let set = |n| flag == n;
        let theirs = perf::Transfer {
            handle: 1.into(),
            delivery_id: Some(2),
            delivery_tag: Some(vec![3, 4].into()),
            message_format: Some(5),
            settled: Some(true),
            more: set(0),
            rcv_settle_mode: Some(def::ReceiverSettleMode::Second),
            state: Some(messaging::DeliveryState::Accepted(messaging::Accepted {})),
            resume: set(1),
            aborted: set(2),
            batchable: set(3),
        };
        let ours = Transfer {
            handle: 1,
            delivery_id: Some(2),
            delivery_tag: DeliveryTag::new(&[3, 4]),
            message_format: Some(5),
            settled: Some(true),
            more: set(0),
            rcv_settle_mode: Some(ReceiverSettleMode::Second),
            state: Some(DeliveryState::Accepted),
            resume: set(1),
            aborted: set(2),
            batchable: set(3),
        };
        assert_eq!(from_peer::<Transfer>(&theirs), ours);
    }
}

#[test]
fn disposition() {
    for settled in [false, true] {
        let theirs = perf::Disposition {
            role: def::Role::Receiver,
            first: 1,
            last: Some(2),
            settled,
            state: Some(messaging::DeliveryState::Released(messaging::Released {})),
            batchable: !settled,
        };
        let ours = Disposition {
            role: Role::Receiver,
            first: 1,
            last: Some(2),
            settled,
            state: Some(DeliveryState::Released),
            batchable: !settled,
        };
        assert_eq!(from_peer::<Disposition>(&theirs), ours);
    }
}

#[test]
fn header_and_properties() {
    let theirs = messaging::Header {
        durable: true,
        priority: messaging::Priority(9),
        ttl: Some(1000),
        first_acquirer: false,
        delivery_count: 3,
    };
    let ours = Header {
        durable: true,
        priority: 9,
        ttl: Some(1000),
        first_acquirer: false,
        delivery_count: 3,
    };
    assert_eq!(from_peer::<Header>(&theirs), ours);

    let theirs = messaging::Properties {
        message_id: Some(messaging::MessageId::Ulong(1)),
        user_id: Some(vec![2].into()),
        to: Some("to".into()),
        subject: Some("subject".into()),
        reply_to: Some("reply".into()),
        correlation_id: Some(messaging::MessageId::String("3".into())),
        content_type: Some("text/plain".into()),
        content_encoding: Some("gzip".into()),
        absolute_expiry_time: Some(amqp::Timestamp::from_milliseconds(-1)),
        creation_time: Some(amqp::Timestamp::from_milliseconds(i64::MIN)),
        group_id: Some("group".into()),
        group_sequence: Some(u32::MAX),
        reply_to_group_id: Some("reply-group".into()),
    };
    let ours = Properties {
        message_id: Some(Value::Ulong(1)),
        user_id: Some(vec![2].into()),
        to: Some("to".into()),
        subject: Some("subject".into()),
        reply_to: Some("reply".into()),
        correlation_id: Some("3".into()),
        content_type: Some("text/plain".into()),
        content_encoding: Some("gzip".into()),
        absolute_expiry_time: Some(Timestamp(-1)),
        creation_time: Some(Timestamp(i64::MIN)),
        group_id: Some("group".into()),
        group_sequence: Some(u32::MAX),
        reply_to_group_id: Some("reply-group".into()),
    };
    assert_eq!(from_peer::<Properties>(&theirs), ours);
}

#[test]
fn arrays_of_a_peer_hold_the_same_elements() {
    use serde_amqp::Value as Theirs;
    let longs: amqp::Array<Theirs> =
        [1, 128, -129, i64::MAX].map(Theirs::Long).into_iter().collect();
    let Value::Array(ours) = from_peer(&Theirs::Array(longs)) else { panic!("no array") };
    let longs = [1, 128, -129, i64::MAX].map(Value::Long).to_vec();
    assert_eq!(ours.values(), Ok(longs));

    let names = our_symbols(&["a", "bc"]);
    let array = Value::Array(Array::symbols(&names));
    let theirs: Theirs = serde_amqp::from_slice(&crate::common::encode(&array)).unwrap();
    let want = ["a", "bc"].map(|name| Theirs::Symbol(amqp::Symbol::from(name)));
    assert_eq!(theirs, Theirs::Array(want.into_iter().collect()));
}
