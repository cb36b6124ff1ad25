//! What was asked of a socket is what the kernel has, at both ends and on both kinds of socket.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use hopline_driver::{EffectiveOptions, Error, Listener, SocketOptions, connect, listen};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(5);

async fn listener(options: &SocketOptions) -> Listener {
    listen("127.0.0.1:0", options).await.expect("a free port")
}

/// The outbound and the accepted end of one connection.
async fn pair(outbound: &SocketOptions, accepted: &SocketOptions) -> (TcpStream, TcpStream) {
    let listener = listener(accepted).await;
    let port = listener.local_addr().port();
    let (stream, (peer, _)) =
        tokio::join!(connect("127.0.0.1", port, outbound, TIMEOUT), listener.accept());
    (stream.expect("a connection"), peer)
}

fn effective(socket: &TcpStream) -> EffectiveOptions {
    EffectiveOptions::read(socket).expect("options")
}

#[tokio::test]
async fn nodelay_is_on_at_both_ends_unless_asked_otherwise() {
    let options = SocketOptions::default();
    let (outbound, accepted) = pair(&options, &options).await;
    assert!(outbound.nodelay().unwrap(), "outbound");
    assert!(accepted.nodelay().unwrap(), "accepted");
}

#[tokio::test]
async fn each_end_has_the_nodelay_that_it_was_given() {
    let options = |nodelay| SocketOptions { nodelay, ..SocketOptions::default() };
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let (outbound, accepted) = pair(&options(ours), &options(theirs)).await;
        // Read by tokio, not by our own reader.
        assert_eq!(outbound.nodelay().unwrap(), ours, "outbound {ours}/{theirs}");
        assert_eq!(accepted.nodelay().unwrap(), theirs, "accepted {ours}/{theirs}");
        assert_eq!(effective(&outbound).nodelay, ours);
        assert_eq!(effective(&accepted).nodelay, theirs);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_other_options_are_in_force_at_both_ends() {
    let options = SocketOptions {
        send_buffer: Some(40_000),
        receive_buffer: Some(30_000),
        notsent_lowat: Some(5_000),
        keepalive: Some(Duration::from_secs(17)),
        user_timeout: Some(Duration::from_millis(12_345)),
        ..SocketOptions::default()
    };
    let (outbound, accepted) = pair(&options, &options).await;
    for end in [effective(&outbound), effective(&accepted)] {
        // Linux doubles the sizes (socket(7)).
        assert_eq!((end.send_buffer, end.receive_buffer), (80_000, 60_000));
        assert_eq!(end.notsent_lowat, Some(5_000));
        assert_eq!(end.keepalive, Some(Duration::from_secs(17)));
        assert_eq!(end.user_timeout, Some(Duration::from_millis(12_345)));
        assert!(end.congestion.is_some_and(|name| !name.is_empty() && !name.contains('\0')));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_not_asked_for_is_left_to_the_system() {
    let options = SocketOptions { notsent_lowat: None, ..SocketOptions::default() };
    let plain = effective(&pair(&options, &options).await.0);
    assert_eq!((plain.keepalive, plain.user_timeout), (None, None));
    let system = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_notsent_lowat").unwrap();
    let system: u32 = system.trim().parse().unwrap();
    assert_eq!(plain.notsent_lowat.unwrap_or(u32::MAX), system);

    let options = SocketOptions::default();
    let limited = effective(&pair(&options, &options).await.1);
    assert_eq!(limited.notsent_lowat, Some(SocketOptions::DEFAULT_NOTSENT_LOWAT));
}

#[tokio::test]
async fn a_listener_tells_its_options_and_its_port() {
    let listener = listener(&SocketOptions { nodelay: false, ..SocketOptions::default() }).await;
    assert_ne!(listener.local_addr().port(), 0);
    assert!(listener.effective().unwrap().to_string().starts_with("nodelay=off send_buffer="));
}

#[tokio::test]
async fn the_record_of_a_connection_names_its_ends() {
    let options = SocketOptions::default();
    let (outbound, accepted) = pair(&options, &options).await;
    let (local, peer) = (outbound.local_addr().unwrap(), outbound.peer_addr().unwrap());
    let record = effective(&outbound).record(local, peer);
    assert!(record.nodelay);
    assert_eq!(record.local, accepted.peer_addr().unwrap().to_string());
    assert_eq!(record.peer, accepted.local_addr().unwrap().to_string());
}

#[tokio::test]
async fn a_port_in_use_is_named_with_the_cure() {
    let first = listener(&SocketOptions::default()).await;
    let addr = first.local_addr();
    let error = listen(&addr.to_string(), &SocketOptions::default()).await.expect_err("in use");
    assert!(matches!(error, Error::AddressInUse { addr: named, .. } if named == addr));
    let text = error.to_string();
    assert!(text.contains(&addr.to_string()) && text.contains("choose another port"), "{text}");
}

#[tokio::test]
async fn listeners_that_agree_share_a_port() {
    let options = SocketOptions { reuse_port: true, ..SocketOptions::default() };
    let first = listener(&options).await;
    listen(&first.local_addr().to_string(), &options).await.expect("a second listener");
}

#[tokio::test]
async fn a_port_is_free_again_at_once_after_a_restart() {
    let options = SocketOptions::default();
    let first = listener(&options).await;
    let addr = first.local_addr();
    let (stream, accepted) =
        tokio::join!(connect("127.0.0.1", addr.port(), &options, TIMEOUT), first.accept());
    // The end that closes first is the one that stays in TIME_WAIT.
    drop(accepted);
    drop(stream);
    drop(first);
    listen(&addr.to_string(), &options).await.expect("the same port");
}

#[tokio::test]
async fn addresses_that_cannot_be_listened_on_say_why() {
    let cases = [
        ("192.0.2.1:0", "cannot listen on 192.0.2.1:0: this host has no such address"),
        ("localhost", "no address is known for localhost; correct the name, or give HOST:PORT"),
        ("127.0.0.1:66000", "no address is known for 127.0.0.1:66000"),
        ("nowhere.invalid:5672", "no address is known for nowhere.invalid:5672"),
    ];
    for (addr, start) in cases {
        let error = listen(addr, &SocketOptions::default()).await.expect_err(addr).to_string();
        assert!(error.starts_with(start), "{addr}: {error}");
    }
}

#[tokio::test]
async fn a_refused_connection_names_the_address_and_the_cure() {
    let port = listener(&SocketOptions::default()).await.local_addr().port();
    let error = connect("127.0.0.1", port, &SocketOptions::default(), TIMEOUT)
        .await
        .expect_err("nobody listens")
        .to_string();
    let start = format!("cannot connect to 127.0.0.1:{port} (127.0.0.1:{port}: ");
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("start the broker, or correct the port"), "{error}");
}

#[tokio::test]
async fn every_address_of_a_name_is_tried() {
    // Only the IPv4 address of localhost is listened on; where it has an IPv6 one, that is first.
    let listener = listener(&SocketOptions::default()).await;
    let port = listener.local_addr().port();
    let stream = connect("localhost", port, &SocketOptions::default(), TIMEOUT).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listener.local_addr());
}

#[tokio::test]
async fn a_name_without_an_address_is_an_error() {
    let options = SocketOptions::default();
    let error = connect("nowhere.invalid", 5672, &options, TIMEOUT).await.expect_err("no address");
    assert!(matches!(&error, Error::Resolve { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere.invalid:5672"), "{error}");
}

#[tokio::test]
async fn a_peer_that_does_not_answer_costs_no_more_than_the_time_given() {
    // A backlog of one that two connections fill: the kernel drops what asks after them.
    let full = listener(&SocketOptions { backlog: 0, ..SocketOptions::default() }).await;
    let port = full.local_addr().port();
    let options = SocketOptions::default();
    let limit = Duration::from_millis(300);
    let mut kept = Vec::new();
    let start = Instant::now();
    let error = loop {
        match connect("127.0.0.1", port, &options, limit).await {
            Ok(stream) => kept.push(stream),
            Err(error) => break error.to_string(),
        }
        assert!(kept.len() < 10, "the backlog has no end");
    };
    assert!(start.elapsed() < TIMEOUT);
    assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("no answer"), "{error}");
}

#[tokio::test]
async fn an_option_that_the_system_refuses_is_named() {
    let options = SocketOptions {
        keepalive: Some(Duration::from_secs(1_000_000)),
        ..SocketOptions::default()
    };
    let expected = "cannot set the socket option SO_KEEPALIVE to 1000000s; correct or leave out";
    let listening = listen("127.0.0.1:0", &options).await.expect_err("too long");
    assert!(listening.to_string().starts_with(expected), "{listening}");
    let outbound = connect("127.0.0.1", 5672, &options, TIMEOUT).await.expect_err("too long");
    assert!(outbound.to_string().starts_with(expected), "{outbound}");
    assert!(
        matches!(outbound, Error::Option { source, .. } if source.kind() == ErrorKind::InvalidInput)
    );
}
