//! A listening peer that does what a test tells it, connection by connection.

#![allow(clippy::unwrap_used)]

use hopline_messenger::driver::engine::{Anonymous, Config, Connection, Event};
use hopline_messenger::driver::{Clock, Io, Read, SocketOptions, Transport, Waiter, listen};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) url: String,
    /// When each connection came.
    pub(crate) came: Arc<Mutex<Vec<Instant>>>,
    /// How many there were at once, at most.
    pub(crate) most: Arc<AtomicUsize>,
}

impl Peer {
    /// Gives each event of the connection with that number to `script`.
    pub(crate) async fn start(
        script: impl Fn(usize, &mut Connection, Event) + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = listen("127.0.0.1:0", &SocketOptions::default()).await.unwrap();
        let url = format!("amqp://{}/q", listener.local_addr());
        let peer = Self { url, came: Arc::default(), most: Arc::default() };
        let (ours, open) = (peer.clone(), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await;
                let number = ours.came.lock().unwrap().len();
                ours.came.lock().unwrap().push(Instant::now());
                let engine =
                    Connection::server(Config::default(), Arc::new(Anonymous), Clock.now());
                let io = Io::new(engine, Arc::new(socket), Transport::Plain);
                let (open, script) = (open.clone(), script.clone());
                let now = open.fetch_add(1, Ordering::SeqCst) + 1;
                ours.most.fetch_max(now, Ordering::SeqCst);
                tokio::spawn(async move {
                    serve(io, |engine, event| script(number, engine, event)).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        peer
    }

    pub(crate) fn connections(&self) -> usize {
        self.came.lock().unwrap().len()
    }
}

async fn serve(mut io: Io, script: impl Fn(&mut Connection, Event)) {
    let (wake, mut waiter) = (Notify::new(), Waiter::default());
    loop {
        let end = io.read() == Read::End;
        while let Some(event) = io.engine_mut().poll_event(Clock.now()) {
            script(io.engine_mut(), event);
        }
        if io.flush().is_err() || end || io.is_finished() {
            return;
        }
        let (socket, interest) = (io.socket().clone(), (io.wants_read(), io.wants_write()));
        waiter.ready(&socket, interest, None, &wake).await;
    }
}
