//! TCP_NODELAY of the broker's accepted sockets, asked of the kernel: the broker runs in this
//! process, so its sockets are among our descriptors.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests too")]
#![cfg(target_os = "linux")]

#[path = "it/support/mod.rs"]
mod support;

use hopline_broker::{Config, ListenerConfig};
use hopline_driver::{EffectiveOptions, SocketOptions};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use support::{Broker, PATIENCE, Raw, config};

/// Copies of all sockets of this process whose peer is `peer`.
fn sockets_to(peer: SocketAddr) -> Vec<TcpStream> {
    let process = pidfd_open(getpid(), PidfdFlags::empty()).expect("our own process");
    let names = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
    names
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|fd| pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok())
        .map(TcpStream::from)
        .filter(|socket| socket.peer_addr().is_ok_and(|addr| addr == peer))
        .collect()
}

/// The broker's end of a connection.
fn accepted(client: &TcpStream) -> TcpStream {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = sockets_to(client.local_addr().expect("connected")).pop();
        if let Some(socket) = found {
            return socket;
        }
        assert!(Instant::now() < until, "not accepted");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nodelay_is_on_by_default_and_as_each_listener_says() {
    let listener = |nodelay| ListenerConfig {
        address: "127.0.0.1:0".into(),
        socket: SocketOptions { nodelay, ..SocketOptions::default() },
        tls: None,
    };
    let default = ListenerConfig { address: "127.0.0.1:0".into(), ..ListenerConfig::default() };
    let listeners = vec![default, listener(true), listener(false)];
    let broker = Broker::start(Config { listeners, ..config() });
    for (address, nodelay) in broker.addresses.iter().zip([true, true, false]) {
        let mut raw = Raw::connect_to(*address);
        // Once it answers it has set what it sets.
        raw.write(support::AMQP);
        raw.put(&support::open("raw"));
        raw.skip_header();
        let options = EffectiveOptions::read(&accepted(&raw.socket)).expect("a socket");
        assert_eq!(options.nodelay, nodelay, "{address}");
        assert_eq!(options.notsent_lowat, Some(SocketOptions::DEFAULT_NOTSENT_LOWAT));
    }
}
