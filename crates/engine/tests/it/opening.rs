//! What an `open` and a `begin` may look like, and what they settle for the connection (part 1,
//! 1.4; part 2, 2.4, 2.7.1, 2.7.2).

use crate::support::{Complaint, End, Heard, Script, attach, begin, config, grant, open};
use hopline_engine::timeline::Instant;
use hopline_engine::wire::frame;
use hopline_engine::wire::performative::{Begin, Open};
use hopline_engine::wire::{Fields, Performative, Role, Symbol, Value, condition};
use hopline_engine::{Anonymous, ClientSasl, CommandError, Config, Connection, Event};
use std::sync::Arc;
use std::time::Duration;

const AMQP: &[u8] = b"AMQP\x00\x01\x00\x00";
const HEARTBEAT: [u8; 8] = [0, 0, 0, 8, 2, 0, 0, 0];

/// A server that heard the AMQP header.
fn greeted(config: Config) -> Script {
    let mut script = Script::server(config, Anonymous);
    script.raw(AMQP);
    script.octets();
    script
}

fn frame_of(body: &[u8]) -> Vec<u8> {
    let mut octets = vec![0, 0, 0, 0, 2, 0, 0, 0];
    octets.extend_from_slice(body);
    frame::finish(&mut octets, 0, 0);
    octets
}

fn told(script: &Script) -> &Open {
    let Some(Event::Opened(open)) = script.end.events.first() else { panic!() };
    open
}

#[test]
fn open_and_begin_are_read_in_every_form() {
    let opens: [&[u8]; 6] = [
        b"\x00\x53\x10\xc0\x04\x01\xa1\x01c",
        b"\x00\x53\x10\xd0\x00\x00\x00\x07\x00\x00\x00\x01\xa1\x01c",
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x10\xc0\x04\x01\xa1\x01c",
        b"\x00\xa3\x0eamqp:open:list\xc0\x04\x01\xa1\x01c",
        b"\x00\xb3\x00\x00\x00\x0eamqp:open:list\xc0\x07\x01\xb1\x00\x00\x00\x01c",
        b"\x00\x53\x10\xc0\x0d\x0a\xa1\x01c\x40\x40\x40\x40\x40\x40\x40\x40\x40",
    ];
    let begins: [&[u8]; 4] = [
        b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x09\x52\x09",
        b"\x00\x53\x11\xd0\x00\x00\x00\x10\x00\x00\x00\x04\x40\x43\
          \x70\x00\x00\x00\x09\x70\x00\x00\x00\x09",
        b"\x00\xa3\x0famqp:begin:list\xc0\x07\x04\x40\x43\x52\x09\x52\x09",
        b"\x00\x53\x11\xc0\x0b\x08\x40\x43\x52\x09\x52\x09\x40\x40\x40\x40",
    ];
    for open in opens {
        for begin in begins {
            let mut script = greeted(config());
            script.raw(&frame_of(open));
            script.raw(&frame_of(begin));
            let heard = script.heard();
            assert!(
                matches!(&heard[1].performative,
                Performative::Begin(begin) if begin.remote_channel == Some(0)),
                "{open:x?}"
            );
            assert_eq!(told(&script).container_id, "c");
            assert_eq!(
                (told(&script).max_frame_size, told(&script).channel_max),
                (u32::MAX, 65_535)
            );
        }
    }
}

#[test]
fn what_is_missing_too_much_or_of_another_kind_is_a_decode_error() {
    let at_open: [&[u8]; 6] = [
        b"\x00\x53\x10\x45",
        b"\x00\x53\x10\xc0\x02\x01\x40",
        b"\x00\x53\x10\xc0\x0e\x0b\xa1\x01c\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40",
        b"\x00\x53\x10\xc1\x04\x01\xa1\x01c",
        b"\x00\x53\x10\xc0\x04\x01\xa0\x01c",
        b"\x00\x53\x10\xc0\xff\x01\xa1\x01c",
    ];
    let at_begin: [&[u8]; 6] = [
        b"\x00\x53\x11\x45",
        b"\x00\x53\x11\xc0\x07\x04\x40\x40\x52\x09\x52\x09",
        b"\x00\x53\x11\xc0\x06\x04\x40\x43\x40\x52\x09",
        b"\x00\x53\x11\xc0\x06\x04\x40\x43\x52\x09\x40",
        b"\x00\x53\x99\x45",
        b"\x00\xa3\x10amqp:begin:listX\xc0\x07\x04\x40\x43\x52\x09\x52\x09",
    ];
    for body in at_open {
        let mut script = greeted(config());
        script.raw(&frame_of(body));
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Connection(condition::DECODE_ERROR)), "{body:x?}");
    }
    for body in at_begin {
        let mut script = Script::opened(config());
        script.raw(&frame_of(body));
        let complaint = script.complaint();
        assert_eq!(complaint, Some(Complaint::Connection(condition::DECODE_ERROR)), "{body:x?}");
    }
}

