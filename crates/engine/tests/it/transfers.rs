//! Deliveries in one transfer and in many (part 2, 2.6.12 to 2.6.14, 2.7.5).

use crate::support::{
    Complaint, Heard, Pair, Script, attach, begin, config, detach, go_on, grant, open, options,
    tag, transfer,
};
use hopline_engine::Event::CreditUsed;
use hopline_engine::timeline::{Instant, TimelineId, Wait, new_timeline};
use hopline_engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_engine::wire::performative::{Attach, Open, Transfer};
use hopline_engine::wire::{DeliveryState, Performative, Role, Serial, Symbol, condition};
use hopline_engine::{Anonymous, CommandError, Config, Event, Slot};
use std::num::NonZeroU32;

fn receiving(config: Config) -> Script {
    Script::attached(config, Role::Sender, 1000).0
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

fn more(transfer: Transfer) -> Transfer {
    Transfer { more: true, ..transfer }
}

fn on_link(condition: Symbol) -> Option<Complaint> {
    Some(Complaint::Link(condition))
}

#[test]
fn messages_of_all_sizes_go_through_the_smallest_frames() {
    let small = || Config { max_frame_size: 512, ..config() };
    for cut in [1, 511, usize::MAX] {
        let mut pair = Pair::open_with(small(), small());
        pair.cut = cut;
        let session = pair.begin();
        let (sender, at_server) = pair.attach(session, options("up", Role::Sender));
        pair.server.connection.set_credit(at_server, 100).unwrap();
        pair.run();
        pair.server.take_events();
        let sizes = [0, 1, 440, 470, 471, 480, 485, 500, 512, 1024, 50_000];
        for size in sizes {
            let body = pattern(size);
            pair.client.send_as(sender, &body, &size.to_be_bytes(), false).unwrap();
            pair.run();
            let [delivery] = &pair.server.deliveries()[..] else { panic!("{size}") };
            assert!(delivery.payload == body, "{size} octets came as {}", delivery.payload.len());
            assert_eq!(delivery.tag.as_slice(), size.to_be_bytes());
            assert!(
                (size > 440 || delivery.transfers == 1) && (size < 512 || delivery.transfers > 1)
            );
        }
    }
}

#[test]
fn no_frame_is_larger_than_the_peer_takes() {
    for limit in [512, 513, 600, 4096] {
        let mut script = Script::server(config(), Anonymous);
        script.raw(b"AMQP\x00\x01\x00\x00");
        script.send(&Open { max_frame_size: limit, ..open() });
        script.octets();
        script.send(&begin());
        let link = script.attach(&attach("l", 0, Role::Receiver));
        script.send(&grant(0, 0, 10_000));
        for size in (300..700).chain([4000, 4096, 9999]) {
            let body = pattern(size);
            script.end.send_as(link, &body, &size.to_be_bytes(), true).unwrap();
            let heard = script.heard();
            assert!(heard.iter().all(|frame| frame.size <= limit as usize));
            assert!(heard[..heard.len() - 1].iter().all(|frame| frame.size == limit as usize));
            let payload: Vec<u8> = heard.into_iter().flat_map(|frame| frame.payload).collect();
            assert!(payload == body);
        }
    }
}

#[test]
fn the_instant_is_marked_wherever_the_head_is_cut() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    let delivery = hopline_engine::Outgoing {
        tag: tag(b"t").unwrap(),
        settled: true,
        format: 0,
        token: 0,
        bare: bytes::Bytes::from(vec![1; 100_000]),
    };
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(&[9; 16]);
        let timeline = out.len() - 16;
        Some(Slot { timeline, instant: timeline + 8 })
    };
    script.end.connection.send(link, delivery, write).unwrap();
    script.end.connection.poll_transmit();
    script.end.connection.outbox().stamp(Instant::from_nanos(77));
    let heard = script.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].payload[8..16], 77_i64.to_be_bytes());
}

/// Sends a message that begins with a timeline of this id.
fn send_timed(script: &mut Script, link: hopline_engine::LinkId, id: u8, octets: usize) {
    let delivery = hopline_engine::Outgoing {
        tag: tag(&[id]).unwrap(),
        settled: true,
        format: 0,
        token: 0,
        bare: vec![1; octets].into(),
    };
    let write = |out: &mut Vec<u8>| {
        let timeline = out.len();
        new_timeline(TimelineId([id; 16]), out);
        out.extend_from_slice(&[0; 8]);
        Some(Slot { timeline, instant: timeline + 20 })
    };
    script.end.connection.send(link, delivery, write).unwrap();
}

