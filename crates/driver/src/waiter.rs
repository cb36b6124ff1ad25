//! Waiting: for a socket, for a deadline of the engine, for somebody in this process.

use crate::sent::Gate;
use crate::timeline::Instant;
use crate::{Clock, Io};
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

/// Waits for one connection at a time. Its timer is set anew only where a deadline comes nearer:
/// one that moves away with each octet read costs nothing, but may wake once too early.
#[derive(Debug, Default)]
pub struct Waiter {
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Where to wait for room if the socket's error queue is in use.
    gate: Option<Arc<Gate>>,
}

impl Waiter {
    /// One for this connection, whose kernel timestamps are settled.
    pub fn of(io: &Io) -> Self {
        Self { gate: io.gate(), timer: None }
    }

    /// Waits until the socket can be read (if `read`) or written (if `write`), the deadline has
    /// come, or `wake` was notified; whichever is first. Then try everything: no call blocks.
    ///
    /// Cancel-safe.
    pub async fn ready(
        &mut self,
        socket: &TcpStream,
        (read, write): (bool, bool),
        deadline: Option<Instant>,
        wake: &Notify,
    ) {
        let gate = self.gate.clone();
        let look = gate.as_ref().and_then(|gate| gate.look_in());
        let look = look.map(|left| Clock.now().saturating_add(left));
        self.arm(deadline.into_iter().chain(look).min());
        let interest = match (read, write && gate.is_none()) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        let ready = async {
            match interest {
                // An error shows at the read or write that is tried next.
                Some(interest) => drop(socket.ready(interest).await),
                None => pending().await,
            }
        };
        let room = async {
            match gate.as_ref().filter(|_| write) {
                Some(gate) => drop(gate.opened(socket).await),
                None => pending().await,
            }
        };
        let timer = async {
            match &mut self.timer {
                Some((_, timer)) => timer.as_mut().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ready => {}
            () = room => {}
            () = wake.notified() => {}
            () = timer => self.timer = None,
        }
    }

    fn arm(&mut self, deadline: Option<Instant>) {
        let Some(deadline) = deadline else {
            self.timer = None;
            return;
        };
        if self.timer.as_ref().is_none_or(|(armed, _)| deadline < *armed) {
            let left = deadline.saturating_duration_since(Clock.now());
            self.timer = Some((deadline, Box::pin(sleep(left))));
        }
    }
}
