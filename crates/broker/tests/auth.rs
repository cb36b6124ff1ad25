//! Who is let in.

mod support;

use hopline_broker::{Config, User};
use hopline_driver::engine::ClientSasl;
use support::{Broker, Client, config};

fn plain(user: &str, password: &str) -> ClientSasl {
    ClientSasl::Plain { user: user.into(), password: password.into() }
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
    assert!(!is_let_in(&broker, plain("ann", "secret")).await, "there are no users");
}

#[tokio::test]
async fn only_users_with_their_passwords_if_anonymous_is_off() {
    let broker = Broker::start(Config { users: users(), anonymous: false, ..config() });
    assert!(is_let_in(&broker, plain("ann", "secret")).await);
    assert!(is_let_in(&broker, plain("bob", "")).await);
    let wrong = [
        ("ann", "Secret"),
        ("ann", ""),
        ("ann", "secret2"),
        ("bob", "x"),
        ("eve", "secret"),
        ("", ""),
    ];
    for (user, password) in wrong {
        assert!(!is_let_in(&broker, plain(user, password)).await, "{user} {password}");
    }
    assert!(!is_let_in(&broker, ClientSasl::Anonymous).await);
    assert!(!is_let_in(&broker, ClientSasl::None).await);
}

#[tokio::test]
async fn both_if_both_are_on() {
    let broker = Broker::start(Config { users: users(), ..config() });
    assert!(is_let_in(&broker, plain("ann", "secret")).await);
    assert!(is_let_in(&broker, ClientSasl::Anonymous).await);
    assert!(!is_let_in(&broker, plain("ann", "wrong")).await);
}

#[tokio::test]
async fn nobody_if_neither_is() {
    let broker = Broker::start(Config { anonymous: false, ..config() });
    for sasl in [ClientSasl::Anonymous, ClientSasl::None, plain("ann", "secret")] {
        assert!(!is_let_in(&broker, sasl).await);
    }
}

#[test]
fn passwords_are_not_shown() {
    let text = format!("{:?}", Config { users: users(), ..config() });
    assert!(text.contains("ann") && !text.contains("secret"), "{text}");
}