#[test]
fn messages_that_are_followed_are_told_when_all_of_them_was_written() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    script.end.connection.outbox().follow(NonZeroU32::MIN);
    // One frame, then several.
    send_timed(&mut script, link, 1, 100);
    send_timed(&mut script, link, 2, 1_000_000);
    script.end.connection.poll_transmit();
    let (before, whole) = {
        let outbox = script.end.connection.outbox();
        (outbox.written(), outbox.len())
    };
    let mut told = Vec::new();
    for n in 1.. {
        let connection = &mut script.end.connection;
        if !connection.poll_transmit() {
            break;
        }
        let now = Instant::from_nanos(n);
        connection.outbox().stamp(now);
        let step = connection.outbox().len().min(1_000);
        let ends = connection.outbox().ends_within(step);
        connection.wrote(step, now);
        let departed = connection.outbox().next_departure();
        assert_eq!(ends, departed.is_some());
        told.extend(departed.map(|it| (it.id.0[0], it.sent.as_nanos(), it.end - before)));
    }
    assert!(whole < 1_000_000, "the second was too large for one outbox");
    let [(1, 1, first), (2, 1, last)] = told[..] else { panic!("{told:?}") };
    assert!(first < 300 && last > 1_000_000, "{told:?}");
}

#[test]
fn a_message_that_is_given_up_is_not_told() {
    let (mut script, link) = Script::attached(config(), Role::Receiver, 0);
    script.send(&grant(0, 0, 10));
    script.end.connection.outbox().follow(NonZeroU32::MIN);
    send_timed(&mut script, link, 1, 1_000_000);
    script.end.connection.poll_transmit();
    script.end.connection.detach(link, true, None);
    while script.end.connection.poll_transmit() {
        let n = script.end.connection.outbox().len();
        script.end.connection.wrote(n, Instant::from_nanos(1));
    }
    assert!(!script.end.connection.outbox().ends_within(usize::MAX >> 1));
    assert_eq!(script.end.connection.outbox().next_departure(), None);
}

#[test]
fn one_two_three_or_a_hundred_transfers_make_one_delivery() {
    let mut script = receiving(config());
    for (id, n) in [1_u32, 2, 3, 100].into_iter().enumerate() {
        let body = pattern(n as usize * 10);
        for (at, part) in body.chunks(10).enumerate() {
            let is_last = (at + 1) * 10 == body.len();
            let first = if at == 0 { transfer(0, id as u32) } else { go_on(0) };
            script.transfer(&Transfer { more: !is_last, ..first }, part);
        }
        let [delivery] = &script.end.deliveries()[..] else { panic!() };
        assert!(delivery.payload == body && delivery.transfers == n && !delivery.settled);
        assert_eq!(delivery.id.0, id as u32);
    }
    assert!(script.is_well());
}

#[test]
fn transfers_without_payload_are_fine_and_too_many_of_them_are_not() {
    let mut script = receiving(config());
    script.transfer(&more(transfer(0, 0)), b"");
    script.transfer(&more(go_on(0)), b"a");
    script.transfer(&more(go_on(0)), b"");
    script.transfer(&go_on(0), b"");
    script.transfer(&more(transfer(0, 1)), b"");
    script.transfer(&go_on(0), b"");
    let [one, two] = &script.end.deliveries()[..] else { panic!() };
    assert_eq!((&one.payload[..], &two.payload[..]), (&b"a"[..], &b""[..]));
    script.transfer(&more(transfer(0, 2)), b"");
    for n in 0..1024 {
        assert!(script.end.connection.is_open() && script.end.events.is_empty(), "{n}");
        script.transfer(&more(go_on(0)), b"");
    }
    assert_eq!(script.complaint(), on_link(condition::RESOURCE_LIMIT_EXCEEDED));
    assert!(script.is_well());
}

#[test]
fn an_aborted_delivery_is_never_seen_and_its_tag_is_free() {
    let (mut script, link) = Script::attached(config(), Role::Sender, 10);
    for payload in [&b""[..], b"more"] {
        let id = 10 - script.end.connection.credit(link);
        script.transfer(&more(transfer(0, id)), b"begun");
        script.transfer(&Transfer { aborted: true, ..go_on(0) }, payload);
    }
    let aborted = Transfer { aborted: true, more: true, ..transfer(0, 2) };
    script.transfer(&aborted, b"at once");
    assert_eq!(script.end.connection.credit(link), 7, "each took one credit");
    let told = script.end.take_events();
    assert!(matches!(told[..], [CreditUsed { .. }, CreditUsed { .. }, CreditUsed { .. }]));
    assert!(script.heard().is_empty());
    script.transfer(&Transfer { delivery_tag: transfer(0, 0).delivery_tag, ..transfer(0, 3) }, b"");
    assert_eq!(script.end.deliveries().len(), 1);
    assert_eq!(script.end.connection.unsettled(session(&script, link)).0, 1);
}

