//! What goes wrong, whose error it is, and what is left standing.

use crate::common::{builder, listening, numbered};
use hopline_messenger::driver::engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_messenger::driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_messenger::driver::engine::wire::{AmqpError, Role, condition};
use hopline_messenger::driver::engine::{Anonymous, AttachOptions, ClientSasl, Config, Connection};
use hopline_messenger::driver::engine::{Event, LinkId, Outgoing};
use hopline_messenger::driver::{Clock, Io, Read, SocketOptions, Transport, Waiter, listen};
use hopline_messenger::timeline::ANNOTATION;
use hopline_messenger::{DeliveryState, Error, Message, Sampling, Status, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// A port at which nobody listens.
async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// A peer that refuses all links.
async fn refusing() -> String {
    let listener = listen("127.0.0.1:0", &SocketOptions::default()).await.unwrap();
    let url = format!("amqp://{}/q", listener.local_addr());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await;
        let engine = Connection::server(Config::default(), Arc::new(Anonymous), Clock.now());
        let mut io = Io::new(engine, Arc::new(socket), Transport::Plain);
        let (wake, mut waiter) = (Notify::new(), Waiter::default());
        loop {
            let end = io.read() == Read::End;
            while let Some(event) = io.engine_mut().poll_event(Clock.now()) {
                if let Event::AttachRequest { link, .. } = event {
                    let error = AmqpError::new(condition::UNAUTHORIZED_ACCESS, "not for you");
                    io.engine_mut().refuse(link, error);
                }
            }
            if io.flush().is_err() || end || io.is_finished() {
                return;
            }
            let (socket, interest) = (io.socket().clone(), (io.wants_read(), io.wants_write()));
            waiter.ready(&socket, interest, None, &wake).await;
        }
    });
    url
}

#[tokio::test]
async fn who_cannot_be_reached_is_named() {
    let port = closed_port().await;
    let url = format!("amqp://user:secret@127.0.0.1:{port}/q");
    let messenger = builder("sender").build();
    for error in [messenger.connect(&url).await, messenger.subscribe(&url).await.map(drop)] {
        let error = error.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Connect { .. }), "{text}");
        assert!(text.contains(&format!("127.0.0.1:{port}")) && !text.contains("secret"), "{text}");
    }
    // Those errors were told; nothing of them sticks.
    assert!(messenger.take_failures().is_empty());
    let tracker = messenger.put(&url, numbered(1)).unwrap();
    assert!(matches!(messenger.send().await, Err(Error::Connect { .. })));
    assert_eq!(messenger.status(tracker), Status::Aborted);
    messenger.send().await.unwrap();
    messenger.stop().await.unwrap();
}

#[tokio::test]
async fn a_refused_address_is_an_error_with_the_peers_words() {
    for subscribes in [true, false] {
        let url = refusing().await;
        let messenger = builder("m").build();
        let error = match subscribes {
            true => messenger.subscribe(&url).await.map(drop),
            false => messenger.connect(&url).await,
        };
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("amqp:unauthorized-access") && text.contains("not for you"),
            "{text}"
        );
        assert!(messenger.take_failures().is_empty());
    }
}

#[tokio::test]
async fn a_lost_peer_aborts_what_it_had_and_the_rest_goes_on() {
    let (first, url) = listening(builder("first"), "q").await;
    let (second, other) = listening(builder("second"), "q").await;
    let sender = builder("sender").build();
    let lost = sender.put(&url, numbered(1)).unwrap();
    first.next().await.unwrap();
    drop(first);
    let error = sender.send().await.unwrap_err();
    assert!(matches!(error, Error::Peer { .. }), "{error}");
    assert_eq!(sender.status(lost), Status::Aborted);
    let good = sender.put(&other, numbered(2)).unwrap();
    second.accept(&second.next().await.unwrap()).unwrap();
    sender.send().await.unwrap();
    assert_eq!(sender.status(good), Status::Accepted);
    assert_eq!((sender.outgoing(), sender.counts().aborted), (0, 1));
}

#[tokio::test]
async fn all_calls_that_wait_learn_of_the_loss() {
    let (peer, url) = listening(builder("peer"), "q").await;
    let sender = builder("sender").build();
    sender.put(&url, numbered(1)).unwrap();
    peer.next().await.unwrap();
    let (one, two, ()) = tokio::join!(sender.send(), sender.send(), async {
        sleep(Duration::from_millis(50)).await;
        drop(peer);
    });
    assert!(one.is_err() && two.is_err());
}

#[tokio::test]
async fn a_lost_subscription_is_an_error_of_next() {
    let hasty = builder("peer").timeout(Duration::from_millis(50));
    let (peer, url) = listening(hasty, "q").await;
    let reader = builder("reader").build();
    reader.subscribe(&url).await.unwrap();
    peer.put("q", numbered(1)).unwrap();
    let received = reader.next().await.unwrap();
    peer.stop().await.unwrap_err();
    let error = reader.next().await.unwrap_err();
    assert!(matches!(error, Error::Peer { .. }), "{error}");
    assert!(matches!(reader.accept(&received), Err(Error::LinkGone)));
}

