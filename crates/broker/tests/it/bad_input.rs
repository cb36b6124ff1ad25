//! Peers that break the rules, or the connection: they are told if they can be, nobody else
//! suffers, and what was accepted is still there.

use crate::support::{Broker, Client, Raw, config, encoded, text, transfer};
use hopline_driver::engine::wire::performative::Disposition;
use hopline_driver::engine::wire::{Performative, Role};
use std::io::Read;
use std::net::Shutdown;

/// Others are served, and the queue holds these.
async fn assert_holds(broker: &Broker, want: &[&str]) {
    let mut client = Client::open(broker).await;
    let receiver = client.receiver("q", 1000).await;
    assert_eq!(client.take(receiver, want.len()).await, want);
    client.assert_nothing(receiver).await;
    client.close().await;
}

/// Sends messages and reads that they are accepted.
fn deliver(raw: &mut Raw, bodies: &[&str]) {
    raw.attach_sender("q");
    for (id, body) in (0..).zip(bodies) {
        raw.write(&transfer(id, false, &encoded(&text(*body))));
    }
    let mut accepted = 0;
    while accepted < bodies.len() as u32 {
        if let Some(Performative::Disposition(Disposition { first, last, .. })) = raw.frame() {
            accepted += last.unwrap_or(first) - first + 1;
        }
    }
}

#[tokio::test]
async fn a_wrong_protocol_header_is_answered_by_ours() {
    let broker = Broker::start(config());
    let headers: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x09\x01\x00\x00",
        &[0; 64],
        &[0xff; 64],
    ];
    for octets in headers {
        let mut raw = Raw::connect(&broker);
        raw.write(octets);
        let mut answer = Vec::new();
        // What we left unread may make the kernel reset the connection after the answer.
        let _ = raw.socket.read_to_end(&mut answer);
        assert!(answer.starts_with(b"AMQP"), "{octets:?}: {answer:?}");
        assert_eq!(answer.len(), 8);
    }
    assert_holds(&broker, &[]).await;
}

#[tokio::test]
async fn frames_that_are_none_close_their_connection_with_the_reason() {
    let broker = Broker::start(config());
    let cases: [(&[u8], &str); 7] = [
        (&[0, 0, 0, 4, 2, 0, 0, 0], "amqp:connection:framing-error"),
        (&[0, 0, 0, 8, 1, 0, 0, 0], "amqp:connection:framing-error"),
        (&[0x7f, 0xff, 0xff, 0xff, 2, 0, 0, 0], "amqp:connection:framing-error"),
        (&[0, 0, 0, 9, 2, 7, 0, 0, 0x40], "amqp:connection:framing-error"),
        (&[0, 0, 0, 9, 2, 0, 0, 0, 0x40], "amqp:decode-error"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x99\x45", "amqp:decode-error"),
        // A SASL frame where AMQP is spoken.
        (b"\x00\x00\x00\x0c\x02\x01\x00\x00\x00\x53\x41\x45", "amqp:connection:framing-error"),
    ];
    let kept = ["kept"];
    let mut raw = Raw::open(&broker);
    deliver(&mut raw, &kept);
    for (octets, condition) in cases {
        let mut raw = Raw::open(&broker);
        raw.write(octets);
        let closed = raw.closed().expect("a reason");
        assert_eq!(closed, condition, "{octets:?}");
    }
    assert_holds(&broker, &kept).await;
}

#[tokio::test]
async fn performatives_out_of_place_end_what_they_concern() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.put(&crate::support::open("again"));
    assert!(raw.closed().is_some());
    let mut raw = Raw::open(&broker);
    raw.write(&transfer(0, false, b""));
    let Some(Performative::End(end)) = raw.frame() else { panic!("no end") };
    let condition = end.error.expect("a reason").condition;
    assert_eq!(condition.as_str(), "amqp:session:unattached-handle");
    assert_holds(&broker, &[]).await;
}

#[tokio::test]
async fn a_message_that_is_none_is_rejected_and_the_next_one_taken() {
    let broker = Broker::start(config());
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    let wrong: [&[u8]; 5] = [
        b"",
        b"\xff\xff\xff",
        b"\x00\x53\x75",
        b"\x00\x53\x77\x40\x00\x53\x70\x45",
        b"\x00\x53\x72\xd1\xff\xff\xff\xff\x00\x00\x00\x02\x00\x53\x77\x40",
    ];
    for octets in wrong {
        let token = client.post_octets(sender, octets.to_vec().into(), false).await;
        let condition = crate::support::condition_of(&client.outcome(token).await);
        assert_eq!(condition, "amqp:decode-error", "{octets:?}");
    }
    client.send_all(sender, ["good"]).await;
    client.post_octets(sender, vec![0xff].into(), true).await;
    assert!(client.detached(sender).await.is_some(), "a settled one can't be rejected");
    assert_holds(&broker, &["good"]).await;
}

#[tokio::test]
async fn a_disconnect_amid_a_transfer_leaves_what_was_whole() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    deliver(&mut raw, &["0", "1"]);
    let half = encoded(&text("2"));
    raw.write(&transfer(2, true, &half[..4]));
    let cut = transfer(3, false, &half);
    raw.write(&cut[..cut.len() / 2]);
    drop(raw);
    assert_holds(&broker, &["0", "1"]).await;
}

#[tokio::test]
async fn what_was_sent_before_half_a_close_is_taken() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.attach_sender("q");
    let bodies: Vec<_> = (0..100).map(|n| n.to_string()).collect();
    for (id, body) in (0..).zip(&bodies) {
        raw.write(&transfer(id, false, &encoded(&text(body.as_str()))));
    }
    raw.shutdown(Shutdown::Write);
    while raw.frame().is_some() {}
    let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
    assert_holds(&broker, &bodies).await;
}

#[tokio::test]
async fn a_lost_consumer_gives_back_what_it_held() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    deliver(&mut raw, &["0", "1", "2"]);
    let mut consumer = Raw::open(&broker);
    consumer.attach_receiver("q", 2);
    let mut seen = 0;
    while seen < 2 {
        seen += u32::from(matches!(consumer.frame(), Some(Performative::Transfer(_))));
    }
    // Unread octets make this a reset.
    drop(consumer);
    assert_holds(&broker, &["0", "1", "2"]).await;
}

#[tokio::test]
async fn many_connect_at_once_and_say_nothing_or_half() {
    let broker = Broker::start(config());
    let mut peers = Vec::new();
    for n in 0..300 {
        let mut raw = Raw::connect(&broker);
        if n % 3 > 0 {
            raw.write(&crate::support::AMQP[..n % 8]);
        }
        peers.push(raw);
    }
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["served"]).await;
    drop(peers);
    assert_holds(&broker, &["served"]).await;
}

#[tokio::test]
async fn attach_and_detach_over_and_over_leaves_nothing_behind() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    for _ in 0..2000 {
        raw.put(&crate::support::attach("link", 0, Role::Receiver, "q"));
        while !matches!(raw.frame(), Some(Performative::Attach(_))) {}
        raw.put(&crate::support::flow(5));
        raw.put(&hopline_driver::engine::wire::performative::Detach {
            handle: 0,
            closed: true,
            error: None,
        });
        while !matches!(raw.frame(), Some(Performative::Detach(_))) {}
    }
    assert_holds(&broker, &[]).await;
}