#[test]
fn sizes_of_frames_are_agreed_on_from_512_to_the_most_there_is() {
    for size in [0, 1, 511, 512, 513, u32::MAX] {
        let mut script = greeted(config());
        script.send(&Open { max_frame_size: size, ..open() });
        let complaint = Some(Complaint::Connection(condition::INVALID_FIELD));
        assert_eq!(script.complaint(), complaint.filter(|_| size < 512), "{size}");
        let state = format!("{:?}", script.end.connection).len();
        assert!(state < 20_000, "nothing is set aside for {size}: {state}");
    }
    let mut script = Script::begun(Config { max_frame_size: 512, ..config() });
    let mut largest = HEARTBEAT.to_vec();
    (largest[2], largest[3], largest[4]) = (2, 0, 128);
    largest.resize(512, 0);
    script.raw(&largest);
    assert!(script.is_well(), "a frame of the largest size, all of it header");
    script.raw(&[0, 0, 2, 1, 2, 0, 0, 0]);
    assert_eq!(script.complaint(), Some(Complaint::Connection(condition::FRAMING_ERROR)));
}

#[test]
fn channels_end_where_the_peer_says() {
    for (channel_max, sessions) in [(0, 1), (1, 2), (65_535, 256)] {
        let mut script = greeted(config());
        script.send(&Open { channel_max, ..open() });
        script.heard();
        for _ in 0..sessions {
            script.end.connection.begin().unwrap();
        }
        assert_eq!(script.end.connection.begin(), Err(CommandError::Full));
        let highest = script.heard().iter().map(|heard| heard.channel).max();
        assert_eq!(highest, Some(sessions - 1));
    }
}

#[test]
fn what_is_offered_wanted_and_told_of_a_container_is_ignored_if_it_is_unknown() {
    let described = Value::Described(Box::new((Value::from(7_u64), Value::from("x"))));
    let properties = Fields(vec![
        (Symbol::from_static("unknown"), described),
        (Symbol::from_static("x"), Value::Null),
    ]);
    for n in 0..3 {
        let mut script = greeted(config());
        script.send(&Open {
            offered_capabilities: vec![Symbol::from_static("unheard-of"); n],
            desired_capabilities: vec![Symbol::from_static("never-heard-of"); n],
            outgoing_locales: vec![Symbol::from_static("tlh"); n],
            properties: Some(properties.clone()),
            ..open()
        });
        assert!(script.end.connection.is_open());
        assert_eq!(told(&script).offered_capabilities.len(), n);
    }
    let one = b"\x00\x53\x10\xc0\x0f\x08\xa1\x01c\x40\x40\x40\x40\x40\x40\xa3\x03one";
    let mut script = greeted(config());
    script.raw(&frame_of(one));
    assert_eq!(told(&script).offered_capabilities, [Symbol::from_static("one")]);
}

#[test]
fn empty_frames_are_a_sign_of_life_on_every_channel_and_before_open() {
    let mut script = greeted(config());
    script.raw(&HEARTBEAT);
    script.send(&open());
    script.send(&begin());
    script.heard();
    for channel in [0, 1, 255, 65_535_u16] {
        let mut octets = HEARTBEAT;
        octets[6..].copy_from_slice(&channel.to_be_bytes());
        script.raw(&octets);
    }
    assert!(script.is_well());
}