#[tokio::test]
async fn a_timeout_says_what_was_waited_for() {
    let messenger = builder("m").timeout(Duration::from_millis(50)).build();
    messenger.put("nobody", numbered(1)).unwrap();
    let text = messenger.send().await.unwrap_err().to_string();
    assert!(text.contains("\"nobody\"") && text.contains("no receiver is attached"), "{text}");

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://{}/q", silent.local_addr().unwrap());
    assert!(matches!(messenger.subscribe(&url).await, Err(Error::Timeout { .. })));
    assert!(messenger.unsubscribe(&url).is_err(), "the attempt leaves no subscription");
}

#[tokio::test]
async fn stop_ends_in_time_and_aborts_what_is_left() {
    let messenger = builder("m").timeout(Duration::from_millis(50)).build();
    let tracker = messenger.put("nobody", numbered(1)).unwrap();
    let start = Instant::now();
    assert!(matches!(messenger.stop().await, Err(Error::Timeout { .. })));
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(messenger.status(tracker), Status::Aborted);
    assert!(matches!(messenger.put("nobody", numbered(1)), Err(Error::Stopped)));
    assert!(matches!(messenger.next().await, Err(Error::Stopped)));
    assert!(matches!(messenger.subscribe("amqp://127.0.0.1/q").await, Err(Error::Stopped)));
}

#[tokio::test]
async fn stop_sends_first_even_while_the_connection_is_being_made() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let tracker = sender.put(&url, numbered(1)).unwrap();
    let (stopped, ()) = tokio::join!(sender.stop(), async {
        receiver.accept(&receiver.next().await.unwrap()).unwrap();
    });
    stopped.unwrap();
    assert_eq!(sender.status(tracker), Status::Accepted);
}

#[tokio::test]
async fn a_peer_lost_in_the_middle_of_a_message_aborts_it() {
    let (peer, url) = listening(builder("peer"), "q").await;
    let sender = builder("sender").build();
    let tracker = sender.put(&url, Message::data(vec![7; 64 << 20])).unwrap();
    while !peer.connections().iter().any(|peer| peer.counters.octets_read > 100_000) {
        tokio::task::yield_now().await;
    }
    drop(peer);
    sender.send().await.unwrap_err();
    assert_eq!(sender.status(tracker), Status::Aborted);
    assert_eq!(sender.outgoing(), 0);
}

#[tokio::test]
async fn stop_gives_back_what_was_not_taken() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let trackers: Vec<_> = (0..3).map(|n| sender.put(&url, numbered(n)).unwrap()).collect();
    receiver.accept(&receiver.next().await.unwrap()).unwrap();
    while receiver.incoming() < 2 {
        sleep(Duration::from_millis(2)).await;
    }
    receiver.stop().await.unwrap();
    sender.send().await.unwrap();
    let statuses: Vec<_> = trackers.iter().map(|tracker| sender.status(*tracker)).collect();
    assert_eq!(statuses, [Status::Accepted, Status::Released, Status::Released]);
}

#[tokio::test]
async fn the_port_is_free_after_stop_and_taken_before() {
    let (one, url) = listening(builder("one"), "").await;
    let address = url.trim_end_matches('/').replace("amqp://", "amqp://~");
    let two = builder("two").build();
    let error = two.subscribe(&address).await.unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
    one.stop().await.unwrap();
    let listens = async {
        while two.subscribe(&address).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(2), listens).await.unwrap();
}

#[tokio::test]
async fn dropping_the_last_clone_closes() {
    let (listener, url) = listening(builder("listener"), "q").await;
    let sender = builder("sender").build();
    sender.connect(&url).await.unwrap();
    assert_eq!(listener.connections().len(), 1);
    assert!(listener.connections()[0].socket.as_ref().unwrap().0.nodelay);
    drop(sender);
    let gone = async {
        while !listener.connections().is_empty() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_secs(2), gone).await.unwrap();
}

#[tokio::test]
async fn no_more_peers_than_allowed_are_let_in() {
    let (listener, url) = listening(builder("listener").inbound_max(1), "q").await;
    let (first, second) = (builder("first").build(), builder("second").build());
    first.connect(&url).await.unwrap();
    let error = second.connect(&url).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    first.stop().await.unwrap();
    while !listener.connections().is_empty() {
        sleep(Duration::from_millis(2)).await;
    }
    second.connect(&url).await.unwrap();
}

