//! TLS over real sockets, both ends ours, with certificates made for the test.
#![cfg(feature = "tls")]

use std::fs;
use std::io::{self, ErrorKind, IoSlice};
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use hopline_driver::{ClientTls, ServerTls, SocketOptions, TlsSession, Transport, connect, listen};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(10);

/// The files of a server that is its own authority.
struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Files { dir: TempDir::new().unwrap() };
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(files.path("cert.pem"), made.cert.pem()).unwrap();
        fs::write(files.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn client(&self, host: &str) -> Transport {
        let tls = ClientTls::new(Some(&self.path("cert.pem"))).unwrap();
        Transport::client(&tls, host).unwrap()
    }

    fn server(&self) -> Transport {
        let tls = ServerTls::new(&self.path("cert.pem"), &self.path("key.pem")).unwrap();
        Transport::server(&tls).unwrap()
    }
}

/// One end of a connection, driven as an IO loop drives it.
struct End {
    socket: TcpStream,
    transport: Transport,
}

impl End {
    async fn handshake(&mut self) -> io::Result<()> {
        let handshake = self.transport.handshake(&self.socket);
        tokio::time::timeout(TIMEOUT, handshake).await.expect("the handshake ends")
    }

    /// At most `max` octets; none: the end.
    async fn read(&mut self, max: usize) -> io::Result<Vec<u8>> {
        let mut buf = BytesMut::new();
        loop {
            // Waits first, as a loop does that has other work: readiness must never be lost.
            let readable = tokio::time::timeout(TIMEOUT, self.socket.readable()).await;
            readable.expect("a reader is woken")?;
            match self.transport.try_read(&self.socket, &mut buf, max) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => {
                    assert_eq!(read?, buf.len());
                    assert!(buf.len() <= max);
                    return Ok(buf.to_vec());
                }
            }
        }
    }

    async fn read_exactly(&mut self, octets: usize, max: usize) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < octets {
            let some = self.read(max).await?;
            assert!(!some.is_empty(), "ended after {} octets", all.len());
            all.extend(some);
        }
        Ok(all)
    }

    async fn write_all(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let (front, back) = octets.split_at(octets.len() / 3);
            let slices = [IoSlice::new(front), IoSlice::new(back)];
            match self.transport.try_write_vectored(&self.socket, &slices) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                written => octets = &octets[written?..],
            }
        }
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        while self.transport.wants_write() {
            match self.transport.try_flush(&self.socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                flushed => flushed?,
            }
        }
        Ok(())
    }

    async fn end(&mut self) -> io::Result<()> {
        self.transport.end();
        self.flush().await?;
        socket2::SockRef::from(&self.socket).shutdown(std::net::Shutdown::Write)
    }
}

async fn sockets() -> (TcpStream, TcpStream) {
    let options = SocketOptions::default();
    let listener = listen("127.0.0.1:0", &options).await.unwrap();
    let port = listener.local_addr().port();
    let (stream, (peer, _)) =
        tokio::join!(connect("127.0.0.1", port, &options, TIMEOUT), listener.accept());
    (stream.unwrap(), peer)
}

/// Client and server over one connection, before the handshake.
async fn ends(client: Transport, server: Transport) -> (End, End) {
    let (ours, theirs) = sockets().await;
    (End { socket: ours, transport: client }, End { socket: theirs, transport: server })
}

async fn connected(files: &Files) -> (End, End) {
    let (mut client, mut server) = ends(files.client("localhost"), files.server()).await;
    let (ours, theirs) = tokio::join!(client.handshake(), server.handshake());
    ours.unwrap();
    theirs.unwrap();
    (client, server)
}

fn octets(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * 7 + n / 251) as u8).collect()
}

#[tokio::test]
async fn both_ends_write_and_read_at_once() {
    let (mut client, mut server) = connected(&Files::new()).await;
    let (request, reply) = (octets(50_000), octets(70_000));
    client.write_all(&request).await.unwrap();
    server.write_all(&reply).await.unwrap();
    assert!(server.read_exactly(request.len(), 8_192).await.unwrap() == request);
    assert!(client.read_exactly(reply.len(), 1 << 20).await.unwrap() == reply);
}

