//! Links that are detached, and come back.

use crate::support::{Broker, Client, Raw, attach, begin, config, detach, flow, transfer};
use hopline_driver::engine::wire::performative::{
    Attach, Detach, End, Flow, Performative, Transfer,
};
use hopline_driver::engine::wire::terminus::{Source, TargetKind};
use hopline_driver::engine::wire::{DeliveryTag, Role, Value};

/// A message with this text, as octets.
fn message(text: &str) -> bytes::Bytes {
    crate::support::encoded(&crate::support::text(text))
}

/// How many messages wait in a queue; all go back.
fn waiting(broker: &Broker, queue: &str) -> usize {
    let mut raw = Raw::open(broker);
    raw.put(&attach("count", 0, Role::Receiver, queue));
    raw.attached();
    drained(&mut raw, flow(100))
}

/// How many deliveries come until the credit of a flow is used up.
fn drained(raw: &mut Raw, flow: Flow) -> usize {
    raw.put(&Flow { drain: true, ..flow });
    let mut count = 0;
    loop {
        match raw.frame().expect("the broker goes on") {
            Performative::Transfer(_) => count += 1,
            Performative::Flow(Flow { handle: Some(_), link_credit: Some(0), .. }) => return count,
            Performative::Flow(_) | Performative::Disposition(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_unsettled_goes_back_when_a_consumer_detaches_and_comes_again_in_order() {
    let broker = Broker::start(config());
    let mut client = Client::open_as(&broker, "c").await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["0", "1", "2"]).await;
    for _ in 0..3 {
        let (link, _) = client.attach_as("r", Source::at("q")).await.expect("attached");
        client.grant(link, 2).await;
        assert_eq!(crate::support::body(&client.receive(link).await), "0");
        assert_eq!(crate::support::body(&client.receive(link).await), "1");
        assert_eq!(client.leave(link).await, None);
    }
    client.close().await;
    let mut client = Client::open_as(&broker, "c").await;
    let (link, _) = client.attach_as("r", Source::at("q")).await.expect("attached");
    client.grant(link, 3).await;
    assert_eq!(client.take(link, 3).await, ["0", "1", "2"]);
}

#[test]
fn a_detach_is_answered_as_it_came_and_the_handle_is_free() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    for (closed, handle) in [(false, 0), (true, 0), (false, 3), (true, 7)] {
        for role in [Role::Sender, Role::Receiver] {
            raw.put(&attach("l", handle, role, "q"));
            let answer = raw.attached();
            raw.put(&detach(handle, closed));
            assert_eq!(raw.detached(), (answer.handle, closed, None));
        }
    }
}

#[test]
fn attach_detach_attach_end_and_begin_in_one_segment() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    let link = |handle| attach("l", handle, Role::Receiver, "q");
    let end = End { error: None };
    raw.put_all(&[
        &link(0),
        &detach(0, false),
        &link(0),
        &detach(0, true),
        &link(1),
        &end,
        &begin(),
        &link(0),
        &detach(0, false),
        &link(2),
    ]);
    let kinds: Vec<_> = (0..10)
        .map(|_| match raw.frame().expect("the broker goes on") {
            Performative::Attach(attach) if attach.source.is_some() => "attach",
            Performative::Detach(Detach { closed: false, error: None, .. }) => "detach",
            Performative::Detach(Detach { closed: true, error: None, .. }) => "close",
            Performative::End(End { error: None }) => "end",
            Performative::Begin(_) => "begin",
            other => panic!("{other:?}"),
        })
        .collect();
    let wanted = [
        "attach", "detach", "attach", "close", "attach", "end", "begin", "attach", "detach",
        "attach",
    ];
    assert_eq!(kinds, wanted);
}

#[test]
fn who_only_detached_may_attach_again_to_close() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    // A settled message to nowhere ends the link; the peer only detaches meanwhile.
    let mut relay = attach("l", 0, Role::Sender, "");
    relay.target = Some(Box::new(TargetKind::Target(Default::default())));
    raw.put(&relay);
    while !matches!(raw.frame(), Some(Performative::Flow(_))) {}
    raw.write(&whole(&first_transfer(0, true), &message("to nowhere")));
    raw.put(&detach(0, false));
    let (_, closed, error) = raw.detached();
    assert!(closed && error.is_some_and(|error| error == "amqp:not-found"));
    raw.put(&relay);
    assert!(raw.attached().target.is_some());
    raw.put(&detach(0, true));
    let (_, closed, error) = raw.detached();
    assert!(closed && error.is_none());
    // Nothing more came of it.
    raw.put(&attach("m", 0, Role::Sender, "q"));
    assert!(matches!(raw.frame(), Some(Performative::Attach(_))));
}

fn first_transfer(id: u32, settled: bool) -> Transfer {
    Transfer {
        handle: 0,
        delivery_id: Some(id),
        delivery_tag: Some(DeliveryTag::from(u64::from(id))),
        message_format: Some(0),
        settled: Some(settled),
        more: false,
        rcv_settle_mode: None,
        state: None,
        resume: false,
        aborted: false,
        batchable: false,
    }
}

