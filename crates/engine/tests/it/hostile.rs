//! Peers that mean harm, or are broken: whatever they send, the engine goes on or closes, writes
//! whole frames, and keeps no more than its limits allow.

use crate::support::{
    Script, attach, begin, close, config, detach, disposition, end, flow, go_on, grant, open,
    plain, transfer,
};
use hopline_engine::wire::DeliveryState;
use hopline_engine::wire::frame;
use hopline_engine::wire::performative::{Begin, Disposition, Flow, Frame, SaslInit, Transfer};
use hopline_engine::wire::{Performative, Role, Symbol};
use hopline_engine::{Anonymous, Config, Event};
use proptest::collection::vec;
use proptest::prelude::*;

fn put(frame: &impl Frame, channel: u16) -> Vec<u8> {
    let mut octets = Vec::new();
    frame.put(&mut octets, channel);
    octets
}

fn part(transfer: Transfer, payload: &[u8]) -> Vec<u8> {
    Script::transfer_octets(&transfer, payload)
}

/// A valid conversation, by its headers and frames.
fn conversation() -> Vec<Vec<u8>> {
    let init = SaslInit {
        mechanism: Symbol::from_static("ANONYMOUS"),
        initial_response: None,
        hostname: None,
    };
    let accepted = Some(DeliveryState::Accepted);
    let seen = |ids: u32| Flow { next_outgoing_id: ids, ..flow() };
    vec![
        b"AMQP\x03\x01\x00\x00".to_vec(),
        put(&init, 0),
        b"AMQP\x00\x01\x00\x00".to_vec(),
        put(&open(), 0),
        put(&begin(), 0),
        put(&begin(), 3),
        put(&attach("in", 0, Role::Sender), 0),
        put(&attach("out", 1, Role::Receiver), 0),
        part(transfer(0, 0), b"whole"),
        part(Transfer { more: true, ..transfer(0, 1) }, b"in two"),
        part(go_on(0), b" parts"),
        part(Transfer { more: true, ..transfer(0, 2) }, b"never"),
        part(Transfer { aborted: true, ..go_on(0) }, b""),
        put(&Flow { next_outgoing_id: 5, ..grant(1, 0, 10) }, 0),
        put(&Flow { echo: true, ..seen(5) }, 0),
        put(&Flow { drain: true, next_outgoing_id: 5, ..grant(1, 0, 10) }, 0),
        put(&disposition(Role::Sender, 0, 1, accepted), 0),
        put(&attach("in", 5, Role::Sender), 3),
        put(&detach(0, true), 0),
        put(&detach(1, false), 0),
        vec![0, 0, 0, 8, 2, 0, 0, 0],
        put(&end(), 0),
        put(&begin(), 0),
        put(&end(), 3),
        put(&close(), 0),
    ]
}

fn fresh() -> Script {
    let mut script = Script::server(config(), Anonymous);
    script.end.credit = 100;
    script
}

/// What is told if the octets come in these parts.
fn told<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut script = fresh();
    parts.into_iter().for_each(|part| script.raw(part));
    format!("{:#?}", script.end.events)
}

#[test]
fn the_events_are_the_same_however_the_octets_are_cut() {
    let all = conversation().concat();
    let whole = told([&all[..]]);
    assert!(whole.contains("Closed") && whole.matches("error: Some").count() == 1, "{whole}");
    assert!(whole.contains("link:stolen"), "the one error is the second link with one name");
    for size in 1..64 {
        assert_eq!(told(all.chunks(size)), whole, "in parts of {size}");
    }
    for cut in 1..all.len() {
        assert_eq!(told([&all[..cut], &all[cut..]]), whole, "cut at {cut}");
    }
}

#[test]
fn a_peer_that_leaves_at_any_octet_is_cleaned_up_behind() {
    let all = conversation().concat();
    for cut in 0..all.len() {
        let mut script = fresh();
        script.raw(&all[..cut]);
        script.end.connection.handle_eof();
        script.end.poll(script.now);
        let events = &script.end.events;
        let count = |wanted: fn(&Event) -> bool| events.iter().filter(|e| wanted(e)).count();
        assert_eq!(count(|e| matches!(e, Event::Closed { .. })), 1, "cut at {cut}");
        let begun = count(|e| matches!(e, Event::SessionBegun(_)));
        assert_eq!(begun, count(|e| matches!(e, Event::SessionEnded { .. })));
        let attached = count(|e| matches!(e, Event::AttachRequest { .. }));
        assert_eq!(attached, count(|e| matches!(e, Event::Detached { .. })));
        assert!(matches!(events.last(), Some(Event::Closed { .. })));
    }
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..6, 1 => Just(u32::MAX), 1 => Just(0x7fff_ffff), 1 => Just(0x8000_0000)]
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Sender), Just(Role::Receiver)]
}

fn any_flow() -> impl Strategy<Value = Flow> {
    let ids = (proptest::option::of(small()), small(), small());
    let link = (proptest::option::of(small()), small(), small(), any::<bool>(), any::<bool>());
    (ids, link).prop_map(|((seen, window, out), (handle, count, credit, drain, echo))| Flow {
        next_incoming_id: seen,
        incoming_window: window,
        next_outgoing_id: out,
        drain,
        echo,
        delivery_count: handle.map(|_| count),
        link_credit: handle.map(|_| credit),
        handle,
        ..Flow::default()
    })
}