fn session(script: &Script, link: hopline_engine::LinkId) -> hopline_engine::SessionId {
    script.end.connection.link_info(link).unwrap().session
}

#[test]
fn deliveries_of_two_links_may_be_interleaved_and_those_of_one_may_not() {
    let mut script = receiving(config());
    script.attach(&attach("other", 1, Role::Sender));
    script.transfer(&more(transfer(0, 0)), b"a");
    script.transfer(&more(transfer(1, 1)), b"b");
    script.transfer(&more(go_on(0)), b"a");
    script.transfer(&go_on(1), b"b");
    script.transfer(&go_on(0), b"a");
    let [b, a] = &script.end.deliveries()[..] else { panic!() };
    assert_eq!((&a.payload[..], &b.payload[..]), (&b"aaa"[..], &b"bb"[..]));
    script.transfer(&more(transfer(0, 2)), b"a");
    script.transfer(&transfer(0, 3), b"a");
    assert_eq!(script.complaint(), on_link(condition::INVALID_FIELD));
}

#[test]
fn what_changes_within_a_delivery_is_an_error_and_what_is_repeated_is_not() {
    let mut script = receiving(config());
    script.transfer(&more(transfer(0, 0)), b"a");
    script.transfer(&transfer(0, 0), b"a");
    assert_eq!(script.end.deliveries().len(), 1);
    for changed in [
        Transfer { delivery_id: Some(9), ..go_on(0) },
        Transfer { delivery_tag: tag(b"other"), ..go_on(0) },
        Transfer { message_format: Some(3), ..go_on(0) },
    ] {
        let mut script = receiving(config());
        script.transfer(&more(transfer(0, 0)), b"a");
        script.transfer(&changed, b"a");
        assert_eq!(script.complaint(), on_link(condition::INVALID_FIELD), "{changed:?}");
        assert!(script.is_well());
    }
}

#[test]
fn settled_on_the_last_transfer_settles_and_stays() {
    for (first, last) in [(None, Some(true)), (Some(true), Some(false)), (Some(true), None)] {
        let (mut script, link) = Script::attached(config(), Role::Sender, 10);
        script.transfer(&Transfer { settled: first, ..more(transfer(0, 0)) }, b"a");
        script.transfer(&Transfer { settled: last, ..go_on(0) }, b"a");
        assert!(script.end.deliveries()[0].settled);
        assert_eq!(script.end.connection.unsettled(session(&script, link)).0, 0);
    }
}

#[test]
fn settlement_against_the_modes_of_the_link_is_a_link_error() {
    use SenderSettleMode::{Mixed, Settled, Unsettled};
    let cases = [
        (Unsettled, Transfer { settled: Some(true), ..transfer(0, 0) }),
        (Settled, transfer(0, 0)),
        (Mixed, Transfer { rcv_settle_mode: Some(ReceiverSettleMode::Second), ..transfer(0, 0) }),
    ];
    for (snd_settle_mode, transfer) in cases {
        let mut script = Script::begun(config());
        script.end.credit = 10;
        script.attach(&Attach { snd_settle_mode, ..attach("l", 0, Role::Sender) });
        script.transfer(&transfer, b"x");
        assert_eq!(script.complaint(), on_link(condition::INVALID_FIELD));
        assert!(script.is_well());
    }
}

#[test]
fn first_transfers_need_an_id_in_sequence_and_a_tag() {
    for wrong in [
        Transfer { delivery_id: None, ..transfer(0, 1) },
        Transfer { delivery_tag: None, ..transfer(0, 1) },
        transfer(0, 0),
        transfer(0, 2),
    ] {
        let mut script = receiving(config());
        script.transfer(&transfer(0, 0), b"x");
        script.transfer(&wrong, b"x");
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Session(condition::INVALID_FIELD)), "{wrong:?}");
        assert!(script.end.connection.is_open());
    }
}

