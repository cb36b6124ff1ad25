//! How many may connect, for how long without a word, and what is said to who speaks something
//! else.

use crate::support::{Broker, Client, PATIENCE, config};
use hopline_broker::{Config, Limits, ListenerConfig, TlsFiles};
use hopline_driver::engine::ClientSasl;
use hopline_driver::engine::wire::Performative;
use hopline_driver::{ClientTls, SocketOptions, Transport, connect};
use std::io::ErrorKind::WouldBlock;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn limited(limits: Limits) -> Broker {
    Broker::start(Config { limits, ..config() })
}

/// A broker that takes TLS at its first address and plain TCP at the second one, and a client's
/// trust in it.
fn with_tls(limits: Limits) -> (Broker, ClientTls) {
    let folder = tempfile::tempdir().expect("a folder");
    let files =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, files.cert.pem()).expect("written");
    std::fs::write(&key, files.signing_key.serialize_pem()).expect("written");
    let plain = config().listeners.remove(0);
    let trust = ClientTls::new(Some(&certificate)).expect("a certificate");
    let tls = ListenerConfig { tls: Some(TlsFiles { certificate, key }), ..plain.clone() };
    (Broker::start(Config { limits, listeners: vec![tls, plain], ..config() }), trust)
}

/// Connects without a word; with a time limit for reads.
fn silent(broker: &Broker) -> TcpStream {
    let socket = TcpStream::connect(broker.address()).expect("the kernel accepts");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    socket
}

fn is_hung_up(socket: &mut TcpStream) -> bool {
    matches!(socket.read(&mut [0; 8]), Ok(0) | Err(_))
}

/// Opens a connection to the last listener, again and again until there is a place.
async fn open_once_there_is_a_place(broker: &Broker) -> Client {
    let until = Instant::now() + PATIENCE;
    loop {
        let address = *broker.addresses.last().expect("a listener");
        let opened = Client::open_with(address, Default::default(), ClientSasl::Anonymous).await;
        match opened {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < until, "no place: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn one_address_gets_no_more_than_its_places_and_each_of_them() {
    let broker = limited(Limits { connections_per_address: 3, ..Limits::default() });
    let one = Client::open(&broker).await;
    // Who has said nothing yet has a place too.
    let quiet = [silent(&broker), silent(&broker)];
    assert!(is_hung_up(&mut silent(&broker)), "a fourth one");
    one.close().await;
    let mut again = open_once_there_is_a_place(&broker).await;
    let sender = again.sender("q").await;
    again.send_all(sender, ["served"]).await;
    assert!(is_hung_up(&mut silent(&broker)), "a fourth one");
    drop(quiet);
    open_once_there_is_a_place(&broker).await;
}

#[tokio::test]
async fn who_is_in_a_tls_handshake_has_a_place() {
    let (broker, _) = with_tls(Limits { connections: 2, ..Limits::default() });
    // One says nothing, one the beginning of a handshake.
    let mut peers = [silent(&broker), silent(&broker)];
    peers[1].write_all(&[0x16, 3, 1]).expect("written");
    assert!(is_hung_up(&mut silent(&broker)), "a third one");
    drop(peers);
    open_once_there_is_a_place(&broker).await;
}

#[tokio::test]
async fn a_handshake_is_given_its_time_once_tls_included() {
    let handshake_timeout = Duration::from_millis(1200);
    let limits = Limits { handshake_timeout, connections: 1, ..Limits::default() };
    let (broker, trust) = with_tls(limits);
    let begun = Instant::now();
    assert!(is_hung_up(&mut silent(&broker)), "no TLS comes");
    assert!(begun.elapsed() >= handshake_timeout);
    // The time does not begin anew behind TLS.
    let begun = Instant::now();
    let (port, options) = (broker.address().port(), SocketOptions::default());
    let socket = connect("localhost", port, &options, PATIENCE).await.expect("it listens");
    tokio::time::sleep(handshake_timeout * 3 / 4).await;
    let mut transport = Transport::client(&trust, "localhost").expect("a name");
    transport.handshake(&socket).await.expect("TLS");
    let mut octets = bytes::BytesMut::new();
    while transport.try_read(&socket, &mut octets, 4096).is_err_and(|e| e.kind() == WouldBlock) {
        socket.readable().await.expect("open");
    }
    let took = begun.elapsed();
    assert!((handshake_timeout..handshake_timeout * 3 / 2).contains(&took), "{took:?}");
    open_once_there_is_a_place(&broker).await;
}

#[tokio::test]
async fn a_thousand_come_and_go_from_one_address_by_default() {
    let broker = Broker::start(config());
    for _ in 0..10 {
        let mut peers: Vec<_> = (0..100).map(|_| silent(&broker)).collect();
        for peer in &mut peers {
            peer.write_all(crate::support::AMQP).expect("taken");
            peer.read_exact(&mut [0; 8]).expect("answered");
        }
    }
}

#[tokio::test]
async fn an_upgrade_to_websocket_is_answered_by_our_header_and_a_close() {
    let broker = Broker::start(config());
    for protocol in ["amqp", "AMQPWSB10", "chat"] {
        let mut peer = silent(&broker);
        let request = format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
        );
        peer.write_all(request.as_bytes()).expect("taken");
        let mut answer = Vec::new();
        // What was left unread may make the kernel reset the connection behind the answer.
        let _ = peer.read_to_end(&mut answer);
        assert_eq!(answer.len(), 8, "{answer:?}");
        assert!(answer.starts_with(b"AMQP"), "{answer:?}");
    }
    let mut client = Client::open(&broker).await;
    let sender = client.sender("q").await;
    client.send_all(sender, ["served"]).await;
}

#[tokio::test]
async fn a_peer_without_heartbeats_is_given_up_and_one_with_them_stays() {
    let idle_timeout = Duration::from_millis(600);
    let broker = limited(Limits { idle_timeout: Some(idle_timeout), ..Limits::default() });
    let mut client = Client::open(&broker).await;
    let begun = Instant::now();
    let mut quiet = crate::support::Raw::open(&broker);
    let told = tokio::task::spawn_blocking(move || {
        let Some(Performative::Close(close)) = quiet.frame() else { panic!("no close") };
        close.error.expect("a reason").condition
    });
    // The engine's client sends heartbeats while it has nothing else to do.
    client.idle(1500).await;
    assert_eq!(told.await.expect("joined").as_str(), "amqp:resource-limit-exceeded");
    assert!(begun.elapsed() >= idle_timeout);
    let sender = client.sender("q").await;
    client.send_all(sender, ["still there"]).await;
}
