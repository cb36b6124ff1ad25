use super::{binary, error, fields, symbol, symbols, text, uint, value};
use hopline_wire::message::{Header, Properties, Timestamp};
use hopline_wire::outcome::{Declared, Modified, Received, Rejected, TransactionalState};
use hopline_wire::terminus::{Coordinator, Source, Target, TargetKind};
use hopline_wire::{DeliveryState, Symbol, Value};
use proptest::option::of;
use proptest::prelude::*;

/// The four outcomes of part 3, and `declared`.
pub fn outcome() -> BoxedStrategy<DeliveryState> {
    let modified = (of(any::<bool>()), of(any::<bool>()), of(fields()));
    prop_oneof![
        Just(DeliveryState::Accepted),
        Just(DeliveryState::Released),
        of(error().prop_map(Box::new))
            .prop_map(|error| DeliveryState::Rejected(Rejected { error })),
        modified.prop_map(|(delivery_failed, undeliverable_here, message_annotations)| {
            let modified = Modified { delivery_failed, undeliverable_here, message_annotations };
            DeliveryState::Modified(Box::new(modified))
        }),
        binary().prop_map(|txn_id| DeliveryState::Declared(Declared { txn_id })),
    ]
    .boxed()
}

/// Every state that the standard defines.
pub fn state() -> BoxedStrategy<DeliveryState> {
    prop_oneof![
        4 => outcome(),
        1 => (uint(), any::<u64>()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received(Received { section_number, section_offset })
        }),
        1 => (binary(), of(outcome().prop_map(Box::new))).prop_map(|(txn_id, outcome)| {
            DeliveryState::Transactional(TransactionalState { txn_id, outcome })
        }),
    ]
    .boxed()
}

/// States that the standard does not define.
pub fn foreign_state() -> impl Strategy<Value = DeliveryState> {
    value().prop_map(|value| {
        DeliveryState::Other(Box::new(Value::Described(Box::new((Value::Ulong(0x99), value)))))
    })
}

fn expiry_policy() -> impl Strategy<Value = Symbol> {
    prop::sample::select(vec!["link-detach", "session-end", "connection-close", "never"])
        .prop_map(Symbol::from)
}

fn distribution_mode() -> impl Strategy<Value = Symbol> {
    prop::sample::select(vec!["move", "copy"]).prop_map(Symbol::from)
}

pub fn source() -> BoxedStrategy<Source> {
    let head = (of(text()), 0..3u32, expiry_policy(), uint(), any::<bool>(), of(fields()));
    let tail = (of(distribution_mode()), of(fields()), of(outcome()), symbols(), symbols());
    (head, tail)
        .prop_map(
            |(
                (address, durable, expiry_policy, timeout, dynamic, dynamic_node_properties),
                tail,
            )| {
                let (distribution_mode, filter, default_outcome, outcomes, capabilities) = tail;
                Source {
                    address,
                    durable,
                    expiry_policy,
                    timeout,
                    dynamic,
                    dynamic_node_properties,
                    distribution_mode,
                    filter,
                    default_outcome,
                    outcomes,
                    capabilities,
                }
            },
        )
        .boxed()
}

pub fn target() -> BoxedStrategy<Target> {
    let all =
        (of(text()), 0..3u32, expiry_policy(), uint(), any::<bool>(), of(fields()), symbols());
    all.prop_map(|(address, durable, expiry_policy, timeout, dynamic, properties, capabilities)| {
        Target {
            address,
            durable,
            expiry_policy,
            timeout,
            dynamic,
            dynamic_node_properties: properties,
            capabilities,
        }
    })
    .boxed()
}

pub fn coordinator() -> impl Strategy<Value = TargetKind> {
    let names = vec![
        "amqp:local-transactions",
        "amqp:distributed-transactions",
        "amqp:promotable-transactions",
        "amqp:multi-txns-per-ssn",
        "amqp:multi-ssns-per-txn",
    ];
    prop::sample::subsequence(names, 0..=5).prop_map(|names| {
        let capabilities = names.into_iter().map(Symbol::from).collect();
        TargetKind::Coordinator(Coordinator { capabilities })
    })
}

pub fn target_kind() -> BoxedStrategy<TargetKind> {
    prop_oneof![3 => target().prop_map(TargetKind::Target), 1 => coordinator()].boxed()
}

pub fn header() -> impl Strategy<Value = Header> {
    (any::<bool>(), any::<u8>(), of(uint()), any::<bool>(), uint()).prop_map(
        |(durable, priority, ttl, first_acquirer, delivery_count)| Header {
            durable,
            priority,
            ttl,
            first_acquirer,
            delivery_count,
        },
    )
}

fn message_id() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::Ulong),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        binary().prop_map(Value::Binary),
        text().prop_map(Value::String),
    ]
}

pub fn properties() -> BoxedStrategy<Properties> {
    let ids =
        (of(message_id()), of(binary()), of(text()), of(text()), of(text()), of(message_id()));
    let kinds = (of(symbol()), of(symbol()), of(any::<i64>()), of(any::<i64>()));
    let group = (of(text()), of(uint()), of(text()));
    (ids, kinds, group)
        .prop_map(|(ids, kinds, group)| Properties {
            message_id: ids.0,
            user_id: ids.1,
            to: ids.2,
            subject: ids.3,
            reply_to: ids.4,
            correlation_id: ids.5,
            content_type: kinds.0,
            content_encoding: kinds.1,
            absolute_expiry_time: kinds.2.map(Timestamp),
            creation_time: kinds.3.map(Timestamp),
            group_id: group.0,
            group_sequence: group.1,
            reply_to_group_id: group.2,
        })
        .boxed()
}
