//! TLS and passwords, as the messenger's URLs ask for them, at a broker.

use crate::common::broker::Broker;
use crate::common::{builder, number, numbered};
use hopline_broker::{Config, ListenerConfig, TlsFiles, User};
use hopline_messenger::{Builder, Error, Reconnect, Status};
use std::fs;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::time::sleep;

/// A broker with TLS that lets in `ann:s/cr t` only, and the folder of its certificate.
fn secure_broker() -> (Broker, TempDir) {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Some(TlsFiles { certificate, key });
    let config = Config {
        listeners: vec![ListenerConfig { tls, ..ListenerConfig::default() }],
        users: vec![User { name: "ann".into(), password: "s/cr t".into() }],
        anonymous: false,
        ..Config::default()
    };
    (Broker::start_with(0, config), folder)
}

fn trusting(name: &str, folder: &TempDir) -> Builder {
    builder(name).ca(folder.path().join("cert.pem"))
}

#[tokio::test]
async fn user_and_password_of_the_url_over_tls() {
    let (broker, folder) = secure_broker();
    let messenger = trusting("m", &folder).build();
    let url = format!("amqps://ann:s%2Fcr%20t@localhost:{}/q", broker.port);
    messenger.subscribe(&url).await.unwrap();
    let tracker = messenger.put(&url, numbered(7)).unwrap();
    let received = messenger.next().await.unwrap();
    messenger.accept(&received).unwrap();
    assert_eq!(number(&received.message().unwrap()), 7);
    messenger.send().await.unwrap();
    assert_eq!(messenger.status(tracker), Status::Accepted);
    messenger.stop().await.unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn who_is_not_let_in_is_told_without_the_password_and_does_not_ask_again() {
    let (broker, folder) = secure_broker();
    let reconnect = Reconnect { first: Duration::from_millis(5), ..Reconnect::default() };
    for user in ["ann:wrong@", "eve:secret@", "ann@", ""] {
        let messenger = trusting("m", &folder).reconnect(reconnect).build();
        let url = format!("amqps://{user}localhost:{}/q", broker.port);
        let error = messenger.subscribe(&url).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Connect { .. }), "{text}");
        assert!(!text.contains("wrong") && !text.contains("secret"), "{text}");
        sleep(Duration::from_millis(50)).await;
        assert!(messenger.connections().is_empty());
    }
}

#[tokio::test]
async fn a_certificate_of_nobody_trusted_or_for_another_name_is_refused() {
    let (broker, folder) = secure_broker();
    let (_, other) = secure_broker();
    let url = |host: &str| format!("amqps://ann:s%2Fcr%20t@{host}:{}/q", broker.port);
    for (folder, host) in [(&other, "localhost"), (&folder, "127.0.0.1")] {
        let messenger = trusting("m", folder).build();
        let error = messenger.connect(&url(host)).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Connect { .. }) && text.contains("TLS"), "{text}");
        assert!(!text.contains("s/cr t") && !text.contains("s%2Fcr"), "{text}");
    }
}

#[tokio::test]
async fn a_port_of_the_other_kind_is_told_in_time() {
    let (secure, folder) = secure_broker();
    let plain = Broker::start(0);
    let patience = Duration::from_millis(500);
    for url in [
        format!("amqps://localhost:{}/q", plain.port),
        format!("amqp://localhost:{}/q", secure.port),
    ] {
        let messenger = trusting("m", &folder).timeout(patience).build();
        let start = Instant::now();
        messenger.connect(&url).await.unwrap_err();
        assert!(start.elapsed() < 4 * patience, "{url}");
    }
}