#[tokio::test]
async fn the_name_may_be_an_address() {
    let files = Files::new();
    let (mut client, mut server) = ends(files.client("127.0.0.1"), files.server()).await;
    let (ours, theirs) = tokio::join!(client.handshake(), server.handshake());
    ours.and(theirs).unwrap();
}

/// Passes octets on in pieces of at most `piece`, each in a segment of its own.
async fn forward(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    piece: usize,
) {
    let mut buf = vec![0; piece];
    while let Ok(read @ 1..) = from.read(&mut buf).await {
        if to.write_all(&buf[..read]).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
    let _ = to.shutdown().await;
}

#[tokio::test]
async fn records_may_be_split_over_many_reads() {
    let files = Files::new();
    for piece in [1, 7, 1_000] {
        let ((ours, near), (far, theirs)) = (sockets().await, sockets().await);
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(forward(near_in, far_out, piece));
        tokio::spawn(forward(far_in, near_out, piece));

        let mut client = End { socket: ours, transport: files.client("localhost") };
        let mut server = End { socket: theirs, transport: files.server() };
        let (ours, theirs) = tokio::join!(client.handshake(), server.handshake());
        ours.and(theirs).unwrap();
        let text = octets(20_000);
        client.write_all(&text).await.unwrap();
        assert!(server.read_exactly(text.len(), 4_096).await.unwrap() == text, "piece {piece}");
        server.end().await.unwrap();
        assert_eq!(client.read(10).await.unwrap(), b"", "piece {piece}");
    }
}

#[tokio::test]
async fn reads_of_one_octet_lose_and_miss_nothing() {
    let (mut client, mut server) = connected(&Files::new()).await;
    let text = octets(40_000);
    client.write_all(&text).await.unwrap();
    client.end().await.unwrap();
    assert!(server.read_exactly(text.len(), 1).await.unwrap() == text);
    assert_eq!(server.read(1).await.unwrap(), b"");
    assert_eq!(server.read(1).await.unwrap(), b"", "the end stays the end");
}

#[tokio::test]
async fn an_end_that_has_ended_may_still_read() {
    let (mut client, mut server) = connected(&Files::new()).await;
    client.write_all(b"last words").await.unwrap();
    client.end().await.unwrap();
    assert_eq!(server.read(100).await.unwrap(), b"last words");
    assert_eq!(server.read(100).await.unwrap(), b"");
    server.write_all(b"an answer").await.unwrap();
    server.end().await.unwrap();
    assert_eq!(client.read(100).await.unwrap(), b"an answer");
    assert_eq!(client.read(100).await.unwrap(), b"");
}

#[tokio::test]
async fn an_end_without_notice_is_told_apart() {
    let (mut client, mut server) = connected(&Files::new()).await;
    client.write_all(b"last words").await.unwrap();
    drop(client);
    assert_eq!(server.read(100).await.unwrap(), b"last words");
    assert_eq!(server.read(100).await.expect_err("cut").kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn what_waits_for_a_slow_reader_is_bounded() {
    let (mut client, mut server) = connected(&Files::new()).await;
    let chunk = octets(1 << 20);
    let mut taken = Vec::new();
    loop {
        match client.transport.try_write_vectored(&client.socket, &[IoSlice::new(&chunk)]) {
            Ok(some) => {
                assert!((1..=TlsSession::PENDING_LIMIT).contains(&some), "{some} at once");
                taken.extend_from_slice(&chunk[..some]);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                // Tokio learns from the first that the socket may be full; is it still?
                let ready =
                    tokio::time::timeout(Duration::from_millis(100), client.socket.writable());
                if ready.await.is_err() {
                    break;
                }
            }
        }
        assert!(taken.len() < 64 << 20, "no end to what is taken");
    }
    assert!(client.transport.wants_write());
    let reading = tokio::spawn(async move {
        server.read_exactly(taken.len(), 1 << 16).await.map(|all| all == taken)
    });
    client.flush().await.unwrap();
    assert!(!client.transport.wants_write());
    assert!(reading.await.unwrap().unwrap(), "all arrives as it was taken");
}

#[tokio::test]
async fn a_certificate_of_nobody_trusted_is_refused() {
    let (ours, theirs) = (Files::new(), Files::new());
    let (mut client, mut server) = ends(ours.client("localhost"), theirs.server()).await;
    let (client, server) = tokio::join!(client.handshake(), server.handshake());
    let error = client.expect_err("unknown issuer");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("name its CA's file"), "{error}");
    let error = server.expect_err("told by an alert");
    assert!(error.to_string().contains("the peer's log says why"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let files = Files::new();
    let (mut client, mut server) = ends(files.client("example.org"), files.server()).await;
    let (client, _) = tokio::join!(client.handshake(), server.handshake());
    let error = client.expect_err("another name").to_string();
    assert!(error.contains("connect by a name that the certificate is for"), "{error}");
}

#[tokio::test]
async fn a_peer_without_tls_is_refused() {
    let (mut plain, mut server) = ends(Transport::Plain, Files::new().server()).await;
    plain.handshake().await.unwrap();
    plain.write_all(b"AMQP\x00\x01\x00\x00").await.unwrap();
    let error = server.handshake().await.expect_err("no TLS");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("does the peer speak TLS on this port?"), "{error}");
}

#[tokio::test]
async fn a_peer_that_leaves_during_the_handshake_is_noticed() {
    let (plain, mut server) = ends(Transport::Plain, Files::new().server()).await;
    drop(plain);
    let error = server.handshake().await.expect_err("gone");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_damaged_record_ends_the_connection() {
    let (client, mut server) = connected(&Files::new()).await;
    let mut raw = client.socket;
    raw.write_all(&[23, 3, 3, 0, 40]).await.unwrap();
    raw.write_all(&[0; 40]).await.unwrap();
    assert_eq!(server.read(100).await.expect_err("damaged").kind(), ErrorKind::InvalidData);
}

#[tokio::test]
async fn plain_octets_pass_as_they_are() {
    let (mut client, mut server) = ends(Transport::Plain, Transport::Plain).await;
    let text = octets(100_000);
    client.write_all(&text).await.unwrap();
    assert!(!client.transport.wants_write());
    client.end().await.unwrap();
    assert!(server.read_exactly(text.len(), 1_000).await.unwrap() == text);
    assert_eq!(server.read(10).await.unwrap(), b"");
}

#[test]
fn files_that_do_not_serve_are_named() {
    let (files, others) = (Files::new(), Files::new());
    let (cert, key) = (files.path("cert.pem"), files.path("key.pem"));
    let (absent, empty) = (files.path("absent.pem"), files.path("empty.pem"));
    fs::write(&empty, "").unwrap();
    let damaged = files.path("damaged.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();

    let server = |cert, key| ServerTls::new(cert, key).expect_err("unfit").to_string();
    let client = |ca| ClientTls::new(Some(ca)).expect_err("unfit").to_string();
    let cases = [
        (server(&absent, &key), "absent.pem holds no certificates in PEM"),
        (server(&empty, &key), "empty.pem holds no certificates in PEM"),
        (server(&key, &key), "key.pem holds no certificates in PEM"),
        (server(&cert, &absent), "absent.pem holds no private key in PEM"),
        (server(&cert, &cert), "cert.pem holds no private key in PEM"),
        (server(&cert, &others.path("key.pem")), "key.pem do not belong together"),
        (client(&absent), "absent.pem holds no certificates in PEM"),
        (client(&damaged), "damaged.pem holds a certificate that cannot be trusted"),
    ];
    for (error, expected) in cases {
        assert!(error.starts_with("cannot set up TLS: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_host_that_no_certificate_is_for_is_named() {
    let tls = ClientTls::new(Some(&Files::new().path("cert.pem"))).unwrap();
    let error = Transport::client(&tls, "not a name").expect_err("spaces").to_string();
    assert!(error.contains("not a name is no name that a certificate can be for"), "{error}");
}