#[tokio::test]
async fn a_timeline_of_nonsense_harms_nobody() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").timelines(Sampling::Off).build();
    let header = [[1].as_slice(), &[0; 19]].concat();
    let nonsense: [Value; 5] = [
        Value::Binary(vec![1; 7].into()),
        Value::Binary(vec![9; 4000].into()),
        Value::Binary([header.as_slice(), &[0x80, 0xff, 1]].concat().into()),
        Value::Binary([header.as_slice(), &[0xee; 60_000]].concat().into()),
        Value::from("text"),
    ];
    for value in nonsense {
        let mut message = numbered(1);
        message.message_annotations.0.push((ANNOTATION.into(), value.clone()));
        sender.put(&url, message).unwrap();
        let received = receiver.next().await.unwrap();
        assert!(received.timeline().is_none() && received.has_annotation(), "{value:?}");
        assert_eq!(received.message().unwrap().message_annotations.get(ANNOTATION), Some(&value));
    }
}

#[tokio::test]
async fn what_is_no_message_can_be_rejected() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let url = url.replace("amqp://", "");
    let (address, _) = url.split_once('/').unwrap();
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let engine = Connection::client(Config::default(), ClientSasl::Anonymous, Clock.now());
    let mut io = Io::new(engine, Arc::new(socket), Transport::Plain);
    let (wake, mut waiter) = (Notify::new(), Waiter::default());
    let rejected = tokio::spawn(async move {
        loop {
            io.read();
            while let Some(event) = io.engine_mut().poll_event(Clock.now()) {
                match event {
                    Event::Opened(_) => attach_sender(io.engine_mut()),
                    Event::Credit { link, .. } => send_garbage(io.engine_mut(), link),
                    Event::Outcome { state, .. } => return state,
                    _ => {}
                }
            }
            io.flush().unwrap();
            let (socket, interest) = (io.socket().clone(), (io.wants_read(), io.wants_write()));
            waiter.ready(&socket, interest, None, &wake).await;
        }
    });
    let received = receiver.next().await.unwrap();
    let error = received.message().unwrap_err();
    assert!(matches!(error, Error::Message { .. }), "{error}");
    assert!(received.timeline().is_none());
    assert_eq!(received.delivery_count(), 0);
    receiver.reject(&received, None).unwrap();
    assert!(matches!(rejected.await.unwrap(), Some(DeliveryState::Rejected(_))));
}

fn attach_sender(engine: &mut Connection) {
    let session = engine.begin().unwrap();
    let options = AttachOptions {
        name: "garbage".into(),
        role: Role::Sender,
        source: Source::default(),
        target: TargetKind::Target(Target::at("q")),
        snd_settle_mode: SenderSettleMode::Mixed,
        rcv_settle_mode: ReceiverSettleMode::First,
        desired_capabilities: Vec::new(),
        properties: Default::default(),
    };
    engine.attach(session, options).unwrap();
}

fn send_garbage(engine: &mut Connection, link: LinkId) {
    let bare = vec![0xff; 40].into();
    let garbage = Outgoing { tag: 1.into(), settled: false, format: 0, token: 0, bare };
    // Later credit finds it sent.
    let _ = engine.send(link, garbage, |_| None);
}

#[tokio::test]
async fn addresses_that_cannot_be_used_say_why() {
    let messenger = builder("m").build();
    for (address, hint) in [
        ("amqp://host", "names no node"),
        ("http://host/q", "neither amqp nor amqps"),
        ("amqp://host:99999/q", "port"),
        ("amqp://~127.0.0.1:0/q", "subscribe"),
    ] {
        let text = messenger.put(address, numbered(1)).unwrap_err().to_string();
        assert!(text.contains(hint), "{text}");
    }
    let text = messenger.subscribe("amqps://~127.0.0.1:0").await.unwrap_err().to_string();
    assert!(text.contains("without TLS"), "{text}");
    assert_eq!(messenger.outgoing(), 0);
}

#[tokio::test]
async fn a_subscribe_that_is_dropped_leaves_nothing() {
    let (peer, url) = listening(builder("peer"), "q").await;
    let reader = builder("reader").build();
    tokio::select! {
        biased;
        _ = reader.subscribe(&url) => unreachable!("it takes more than one poll"),
        () = std::future::ready(()) => {}
    }
    sleep(Duration::from_millis(50)).await;
    peer.put("q", numbered(1)).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert_eq!((peer.buffered(), reader.incoming()), (1, 0));
    reader.subscribe(&url).await.unwrap();
    reader.accept(&reader.next().await.unwrap()).unwrap();
    peer.send().await.unwrap();
    reader.unsubscribe(&url).unwrap();
    peer.put("q", numbered(2)).unwrap();
    sleep(Duration::from_millis(50)).await;
    assert!(reader.get().is_none());
}

/// Puts need no runtime of their own.
#[tokio::test]
async fn a_thread_outside_of_the_runtime_can_put() {
    let (receiver, url) = listening(builder("receiver"), "q").await;
    let sender = builder("sender").build();
    let outside = sender.clone();
    std::thread::spawn(move || outside.put(&url, numbered(1)).map(drop)).join().unwrap().unwrap();
    receiver.accept(&receiver.next().await.unwrap()).unwrap();
    sender.send().await.unwrap();
}