#[test]
fn tags_have_up_to_32_octets() {
    let mut script = receiving(config());
    for (id, octets) in [&[][..], &[1], &[7; 32]].into_iter().enumerate() {
        let transfer = Transfer { delivery_tag: tag(octets), ..transfer(0, id as u32) };
        script.transfer(&transfer, b"x");
        assert_eq!(script.end.deliveries()[0].tag.as_slice(), octets);
    }
    let octets = Script::transfer_octets(&transfer(0, 3), b"");
    let at = octets.windows(2).position(|w| w == [0xa0, 4]).unwrap();
    let mut long = octets[..at].to_vec();
    long.extend_from_slice(&[0xa0, 33]);
    long.extend_from_slice(&[7; 33]);
    long.extend_from_slice(&octets[at + 6..]);
    long[3] += 29;
    long[12] += 29;
    script.raw(&long);
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::DECODE_ERROR)));
}

#[test]
fn a_tag_is_unique_among_the_unsettled_of_its_link_and_free_afterwards() {
    let twin = |handle, id| Transfer { delivery_tag: tag(b"twin"), ..transfer(handle, id) };
    let (mut script, link) = Script::attached(config(), Role::Sender, 100);
    script.attach(&attach("other", 1, Role::Sender));
    script.transfer(&twin(0, 0), b"x");
    script.transfer(&twin(1, 1), b"x");
    let deliveries = script.end.deliveries();
    assert_eq!(deliveries.len(), 2, "two links don't share their tags");
    script.end.connection.settle(link, deliveries[0].id, DeliveryState::Accepted).unwrap();
    script.transfer(&twin(0, 2), b"x");
    script.send(&crate::support::disposition(Role::Sender, 2, 2, None));
    script.transfer(&twin(0, 3), b"x");
    script.transfer(&Transfer { settled: Some(true), ..twin(0, 4) }, b"x");
    assert_eq!(script.end.deliveries().len(), 3);
    script.heard();
    script.transfer(&twin(0, 5), b"x");
    assert_eq!(script.complaint(), on_link(condition::INVALID_FIELD));
    assert!(script.is_well());
}

#[test]
fn a_transfer_without_credit_costs_the_link_and_not_the_session() {
    let (mut script, _) = Script::attached(config(), Role::Sender, 1);
    script.attach(&attach("other", 1, Role::Sender));
    script.transfer(&transfer(0, 0), b"x");
    script.transfer(&transfer(0, 1), b"x");
    assert_eq!(script.complaint(), on_link(condition::TRANSFER_LIMIT_EXCEEDED));
    script.transfer(&transfer(0, 2), b"crosses our detach");
    script.transfer(&more(transfer(0, 3)), b"this too");
    script.transfer(&Transfer { delivery_id: Some(3), ..go_on(0) }, b"to the end");
    script.end.events.clear();
    script.transfer(&transfer(1, 4), b"x");
    assert_eq!(script.end.deliveries().len(), 1, "the other link goes on");
    script.send(&detach(0, true));
    assert!(script.is_well());
}

#[test]
fn a_transfer_to_a_sender_is_a_session_error() {
    let (mut script, _) = Script::attached(config(), Role::Receiver, 0);
    script.transfer(&transfer(0, 0), b"x");
    assert_eq!(script.complaint(), Some(Complaint::Session(condition::NOT_ALLOWED)));
}

#[test]
fn a_message_that_is_too_large_is_noticed_before_it_is_whole() {
    let limits = Config { max_message_size: 100, ..config() };
    let mut script = receiving(limits.clone());
    script.transfer(&more(transfer(0, 0)), &[0; 60]);
    script.transfer(&go_on(0), &[0; 40]);
    assert_eq!(script.end.deliveries().len(), 1);
    script.transfer(&more(transfer(0, 1)), &[0; 60]);
    script.transfer(&more(go_on(0)), &[0; 41]);
    assert_eq!(script.complaint(), on_link(condition::MESSAGE_SIZE_EXCEEDED));
    let mut script = receiving(limits);
    script.transfer(&transfer(0, 0), &[0; 101]);
    assert_eq!(script.complaint(), on_link(condition::MESSAGE_SIZE_EXCEEDED));
    assert!(script.is_well());
}

#[test]
fn a_message_larger_than_the_peer_takes_is_not_sent() {
    let mut script = Script::begun(config());
    let link = script.attach(&Attach { max_message_size: 10, ..attach("l", 0, Role::Receiver) });
    script.send(&grant(0, 0, 10));
    assert_eq!(script.end.send(link, &[0; 11]), Err(CommandError::MessageSize));
    assert!(script.heard().is_empty());
    assert_eq!(script.end.send(link, &[0; 10]).unwrap().0, 0);
    assert_eq!(script.heard().len(), 1);
}

