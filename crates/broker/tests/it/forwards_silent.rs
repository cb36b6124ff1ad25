//! Forwards to peers that open the connection and leave the link in the air.

use crate::forwards::{consent, forward, named, peer_that, with};
use crate::support::{Broker, Client, PATIENCE, body};
use hopline_broker::{Config, Direction, ForwardConfig, Limits};
use hopline_driver::engine::Answer;
use hopline_driver::engine::wire::DeliveryState;
use hopline_driver::engine::wire::performative::Attach;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

fn impatient(forwards: impl IntoIterator<Item = ForwardConfig>) -> Config {
    let limits = Limits { handshake_timeout: Duration::from_millis(300), ..Limits::default() };
    with(Config { limits, ..named("here") }, forwards)
}

/// Refuses, and owes the detach that says so (2.6.3).
fn refusal(attach: Attach) -> Option<Answer> {
    Some(Answer { source: None, target: None, ..consent(attach) })
}

/// A forward to a peer that answers its attach so, and a word of each connection that has ended.
fn left_by(
    direction: Direction,
    answer: fn(Attach) -> Option<Answer>,
) -> (ForwardConfig, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (tell, told) = channel();
    let name = format!("q{}", listener.local_addr().unwrap().port());
    let forward = forward(direction, &name, listener.local_addr().unwrap(), "r");
    thread::spawn(move || {
        loop {
            peer_that(&listener, answer, |_| (None, true));
            if tell.send(()).is_err() {
                return;
            }
        }
    });
    (forward, told)
}

#[tokio::test]
async fn a_link_that_is_left_in_the_air_is_given_up_and_asked_for_again() {
    let silences: [fn(Attach) -> Option<Answer>; 2] = [refusal, |_| None];
    let ways = [Direction::Out, Direction::In];
    let all = ways.map(|way| silences.map(|silence| left_by(way, silence)));
    let (forwards, told): (Vec<_>, Vec<_>) = all.into_iter().flatten().unzip();
    let _here = Broker::start(impatient(forwards));
    for (n, told) in told.into_iter().enumerate() {
        for connection in 1..=2 {
            assert_eq!(told.recv_timeout(PATIENCE), Ok(()), "peer {n}, connection {connection}");
        }
    }
}

#[tokio::test]
async fn who_attaches_at_last_gets_what_has_waited_and_keeps_the_link() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let out = forward(Direction::Out, "q", listener.local_addr().unwrap(), "r");
    let here = Broker::start(impatient([out]));
    let (tell, told) = channel();
    thread::spawn(move || {
        for connection in 0.. {
            let answer = |attach| match connection {
                0 | 1 => refusal(attach),
                _ => Some(consent(attach)),
            };
            peer_that(&listener, answer, |delivery| {
                let _ = tell.send((connection, body(delivery)));
                (Some(DeliveryState::Accepted), true)
            });
        }
    });
    let mut a = Client::open(&here).await;
    let sender = a.sender("q").await;
    a.send_all(sender, ["waits"]).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok((2, "waits".into())));
    // The time to attach is over long since, and does not count for a link that is attached.
    a.idle(3 * 300).await;
    a.send_all(sender, ["goes"]).await;
    assert_eq!(told.recv_timeout(PATIENCE), Ok((2, "goes".into())));
}
