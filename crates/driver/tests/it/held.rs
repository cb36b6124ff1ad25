//! Octets that the kernel holds back are seen, and for the true reason.
#![cfg(target_os = "linux")]

use hopline_driver::engine::{ClientSasl, Config, Connection};
use hopline_driver::timeline::record::Held as Reason;
use hopline_driver::{Clock, Flush, Io, SocketOptions, Transport};
use hopline_driver::{connect, held_back, listen, tcp_record};
use socket2::SockRef;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// A connection whose first end has these options, and a congestion control that does not pace.
async fn pair(options: &SocketOptions, accepted: &SocketOptions) -> (TcpStream, TcpStream) {
    let listener = listen("127.0.0.1:0", accepted).await.unwrap();
    let port = listener.local_addr().port();
    let (near, (far, _)) = tokio::join!(
        connect("127.0.0.1", port, options, Duration::from_secs(5)),
        listener.accept()
    );
    let near = near.unwrap();
    let _ = SockRef::from(&near).set_tcp_congestion(b"cubic");
    near.writable().await.unwrap();
    (near, far)
}

/// Small writes to a peer that delays its ACKs, as one does that has just answered; the reasons
/// why some were held back.
async fn small_writes(nodelay: bool) -> Vec<Reason> {
    let options = SocketOptions { nodelay, ..SocketOptions::default() };
    let (near, far) = pair(&options, &SocketOptions::default()).await;
    let mut reasons = Vec::new();
    // Fewer than the first congestion window holds.
    for _ in 0..8 {
        SockRef::from(&far).set_tcp_quickack(false).unwrap();
        assert_eq!(near.try_write(&[7; 100]).unwrap(), 100);
        reasons.extend(held_back(&near).map(|held| held.reason));
    }
    reasons
}

#[tokio::test]
async fn nagle_holds_the_second_small_write() {
    let reasons = small_writes(false).await;
    assert!(reasons.len() >= 6, "{reasons:?}");
    assert!(reasons.iter().all(|reason| *reason == Reason::Nagle), "{reasons:?}");
}

#[tokio::test]
async fn with_nodelay_the_same_writes_leave() {
    let reasons = small_writes(true).await;
    assert!(reasons.is_empty(), "{reasons:?}");
}

#[tokio::test]
async fn a_peer_that_does_not_read_closes_its_window() {
    let unlimited = SocketOptions { notsent_lowat: None, ..SocketOptions::default() };
    for nodelay in [true, false] {
        let options = SocketOptions { nodelay, ..unlimited.clone() };
        let narrow = SocketOptions { receive_buffer: Some(4096), ..unlimited.clone() };
        let (near, _far) = pair(&options, &narrow).await;
        let blocked = loop {
            if let Err(error) = near.try_write(&[7; 10_000]) {
                break error.kind();
            }
        };
        assert_eq!(blocked, ErrorKind::WouldBlock);
        // What is under way is acknowledged first.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let held = held_back(&near).expect("the socket is full");
        assert_eq!(held.reason, Reason::ReceiveWindow, "nodelay {nodelay}");
        assert!(held.octets > 0 && held.at <= Clock.now());
    }
}

#[tokio::test]
async fn a_cork_holds_what_is_less_than_a_segment() {
    let (near, _far) = pair(&SocketOptions::default(), &SocketOptions::default()).await;
    SockRef::from(&near).set_tcp_cork(true).unwrap();
    near.try_write(b"short").unwrap();
    let held = held_back(&near).expect("it is corked");
    assert_eq!((held.reason, held.octets), (Reason::Cork, 5));
    SockRef::from(&near).set_tcp_cork(false).unwrap();
    assert_eq!(held_back(&near), None);
}

#[tokio::test]
async fn a_connection_keeps_its_account() {
    let (near, far) = pair(&SocketOptions::default(), &SocketOptions::default()).await;
    let (local, peer) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
    let engine = Connection::client(Config::default(), ClientSasl::Anonymous, Clock.now());
    let mut io = Io::new(engine, Arc::new(near), Transport::Plain);
    SockRef::from(&**io.socket()).set_tcp_cork(true).unwrap();
    assert_eq!(io.flush().unwrap(), Flush::Done);
    assert_eq!(io.held().map(|held| held.reason), Some(Reason::Cork));
    assert_eq!(io.flush().unwrap(), Flush::Done);
    let record = io.record("here").unwrap();
    assert_eq!((record.local, record.peer), (local.to_string(), peer.to_string()));
    assert_eq!((record.io.writes, record.held.cork), (1, 1), "the second flush wrote nothing");
    let tcp = record.tcp.unwrap();
    assert_eq!(tcp.unsent_octets.map(u64::from), Some(record.io.octets_written));

    SockRef::from(&**io.socket()).set_tcp_cork(false).unwrap();
    far.readable().await.unwrap();
    let tcp = tcp_record(&**io.socket()).unwrap();
    assert_eq!((tcp.unsent_octets, tcp.data_segments_out), (Some(0), Some(1)));
    assert_eq!(tcp_record(&far).unwrap().data_segments_in, Some(1));
}