fn any_transfer() -> impl Strategy<Value = Vec<u8>> {
    let bits = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (0_u32..3, 0_u32..6, bits, vec(any::<u8>(), 0..50)).prop_map(|(handle, id, bits, payload)| {
        let (continues, more, aborted, settled) = bits;
        let base = if continues { go_on(handle) } else { transfer(handle, id) };
        let aborted = aborted && more;
        part(Transfer { more, aborted, settled: settled.then_some(true), ..base }, &payload)
    })
}

/// Frames that are well-formed, of which many make no sense where they come.
fn any_frame() -> BoxedStrategy<Vec<u8>> {
    let channel = || 0_u16..3;
    prop_oneof![
        2 => (channel(), small()).prop_map(|(c, window)| {
            put(&Begin { incoming_window: window, ..begin() }, c)
        }),
        4 => (channel(), 0_u32..3, 0_u32..3, role()).prop_map(|(c, name, handle, role)| {
            put(&attach(&name.to_string(), handle, role), c)
        }),
        6 => any_transfer(),
        6 => (channel(), any_flow()).prop_map(|(c, flow)| put(&flow, c)),
        4 => (channel(), role(), small(), small(), any::<bool>()).prop_map(
            |(c, role, first, last, settled)| {
                let accepted = Some(DeliveryState::Accepted);
                put(&Disposition { settled, ..disposition(role, first, last, accepted) }, c)
            }
        ),
        3 => (channel(), 0_u32..3, any::<bool>()).prop_map(|(c, handle, closed)| {
            put(&detach(handle, closed), c)
        }),
        1 => channel().prop_map(|c| put(&end(), c)),
    ]
    .boxed()
}

/// What must hold after whatever was sent.
fn is_sound(script: &mut Script) {
    script.heard();
    let state = format!("{:?}", script.end.connection);
    assert!(state.len() < 500_000, "{} octets of state", state.len());
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    let closed = script.end.events.iter().filter(|e| matches!(e, Event::Closed { .. })).count();
    assert_eq!(closed, 1);
    script.heard();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_octets_behind_open_do_no_harm(octets in vec(any::<u8>(), 0..300)) {
        let mut script = plain();
        script.raw(&octets);
        is_sound(&mut script);
    }

    #[test]
    fn random_bodies_in_sound_frames_do_no_harm(
        bodies in vec((0x10_u8..0x19, vec(any::<u8>(), 0..60)), 0..20)
    ) {
        let (mut script, _) = Script::attached(config(), Role::Sender, 10);
        for (code, body) in bodies {
            let mut octets = vec![0, 0, 0, 0, 2, 0, 0, 0, 0x00, 0x53, code, 0xc0];
            octets.push(body.len() as u8 + 1);
            octets.extend_from_slice(&body);
            frame::finish(&mut octets, 0, 0);
            script.raw(&octets);
        }
        is_sound(&mut script);
    }

    #[test]
    fn sound_frames_in_any_order_do_no_harm(
        frames in vec(any_frame(), 0..60),
        answers in any::<bool>(),
    ) {
        let (mut script, link) = Script::attached(config(), Role::Sender, 10);
        script.end.answers = answers;
        for (n, frame) in frames.iter().enumerate() {
            script.raw(frame);
            if n % 5 == 0 {
                let _ = script.end.connection.set_credit(link, n as u32);
                let _ = script.end.send(link, &[7; 100]);
                script.heard();
            }
        }
        is_sound(&mut script);
    }

    #[test]
    fn a_conversation_with_mistakes_does_no_harm(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        lost in proptest::option::of(any::<prop::sample::Index>()),
        twice in proptest::option::of(any::<prop::sample::Index>()),
        cut in 1_usize..100,
    ) {
        let mut frames = conversation();
        if let Some(lost) = lost {
            frames.remove(lost.index(frames.len()));
        }
        if let Some(twice) = twice {
            let at = twice.index(frames.len());
            frames.insert(at, frames[at].clone());
        }
        let mut all = frames.concat();
        for (at, octet) in changes {
            let at = at.index(all.len());
            all[at] = octet;
        }
        let mut script = fresh();
        all.chunks(cut).for_each(|part| script.raw(part));
        script.octets();
        script.end.connection.handle_eof();
        script.end.poll(script.now);
        prop_assert!(script.end.connection.is_over());
    }
}

#[test]
fn the_memory_of_a_connection_is_bounded_by_its_limits() {
    let limits = Config {
        channel_max: 3,
        handle_max: 7,
        max_partial_octets: 10_000,
        max_unsettled: 100,
        ..config()
    };
    let mut script = Script::opened(limits);
    script.end.credit = 1_000_000;
    let mut octets = Vec::new();
    for channel in 0..4 {
        octets.extend(put(&begin(), channel));
        for handle in 0..8 {
            let link = attach(&format!("{channel}.{handle}"), handle, Role::Sender);
            octets.extend(put(&link, channel));
        }
    }
    script.raw(&octets);
    script.heard();
    let settled = Some(true);
    for handle in 0..8 {
        script.raw(&part(Transfer { settled, more: true, ..transfer(handle, handle) }, b"x"));
    }
    let mut refused = 0;
    for round in 0..2000 {
        script.raw(&part(Transfer { more: true, ..go_on(round % 8) }, &[1; 300]));
        let heard = script.heard();
        refused +=
            heard.iter().filter(|h| matches!(h.performative, Performative::Detach(_))).count();
        let state = format!("{:?}", script.end.connection);
        assert!(state.len() < 120_000, "{} octets of state", state.len());
    }
    assert_eq!(refused, 8, "each ran into the limit that they share");
}