#[test]
fn who_asks_for_no_heartbeats_gets_none_and_the_longest_time_does_not_overflow() {
    for idle_time_out in [None, Some(0), Some(u32::MAX)] {
        let mut script = greeted(config());
        script.send(&Open { idle_time_out, ..open() });
        script.octets();
        script.pass(Duration::from_secs(3600));
        assert!(script.octets().is_empty() && script.end.connection.is_open());
    }
    for (ms, well) in [(1, false), (9, false), (10, true), (500, true)] {
        let mut script = greeted(config());
        script.send(&Open { idle_time_out: Some(ms), ..open() });
        let heard = script.heard();
        let close = heard.iter().find_map(|heard| match &heard.performative {
            Performative::Close(close) => close.error.clone(),
            _ => None,
        });
        assert_eq!(close.is_none(), well, "{ms} ms");
        assert!(close.is_none_or(|error| error.description.unwrap().contains("10 ms")));
    }
    let longest = Config { idle_timeout: Some(Duration::MAX), ..config() };
    let mut script = greeted(longest);
    script.send(&open());
    script.pass(Duration::from_secs(1 << 30));
    assert!(script.end.connection.is_open());
}

#[test]
fn time_may_begin_anywhere() {
    for start in [i64::MIN, -1, 0, i64::MAX - 100_000_000_000] {
        let now = Instant::from_nanos(start);
        let config = Config { idle_timeout: Some(Duration::from_secs(60)), ..config() };
        let mut end = End::new(Connection::server(config, Arc::new(Anonymous), now));
        end.read(AMQP, now);
        let mut octets = Vec::new();
        use hopline_engine::wire::performative::Frame;
        Open { idle_time_out: Some(1000), ..open() }.put(&mut octets, 0);
        end.read(&octets, now);
        end.write_all(now);
        let due = end.connection.poll_timeout().unwrap();
        assert_eq!(due.saturating_duration_since(now), Duration::from_millis(500), "{start}");
        end.connection.handle_timeout(due);
        assert_eq!(end.write_all(due), HEARTBEAT);
        let last = now.saturating_add(Duration::from_secs(60));
        end.connection.handle_timeout(last);
        assert!(!end.connection.is_open());
    }
}

#[test]
fn a_peer_that_only_reads_is_given_up_however_busy_we_are() {
    let idle_timeout = Some(Duration::from_secs(60));
    let (mut script, link) =
        Script::attached(Config { idle_timeout, ..config() }, Role::Receiver, 0);
    script.send(&crate::support::Flow { incoming_window: u32::MAX, ..grant(0, 0, u32::MAX) });
    for second in 0..60 {
        assert!(script.end.connection.is_open(), "after {second} s");
        script.end.send_as(link, b"busy", b"", true).unwrap();
        assert!(!script.octets().is_empty());
        script.pass(Duration::from_secs(1));
    }
    let complaint = script.complaint();
    assert_eq!(complaint, Some(Complaint::Connection(condition::RESOURCE_LIMIT_EXCEEDED)));
}

#[test]
fn a_flow_before_the_answer_to_our_begin_names_no_id_of_the_peer() {
    let mut script = Script::opened(config());
    let session = script.end.connection.begin().unwrap();
    let receiver = crate::support::options("l", Role::Receiver);
    let link = script.end.connection.attach(session, receiver).unwrap();
    script.end.connection.set_credit(link, 5).unwrap();
    for heard in script.heard() {
        if let Performative::Flow(flow) = heard.performative {
            assert_eq!((flow.next_incoming_id, flow.delivery_count), (None, None));
        }
    }
    let start = 0xffff_fffc;
    script.send(&Begin { remote_channel: Some(0), next_outgoing_id: start, ..begin() });
    let count = Some(77);
    let answer = attach("l", 0, Role::Sender);
    script.send(&crate::support::Attach { initial_delivery_count: count, ..answer });
    let heard = script.heard();
    let [Heard { performative: Performative::Flow(flow), .. }] = &heard[..] else { panic!() };
    assert_eq!((flow.next_incoming_id, flow.delivery_count), (Some(start), count));
}

#[test]
fn a_server_may_speak_first_and_say_all_at_once() {
    let mut script = Script::client(config(), ClientSasl::None);
    let mut octets = AMQP.to_vec();
    use hopline_engine::wire::performative::Frame;
    open().put(&mut octets, 0);
    octets.iter().for_each(|octet| script.raw(&[*octet]));
    assert!(script.end.connection.is_open());
    assert_eq!(script.octets()[..8], *AMQP);
    script.end.connection.begin().unwrap();
    assert_eq!(script.heard().len(), 1);
}
