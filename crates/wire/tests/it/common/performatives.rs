use super::states::{source, state, target_kind};
use super::{binary, error, fields, symbol, symbols, tag, text, uint};
use hopline_wire::definitions::{ReceiverSettleMode, SaslCode, SenderSettleMode};
use hopline_wire::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, SaslChallenge, SaslInit,
    SaslMechanisms, SaslOutcome, SaslPerformative, SaslResponse, Transfer,
};
use hopline_wire::{Performative, Role, Value};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn receiver_mode() -> impl Strategy<Value = ReceiverSettleMode> {
    prop_oneof![Just(ReceiverSettleMode::First), Just(ReceiverSettleMode::Second)]
}

fn sender_mode() -> impl Strategy<Value = SenderSettleMode> {
    use SenderSettleMode::{Mixed, Settled, Unsettled};
    prop_oneof![Just(Unsettled), Just(Settled), Just(Mixed)]
}

pub fn open() -> BoxedStrategy<Open> {
    let head = (text(), of(text()), uint(), any::<u16>(), of(uint()));
    let tail = (symbols(), symbols(), symbols(), symbols(), of(fields()));
    (head, tail)
        .prop_map(|(head, tail)| Open {
            container_id: head.0,
            hostname: head.1,
            max_frame_size: head.2,
            channel_max: head.3,
            idle_time_out: head.4,
            outgoing_locales: tail.0,
            incoming_locales: tail.1,
            offered_capabilities: tail.2,
            desired_capabilities: tail.3,
            properties: tail.4,
        })
        .boxed()
}

pub fn begin() -> BoxedStrategy<Begin> {
    let head = (of(any::<u16>()), uint(), uint(), uint(), uint());
    (head, symbols(), symbols(), of(fields()))
        .prop_map(|(head, offered, desired, properties)| Begin {
            remote_channel: head.0,
            next_outgoing_id: head.1,
            incoming_window: head.2,
            outgoing_window: head.3,
            handle_max: head.4,
            offered_capabilities: offered,
            desired_capabilities: desired,
            properties,
        })
        .boxed()
}

/// A map of tags and states, as `attach.unsettled` has it; keys differ.
fn unsettled() -> BoxedStrategy<Value> {
    vec(any::<u8>(), 0..4)
        .prop_map(|tags| {
            let accepted =
                Value::Described(Box::new((Value::Ulong(0x24), Value::List(Vec::new()))));
            let states = [Value::Null, accepted].into_iter().cycle();
            let tags = tags.into_iter().enumerate();
            let keys = tags.map(|(n, tag)| Value::Binary(vec![n as u8, tag].into()));
            Value::Map(keys.zip(states).collect())
        })
        .boxed()
}

pub fn attach() -> BoxedStrategy<Attach> {
    let head = (text(), uint(), role(), sender_mode(), receiver_mode());
    let ends = (of(source().prop_map(Box::new)), of(target_kind().prop_map(Box::new)));
    let counts = (of(unsettled()), any::<bool>(), of(uint()), any::<u64>());
    let tail = (symbols(), symbols(), of(fields()));
    (head, ends, counts, tail)
        .prop_map(|(head, ends, counts, tail)| Attach {
            name: head.0,
            handle: head.1,
            role: head.2,
            snd_settle_mode: head.3,
            rcv_settle_mode: head.4,
            source: ends.0,
            target: ends.1,
            unsettled: counts.0,
            incomplete_unsettled: counts.1,
            initial_delivery_count: counts.2,
            max_message_size: counts.3,
            offered_capabilities: tail.0,
            desired_capabilities: tail.1,
            properties: tail.2,
        })
        .boxed()
}

pub fn flow() -> BoxedStrategy<Flow> {
    let session = (of(uint()), uint(), uint(), uint());
    let link = (of(uint()), of(uint()), of(uint()), of(uint()));
    (session, link, any::<bool>(), any::<bool>(), of(fields()))
        .prop_map(|(session, link, drain, echo, properties)| Flow {
            next_incoming_id: session.0,
            incoming_window: session.1,
            next_outgoing_id: session.2,
            outgoing_window: session.3,
            handle: link.0,
            delivery_count: link.1,
            link_credit: link.2,
            available: link.3,
            drain,
            echo,
            properties,
        })
        .boxed()
}

pub fn transfer() -> BoxedStrategy<Transfer> {
    let head = (uint(), of(uint()), of(tag()), of(uint()), of(any::<bool>()), any::<bool>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (head, of(receiver_mode()), of(state()), flags)
        .prop_map(|(head, rcv_settle_mode, state, flags)| Transfer {
            handle: head.0,
            delivery_id: head.1,
            delivery_tag: head.2,
            message_format: head.3,
            settled: head.4,
            more: head.5,
            rcv_settle_mode,
            state,
            resume: flags.0,
            aborted: flags.1,
            batchable: flags.2,
        })
        .boxed()
}

pub fn disposition() -> BoxedStrategy<Disposition> {
    (role(), uint(), of(uint()), any::<bool>(), of(state()), any::<bool>())
        .prop_map(|(role, first, last, settled, state, batchable)| Disposition {
            role,
            first,
            last,
            settled,
            state,
            batchable,
        })
        .boxed()
}

pub fn detach() -> impl Strategy<Value = Detach> {
    (uint(), any::<bool>(), of(error().prop_map(Box::new)))
        .prop_map(|(handle, closed, error)| Detach { handle, closed, error })
}

pub fn end() -> impl Strategy<Value = End> {
    of(error().prop_map(Box::new)).prop_map(|error| End { error })
}

pub fn close() -> impl Strategy<Value = Close> {
    of(error().prop_map(Box::new)).prop_map(|error| Close { error })
}

pub fn performative() -> impl Strategy<Value = Performative> {
    prop_oneof![
        open().prop_map(Performative::Open),
        begin().prop_map(Performative::Begin),
        attach().prop_map(Performative::Attach),
        flow().prop_map(Performative::Flow),
        transfer().prop_map(Performative::Transfer),
        disposition().prop_map(Performative::Disposition),
        detach().prop_map(Performative::Detach),
        end().prop_map(Performative::End),
        close().prop_map(Performative::Close),
    ]
}

fn sasl_code() -> impl Strategy<Value = SaslCode> {
    use SaslCode::{Auth, Ok, Sys, SysPerm, SysTemp};
    prop::sample::select(vec![Ok, Auth, Sys, SysPerm, SysTemp])
}

pub fn sasl() -> impl Strategy<Value = SaslPerformative> {
    prop_oneof![
        vec(symbol(), 1..5).prop_map(|sasl_server_mechanisms| {
            SaslPerformative::SaslMechanisms(SaslMechanisms { sasl_server_mechanisms })
        }),
        (symbol(), of(binary()), of(text())).prop_map(|(mechanism, initial_response, hostname)| {
            SaslPerformative::SaslInit(SaslInit { mechanism, initial_response, hostname })
        }),
        binary()
            .prop_map(|challenge| { SaslPerformative::SaslChallenge(SaslChallenge { challenge }) }),
        binary().prop_map(|response| SaslPerformative::SaslResponse(SaslResponse { response })),
        (sasl_code(), of(binary())).prop_map(|(code, additional_data)| {
            SaslPerformative::SaslOutcome(SaslOutcome { code, additional_data })
        }),
    ]
}
