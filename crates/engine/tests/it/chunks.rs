//! However a stream of octets is cut into reads, and whatever it is, the events and the octets that
//! go out are those of the whole at once (part 2, 2.3).

use crate::support::{
    Script, attach, begin, close, config, detach, disposition, end, flow, go_on, grant, open,
    transfer,
};
use hopline_engine::Anonymous;
use hopline_engine::wire::performative::{Flow, Frame, SaslInit, Transfer};
use hopline_engine::wire::{DeliveryState, Role, Symbol};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn put(frame: &impl Frame, channel: u16) -> Vec<u8> {
    let mut octets = Vec::new();
    frame.put(&mut octets, channel);
    octets
}

fn seen(ids: u32) -> Flow {
    Flow { next_outgoing_id: ids, ..flow() }
}

/// What two links of one session say, by its frames: `n` deliveries in parts, and what is between.
fn talk(channel: u16, n: u32, part: usize) -> Vec<Vec<u8>> {
    let on = |mut octets: Vec<u8>| {
        octets[6..8].copy_from_slice(&channel.to_be_bytes());
        octets
    };
    let name = format!("{channel}");
    let mut frames = vec![
        put(&begin(), channel),
        put(&attach(&name, 0, Role::Sender), channel),
        put(&attach(&name, 7, Role::Receiver), channel),
        put(&grant(7, 0, 10), channel),
    ];
    let body: Vec<u8> = (0..100).collect();
    let mut ids = 0;
    for id in 0..n {
        let parts = body.chunks(part).count();
        for (at, payload) in body.chunks(part).enumerate() {
            let begun = if at == 0 { transfer(0, id) } else { go_on(0) };
            let more = at + 1 < parts;
            frames.push(on(Script::transfer_octets(&Transfer { more, ..begun }, payload)));
            ids += 1;
        }
    }
    let first = Transfer { more: true, ..transfer(0, n) };
    frames.push(on(Script::transfer_octets(&first, b"never whole")));
    frames.push(on(Script::transfer_octets(&Transfer { aborted: true, ..go_on(0) }, b"")));
    let accepted = Some(DeliveryState::Accepted);
    frames.extend([
        put(&Flow { echo: true, ..seen(ids + 2) }, channel),
        put(&Flow { drain: true, next_outgoing_id: ids + 2, ..grant(7, 0, 10) }, channel),
        put(&disposition(Role::Sender, 0, n, accepted), channel),
        vec![0, 0, 0, 12, 3, 0, 0, 0, 1, 2, 3, 4],
        put(&detach(0, true), channel),
        put(&end(), channel),
    ]);
    frames
}

/// A valid conversation, by its headers and frames.
fn conversation(sasl: bool, channel: u16, n: u32, part: usize) -> Vec<Vec<u8>> {
    let mechanism = Symbol::from_static("ANONYMOUS");
    let init = SaslInit { mechanism, initial_response: None, hostname: None };
    let login = [b"AMQP\x03\x01\x00\x00".to_vec(), put(&init, 0)];
    let mut frames: Vec<_> = if sasl { login.into() } else { Vec::new() };
    frames.extend([b"AMQP\x00\x01\x00\x00".to_vec(), put(&open(), 0)]);
    frames.extend(talk(channel, n, part));
    frames.extend(talk(channel, 1, 100));
    frames.push(put(&close(), 0));
    frames
}

/// What is told, and what goes out, if the octets come in these parts.
fn come_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (String, Vec<u8>) {
    let mut script = Script::server(config(), Anonymous);
    script.end.credit = 100;
    parts.into_iter().for_each(|part| script.raw(part));
    let octets = script.octets();
    script.end.connection.handle_eof();
    script.end.poll(script.now);
    (format!("{:?}", script.end.events), octets)
}

fn at_cuts<'a>(octets: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(octets.len() + 1)).collect();
    at.extend([0, octets.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &octets[pair[0]..pair[1]]).collect()
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    vec(any::<Index>(), 0..30)
}

fn any_conversation() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (any::<bool>(), 0_u16..9, 1_u32..9, 1_usize..100)
        .prop_map(|(sasl, channel, n, part)| conversation(sasl, channel, n, part))
}

#[test]
fn every_frame_of_a_conversation_may_be_cut_at_every_octet() {
    let all = conversation(true, 3, 3, 40).concat();
    let whole = come_of([&all[..]]);
    assert!(!whole.0.contains("error: Some"), "{}", whole.0);
    for cut in 1..all.len() {
        assert_eq!(come_of([&all[..cut], &all[cut..]]), whole, "cut at {cut}");
    }
    for size in 1..100 {
        assert_eq!(come_of(all.chunks(size)), whole, "in parts of {size}");
    }
}

#[test]
fn the_size_of_a_frame_is_told_once_it_has_begun_to_come() {
    let mut script = Script::server(config(), Anonymous);
    let ahead = |script: &Script| script.end.connection.frame_ahead();
    script.raw(b"AMQP\x00");
    assert_eq!(ahead(&script), 0, "a header is no frame");
    script.raw(b"\x01\x00\x00");
    let frame = put(&open(), 0);
    for octet in 0..frame.len() {
        assert_eq!(ahead(&script), if octet < 4 { 0 } else { frame.len() }, "{octet}");
        script.raw(&frame[octet..=octet]);
    }
    assert_eq!(ahead(&script), 0);
    script.end.connection.read_buffer().extend_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(ahead(&script), 0, "we read none as large");
}

#[test]
fn a_size_that_no_frame_has_is_found_behind_a_frame_of_the_same_read() {
    let well = conversation(false, 0, 1, 100);
    for size in 0..8 {
        for octets_behind in [7, 200] {
            let mut all = well[..3].concat();
            all.extend([&[0, 0, 0, size, 2][..], &[0; 200][..octets_behind]].concat());
            let whole = come_of([&all[..]]);
            assert!(whole.0.contains("framing-error"), "{size}: {}", whole.0);
            assert_eq!(come_of(all.chunks(1)), whole, "{size}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn valid_conversations_may_be_cut_anywhere(frames in any_conversation(), cuts in cuts()) {
        let all = frames.concat();
        let whole = come_of([&all[..]]);
        prop_assert!(!whole.0.contains("error: Some"), "{}", whole.0);
        prop_assert_eq!(come_of(at_cuts(&all, &cuts)), whole);
    }

    #[test]
    fn conversations_with_mistakes_may_be_cut_anywhere(
        mut frames in any_conversation(),
        changes in vec((any::<Index>(), any::<u8>()), 0..6),
        moved in (any::<Index>(), any::<Index>()),
        cuts in cuts(),
    ) {
        let from = moved.0.index(frames.len());
        let to = moved.1.index(frames.len());
        frames.swap(from, to);
        let mut all = frames.concat();
        for (at, octet) in changes {
            let at = at.index(all.len());
            all[at] = octet;
        }
        prop_assert_eq!(come_of(at_cuts(&all, &cuts)), come_of([&all[..]]));
    }

    #[test]
    fn garbage_may_be_cut_anywhere(
        start in 0_usize..4,
        garbage in vec(prop_oneof![4 => Just(0_u8), 1 => 0_u8..32, 1 => any::<u8>()], 0..400),
        cuts in cuts(),
    ) {
        let known = conversation(false, 0, 1, 100);
        let mut all = known[..start].concat();
        all.extend(garbage);
        prop_assert_eq!(come_of(at_cuts(&all, &cuts)), come_of([&all[..]]));
    }
}
