//! Who is let in.

use crate::support::{Broker, Client, config};
use hopline_broker::{Config, User};
use hopline_driver::engine::{self, ClientSasl};

fn login(user: &str, password: &str) -> ClientSasl {
    ClientSasl::Password { user: user.into(), password: password.into(), nonce: "once".into() }
}

fn users() -> Vec<User> {
    [("ann", "secret"), ("bob", "")]
        .map(|(name, password)| User { name: name.into(), password: password.into() })
        .to_vec()
}

async fn is_let_in(broker: &Broker, sasl: ClientSasl) -> bool {
    let opened = Client::open_with(broker.address(), Default::default(), sasl).await;
    match opened {
        Ok(mut client) => {
            let sender = client.sender("q").await;
            client.send_all(sender, ["m"]).await;
            true
        }
        Err(_) => false,
    }
}

#[tokio::test]
async fn everybody_by_default() {
    let broker = Broker::start(config());
    assert!(is_let_in(&broker, ClientSasl::Anonymous).await);
    assert!(is_let_in(&broker, ClientSasl::None).await);
    assert!(!is_let_in(&broker, login("ann", "secret")).await, "there are no users");
}

#[tokio::test]
async fn only_users_with_their_passwords_if_anonymous_is_off() {
    let broker = Broker::start(Config { users: users(), anonymous: false, ..config() });
    assert!(is_let_in(&broker, login("ann", "secret")).await);
    assert!(is_let_in(&broker, login("bob", "")).await);
    let wrong = [
        ("ann", "Secret"),
        ("ann", ""),
        ("ann", "secret2"),
        ("bob", "x"),
        ("eve", "secret"),
        ("", ""),
    ];
    for (user, password) in wrong {
        assert!(!is_let_in(&broker, login(user, password)).await, "{user} {password}");
    }
    assert!(!is_let_in(&broker, ClientSasl::Anonymous).await);
    assert!(!is_let_in(&broker, ClientSasl::None).await);
}

#[tokio::test]
async fn both_if_both_are_on() {
    let broker = Broker::start(Config { users: users(), ..config() });
    assert!(is_let_in(&broker, login("ann", "secret")).await);
    assert!(is_let_in(&broker, ClientSasl::Anonymous).await);
    assert!(!is_let_in(&broker, login("ann", "wrong")).await);
}

#[tokio::test]
async fn nobody_if_neither_is() {
    let broker = Broker::start(Config { anonymous: false, ..config() });
    for sasl in [ClientSasl::Anonymous, ClientSasl::None, login("ann", "secret")] {
        assert!(!is_let_in(&broker, sasl).await);
    }
}

/// There are no virtual hosts: neither `open` nor `sasl-init` chooses one.
#[tokio::test]
async fn a_host_name_chooses_nothing() {
    let broker = Broker::start(Config { users: users(), ..config() });
    for host in [None, Some(""), Some("elsewhere.example")] {
        let engine = engine::Config { hostname: host.map(str::to_owned), ..Default::default() };
        let client = Client::open_with(broker.address(), engine, login("ann", "secret")).await;
        assert!(client.is_ok(), "{host:?}");
    }
}

#[test]
fn passwords_are_not_shown() {
    let text = format!("{:?}", Config { users: users(), ..config() });
    assert!(text.contains("ann") && !text.contains("secret"), "{text}");
}
