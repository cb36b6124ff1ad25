//! A broker on a port of its own, a client on the engine, and one that can send anything.
#![allow(dead_code, unreachable_pub, reason = "no test file needs all of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod client;
mod controller;
mod filters;
mod messages;
mod raw;

#[allow(unused_imports, reason = "no test file needs all of it")]
pub use client::Client;
#[allow(unused_imports, reason = "no test file needs all of it")]
pub use controller::*;
#[allow(unused_imports, reason = "no test file needs all of it")]
pub use filters::*;
#[allow(unused_imports, reason = "no test file needs all of it")]
pub use messages::*;
#[allow(unused_imports, reason = "no test file needs all of it")]
pub use raw::*;

use hopline_broker::{Config, ListenerConfig, Server, Stopped};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// No test waits longer for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A broker with these settings, on a free port.
pub fn config() -> Config {
    let listener = ListenerConfig { address: "127.0.0.1:0".into(), ..ListenerConfig::default() };
    Config { name: "broker".into(), listeners: vec![listener], ..Config::default() }
}

/// A broker that runs on a thread of its own.
pub struct Broker {
    pub addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Stopped>>,
}

impl Broker {
    pub fn start(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let server = Server::bind(config).await.expect("a free port");
                tell.send(server.addresses()).expect("the test waits");
                let stop = async { drop(stopped.await) };
                server.run(stop).await.expect("the broker runs")
            })
        });
        let addresses = told.recv().expect("the broker is up");
        Self { addresses, stop: Some(stop), thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Begins to stop.
    pub fn ask_to_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops, and tells how that went. Clients that are to answer must run meanwhile.
    pub fn stop(mut self) -> Stopped {
        self.ask_to_stop();
        self.thread.take().expect("not stopped yet").join().expect("the broker did not panic")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.ask_to_stop();
    }
}
