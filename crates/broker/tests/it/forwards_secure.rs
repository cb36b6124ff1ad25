//! Forwards over TLS: to brokers that are trusted, and to such as are not.

use crate::forwards::{forward, named, with};
use crate::forwards_trouble::{COUNT, Line, narrow, take_all_over};
use crate::support::{Broker, Client, PATIENCE, config};
use hopline_broker::{Config, Direction, ForwardConfig, ListenerConfig, TlsFiles, User};
use hopline_driver::engine::{ClientSasl, Config as EngineConfig};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;
use tempfile::TempDir;

/// A server's certificate, its own authority, for the host of this name.
struct Certificate(TempDir);

impl Certificate {
    fn of(host: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("cert.pem")
    }

    /// Two listeners: with TLS, and for clients of the test without.
    fn listeners(&self) -> Vec<ListenerConfig> {
        let plain = config().listeners.remove(0);
        let tls = Some(TlsFiles { certificate: self.path(), key: self.0.path().join("key.pem") });
        vec![ListenerConfig { tls, ..plain.clone() }, plain]
    }

    fn broker(&self, config: Config) -> Broker {
        Broker::start(Config { listeners: self.listeners(), ..config })
    }
}

/// A forward by `amqps` that trusts this file.
fn secure(
    (direction, local): (Direction, &str),
    (at, remote): (SocketAddr, &str),
    ca: PathBuf,
) -> ForwardConfig {
    let url = format!("amqps://localhost:{}/{remote}", at.port()).parse().unwrap();
    ForwardConfig { remote: url, ca: Some(ca), ..forward(direction, local, at, remote) }
}

async fn client(broker: &Broker, sasl: ClientSasl) -> Client {
    Client::open_with(broker.addresses[1], EngineConfig::default(), sasl).await.unwrap()
}

#[tokio::test]
async fn messages_go_both_ways_by_tls_as_the_user_of_the_url() {
    let certificate = Certificate::of("localhost");
    let users = vec![User { name: "ann".into(), password: "s/cr t".into() }];
    let there = certificate.broker(Config { users, anonymous: false, ..named("there") });
    let as_ann = |direction, local, remote| {
        let mut it = secure((direction, local), (there.address(), remote), certificate.path());
        it.remote.user = Some("ann".into());
        it.remote.password = Some("s/cr t".into());
        it
    };
    let out = as_ann(Direction::Out, "q", "r");
    let incoming = as_ann(Direction::In, "back", "s");
    let here = Broker::start(with(named("here"), [out, incoming]));
    let (user, password, nonce) = ("ann".into(), "s/cr t".into(), "once".into());
    let mut b = client(&there, ClientSasl::Password { user, password, nonce }).await;
    let mut a = Client::open(&here).await;
    // Larger than frames, records and what a socket holds.
    let large = "x".repeat(3_000_000);
    let bodies: Vec<_> = (0..300).map(|n| n.to_string()).chain([large]).collect();
    let (to, from) = (a.sender("q").await, b.receiver("r", 301).await);
    a.send_all(to, bodies.iter().map(String::as_str)).await;
    assert!(b.take(from, 301).await == bodies, "out");
    let (to, from) = (b.sender("s").await, a.receiver("back", 301).await);
    b.send_all(to, bodies.iter().map(String::as_str)).await;
    assert!(a.take(from, 301).await == bodies, "in");
}

#[tokio::test]
async fn nothing_is_lost_by_tls_however_often_the_line_is_cut() {
    let certificate = Certificate::of("localhost");
    let there = certificate.broker(narrow(named("there")));
    let line = Line::to(there.address());
    let out = secure((Direction::Out, "q"), (line.address, "r"), certificate.path());
    let here = Broker::start(with(named("here"), [out]));
    let (mut a, mut b) = (Client::open(&here).await, client(&there, ClientSasl::None).await);
    let sender = a.sender("q").await;
    a.send_numbered(sender, 0..COUNT).await;
    let receiver = b.receiver("r", 20).await;
    take_all_over(&line, &mut b, receiver).await;
}

/// Waits until a forward has tried at least twice more: it was refused meanwhile.
async fn refused_again(line: &Line, client: &mut Client) {
    let (before, began) = (line.connections(), Instant::now());
    while line.connections() < before + 2 {
        assert!(began.elapsed() < PATIENCE, "the forward has given up");
        client.idle(10).await;
    }
}

#[tokio::test]
async fn who_cannot_be_trusted_gets_nothing_and_others_go_on() {
    let (good, other) = (Certificate::of("localhost"), Certificate::of("localhost"));
    let elsewhere = Certificate::of("elsewhere.example");
    let (there, misnamed) = (good.broker(named("there")), elsewhere.broker(named("misnamed")));
    let lines = [there.addresses[0], misnamed.addresses[0], there.addresses[1]].map(Line::to);
    // Signed by somebody else; for another host; no TLS at all.
    let cases = [&other, &elsewhere, &good];
    let mut forwards: Vec<_> = (0..3)
        .map(|n| {
            let local = format!("q{n}");
            secure((Direction::Out, &local), (lines[n].address, "r"), cases[n].path())
        })
        .collect();
    forwards.push(secure((Direction::Out, "p"), (there.address(), "s"), good.path()));
    let here = Broker::start(with(named("here"), forwards));
    let mut a = Client::open(&here).await;
    for queue in ["q0", "q1", "q2", "p"] {
        let sender = a.sender(queue).await;
        a.send_all(sender, [queue]).await;
    }
    for line in &lines {
        refused_again(line, &mut a).await;
    }
    let (mut b, mut c) =
        (client(&there, ClientSasl::None).await, client(&misnamed, ClientSasl::None).await);
    let (at_there, at_misnamed) = (b.receiver("r", 10).await, c.receiver("r", 10).await);
    b.assert_nothing(at_there).await;
    c.assert_nothing(at_misnamed).await;
    let onward = b.receiver("s", 1).await;
    assert_eq!(b.take(onward, 1).await, ["p"]);
    // Whom to trust is read anew each time: what has waited goes once that is put right.
    fs::copy(good.path(), other.path()).unwrap();
    assert_eq!(b.take(at_there, 1).await, ["q0"]);
    b.assert_nothing(at_there).await;
}
