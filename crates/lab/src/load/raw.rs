//! The receiving end of a raw connection: bodies of equal size, one after the other.

use super::Job;
use crate::Error;
use hopline_messenger::driver::Socket;
use hopline_timeline::Instant;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

/// Octets of one read.
const READ: usize = 64 << 10;

pub(super) async fn take(job: Arc<Job>, socket: Socket, number: usize) -> Result<(), Error> {
    let Some(pair) = job.pairs.get(number) else { return Ok(()) };
    let size = job.load.size;
    let mut buffer = vec![0; READ];
    // Octets of a body that is not there in full.
    let mut rest: Vec<u8> = Vec::new();
    loop {
        socket.readable().await.map_err(Error::file("a socket"))?;
        let n = match socket.try_read(&mut buffer) {
            // What did not arrive by then is counted as lost.
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(Error::Load(error.to_string())),
        };
        rest.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let mut delays = job.delays.lock().unwrap_or_else(PoisonError::into_inner);
        let bodies = rest.chunks_exact(size);
        let (count, used) = (bodies.len(), bodies.len() * size);
        for head in bodies.filter_map(|body| body.first_chunk()) {
            job.note(&mut delays, Instant::from_nanos(i64::from_be_bytes(*head)));
        }
        drop(delays);
        pair.received.fetch_add(count as u64, Relaxed);
        rest.drain(..used);
    }
}