#[test]
fn unfinished_deliveries_share_a_limit_and_give_back_what_they_took() {
    let mut script = receiving(Config { max_partial_octets: 1000, ..config() });
    let mut id = 0;
    for round in 0..50 {
        script.attach(&attach(&format!("a{round}"), 1, Role::Sender));
        script.transfer(&more(transfer(0, id)), &[0; 500]);
        script.transfer(&more(transfer(1, id + 1)), &[0; 500]);
        match round % 3 {
            0 => script.transfer(&Transfer { aborted: true, ..go_on(0) }, b""),
            _ => script.transfer(&go_on(0), b""),
        }
        script.send(&detach(1, true));
        script.heard();
        id += 2;
    }
    script.attach(&attach("b", 1, Role::Sender));
    script.transfer(&more(transfer(0, id)), &[0; 999]);
    script.transfer(&more(transfer(1, id + 1)), &[0; 2]);
    assert_eq!(script.complaint(), on_link(condition::RESOURCE_LIMIT_EXCEEDED));
    script.transfer(&go_on(0), b"");
    assert!(script.is_well());
}

#[test]
fn too_many_unsettled_deliveries_cost_the_session() {
    let (mut script, link) =
        Script::attached(Config { max_unsettled: 3, ..config() }, Role::Sender, 100);
    (0..3).for_each(|id| script.transfer(&transfer(0, id), b"x"));
    script.end.connection.settle(link, Serial(1), DeliveryState::Accepted).unwrap();
    script.transfer(&transfer(0, 3), b"x");
    script.transfer(&Transfer { settled: Some(true), ..transfer(0, 4) }, b"x");
    assert_eq!(script.end.deliveries().len(), 5);
    script.transfer(&transfer(0, 5), b"x");
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Session(condition::RESOURCE_LIMIT_EXCEEDED)));
}

#[test]
fn a_delivery_that_is_given_up_half_way_is_aborted_and_leaves_no_gap() {
    let mut script = Script::opened(Config { max_frame_size: 512, ..config() });
    script.send(&begin());
    let link = script.attach(&attach("a", 0, Role::Receiver));
    let other = script.attach(&attach("b", 1, Role::Receiver));
    script.send(&grant(0, 0, 10));
    script.send(&grant(1, 0, 10));
    script.end.send(link, &[1; 200_000]).unwrap();
    script.end.connection.poll_transmit();
    assert_eq!(script.end.connection.send_block(other), Some(Wait::SocketFull));
    script.end.connection.detach(link, true, None);
    let heard = script.heard();
    let [.., aborted, detached] = &heard[..] else { panic!() };
    assert!(matches!(&aborted.performative, Performative::Transfer(t) if t.aborted));
    assert!(matches!(&detached.performative, Performative::Detach(_)));
    assert_eq!(script.end.send(other, b"x").unwrap().0, 1);
}

#[test]
fn a_delivery_of_which_nothing_has_gone_gives_its_id_back() {
    let config = Config { max_frame_size: 512, outbox_high_water: 600, ..config() };
    let mut script = Script::opened(config);
    script.send(&begin());
    let link = script.attach(&attach("a", 0, Role::Receiver));
    let other = script.attach(&attach("b", 1, Role::Receiver));
    script.send(&grant(0, 0, 10));
    script.send(&grant(1, 0, 10));
    script.end.send(link, &[1; 5000]).unwrap();
    script.send(&attach(&"long".repeat(100), 2, Role::Receiver));
    script.send(&attach(&"name".repeat(100), 3, Role::Receiver));
    script.end.connection.detach(link, true, None);
    let heard = script.heard();
    let transfer = |h: &Heard| matches!(h.performative, Performative::Transfer(_));
    assert!(!heard.iter().any(transfer));
    script.end.send(other, b"x").unwrap();
    let [sent] = &script.heard()[..] else { panic!() };
    assert!(matches!(&sent.performative, Performative::Transfer(t) if t.delivery_id == Some(0)));
}

#[test]
fn a_thousand_settled_deliveries_in_one_segment_all_come_in_order() {
    let mut script = receiving(config());
    let mut octets = Vec::new();
    for id in 0..1000 {
        let settled = Transfer { settled: Some(true), ..transfer(0, id) };
        octets.extend(Script::transfer_octets(&settled, &id.to_be_bytes()));
    }
    script.raw(&octets);
    let deliveries = script.end.deliveries();
    assert_eq!(deliveries.len(), 1000);
    for (n, delivery) in deliveries.iter().enumerate() {
        assert!(delivery.settled && delivery.payload[..] == (n as u32).to_be_bytes());
    }
    let told = |event: &Event| matches!(event, Event::PeerSettled { .. });
    assert!(!script.end.events.iter().any(told));
}
