//! The task of a forward: it connects, serves the connection until it ends, pauses, connects again.

use super::Forward;
use crate::server::{Shared, drive};
use hopline_driver::engine::Config;
use hopline_driver::{Clock, dial};
use std::rc::Rc;

/// Forwards until the broker stops.
pub(crate) async fn run(shared: Rc<Shared>, forward: Rc<Forward>) {
    let (name, reconnect) = (forward.config.name.as_str(), forward.config.reconnect);
    let mut attempt = 0;
    while !shared.stopping.get() {
        let began = Clock.now();
        connect(&shared, &forward).await;
        if shared.stopping.get() {
            return;
        }
        // Refused ones come back too: a user or a node may be there tomorrow.
        let lasted_ns = Clock.now().since_ns(began);
        if u128::try_from(lasted_ns).is_ok_and(|ns| ns >= reconnect.stable.as_nanos()) {
            attempt = 0;
        }
        let pause = reconnect.pause(attempt);
        attempt = attempt.saturating_add(1);
        tracing::info!(forward = name, ?pause, "connecting again");
        tokio::time::sleep(pause).await;
    }
}

/// One connection, from its first octet to its last.
async fn connect(shared: &Rc<Shared>, forward: &Rc<Forward>) {
    let config = &forward.config;
    let engine = Config { hostname: Some(config.remote.host.clone()), ..shared.engine.clone() };
    let timeout = shared.engine.handshake_timeout;
    let dialled = dial(&config.remote, config.ca.as_deref(), &config.socket, timeout, engine);
    let mut io = match dialled.await {
        Ok(io) => io,
        Err(refusal) => {
            let reason = refusal.reason;
            return tracing::warn!(forward = config.name, reason, "the other broker is away");
        }
    };
    if shared.stopping.get() {
        return;
    }
    io.use_kernel_timestamps(config.socket.kernel_timestamps, shared.side.as_ref());
    let socket = io.socket().clone();
    let (id, wake) = shared.broker.borrow_mut().add_forward(io, forward.clone());
    drive(shared, (id, &wake), &socket, &config.remote.host_port()).await;
}