/// A transfer with its payload.
fn whole(transfer: &Transfer, payload: &[u8]) -> Vec<u8> {
    use hopline_driver::engine::wire::codec::Encode;
    use hopline_driver::engine::wire::frame::{self, FrameType};
    let mut out = Vec::new();
    let at = frame::start(&mut out, FrameType::Amqp, 0);
    transfer.encode(&mut out);
    out.extend_from_slice(payload);
    frame::finish(&mut out, at, 0);
    out
}

#[test]
fn what_crosses_our_detach_is_dropped_and_counts_in_the_window() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.attach_sender("q");
    // No message at all: as it is settled, the link ends.
    raw.write(&whole(&first_transfer(0, true), b"\x45"));
    let (_, closed, error) = raw.detached();
    assert!(closed && error.is_some_and(|error| error == "amqp:decode-error"));
    for id in 1..6 {
        raw.write(&transfer(id, false, &message("late")));
    }
    raw.put(&detach(0, true));
    raw.put(&attach("again", 0, Role::Sender, "q"));
    assert!(matches!(raw.frame(), Some(Performative::Attach(_))), "no word about late ones");
    let echo = Flow { echo: true, next_outgoing_id: 6, handle: None, ..Flow::default() };
    raw.put(&Flow {
        next_incoming_id: Some(0),
        incoming_window: 100,
        outgoing_window: 100,
        ..echo
    });
    loop {
        if let Some(Performative::Flow(flow)) = raw.frame()
            && flow.handle.is_none()
        {
            assert_eq!(flow.next_incoming_id, Some(6));
            break;
        }
    }
    raw.write(&transfer(6, false, &message("on")));
    loop {
        if let Some(Performative::Disposition(disposition)) = raw.frame() {
            assert_eq!(disposition.first, 6);
            break;
        }
    }
    assert_eq!(waiting(&broker, "q"), 1, "only the last one is there");
}

#[test]
fn nothing_is_resumed_and_the_answer_says_so() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    let tags = (0..3u8).map(|tag| (Value::Binary(vec![tag].into()), Value::Null)).collect();
    let link = Attach { unsettled: Some(Value::Map(tags)), ..attach("l", 0, Role::Sender, "q") };
    raw.put(&link);
    let answer = raw.attached();
    assert!(answer.unsettled.is_none() && !answer.incomplete_unsettled);
    // What is resumed nevertheless, in one transfer or in two, is ignored.
    let mut resumed = first_transfer(0, false);
    resumed.resume = true;
    raw.write(&whole(&resumed, &message("resumed")));
    resumed.delivery_id = Some(1);
    resumed.delivery_tag = Some(DeliveryTag::from(1));
    resumed.more = true;
    raw.write(&whole(&resumed, &message("resumed")));
    (resumed.more, resumed.resume) = (false, false);
    raw.write(&whole(&resumed, b""));
    raw.write(&whole(&first_transfer(2, false), &message("new")));
    let disposition = loop {
        match raw.frame().expect("the broker goes on") {
            Performative::Disposition(disposition) => break disposition,
            Performative::Flow(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((disposition.first, disposition.settled), (2, true));
    assert_eq!(waiting(&broker, "q"), 1);
}

#[test]
fn an_unsettled_map_that_is_not_whole_is_refused() {
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    for role in [Role::Sender, Role::Receiver] {
        let link = Attach { incomplete_unsettled: true, ..attach("l", 0, role, "q") };
        raw.put(&link);
        let answer = raw.attached();
        assert!(answer.source.is_none() && answer.target.is_none());
        let (_, closed, error) = raw.detached();
        assert_eq!((closed, error.as_deref()), (true, Some("amqp:not-implemented")));
        raw.put(&detach(0, true));
    }
    raw.put(&attach("l", 0, Role::Sender, "q"));
    assert!(raw.attached().target.is_some());
}

#[test]
fn a_disposition_and_a_detach_in_one_segment_are_taken_in_order() {
    use hopline_driver::engine::wire::DeliveryState;
    use hopline_driver::engine::wire::performative::Disposition;
    let broker = Broker::start(config());
    let mut raw = Raw::open(&broker);
    raw.attach_sender("q");
    for id in 0..3 {
        raw.write(&transfer(id, false, &message("m")));
    }
    raw.put(&attach("r", 1, Role::Receiver, "q"));
    raw.attached();
    let sent = Flow { handle: Some(1), next_outgoing_id: 3, ..flow(10) };
    assert_eq!(drained(&mut raw, sent.clone()), 3);
    let accepted = Disposition {
        role: Role::Receiver,
        first: 0,
        last: Some(1),
        settled: true,
        state: Some(DeliveryState::Accepted),
        batchable: false,
    };
    raw.put_all(&[&accepted, &detach(1, false), &attach("r", 1, Role::Receiver, "q")]);
    assert!(!raw.detached().1);
    raw.attached();
    raw.put(&Flow { next_incoming_id: Some(3), ..sent });
    loop {
        if let Some(Performative::Transfer(transfer)) = raw.frame() {
            assert_eq!(transfer.delivery_id, Some(3));
            break;
        }
    }
}
