//! A clock that is moved by hand, and connections in memory (feature `simulation`).
//!
//! What is built on [`Io`](crate::Io) and [`Clock`](crate::Clock) runs on these unchanged: the same
//! calls in the same order give the same octets, instant for instant.

use crate::timeline::Instant;
use bytes::BytesMut;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Stops [`Clock`](crate::Clock) on this thread at an instant; `None` lets it run again.
pub fn hold_clock(at: Option<Instant>) {
    NOW.set(at);
}

pub(crate) fn held() -> Option<Instant> {
    NOW.get()
}

#[derive(Debug, Default)]
struct Shared {
    /// To be read at the near end.
    inward: BytesMut,
    /// Written at the near end, not taken at the far one.
    outward: BytesMut,
    /// Octets that may wait in `outward`.
    capacity: usize,
    /// The far end sends no more.
    far_ended: bool,
    /// The near end has been dropped.
    near_gone: bool,
    /// The connection is cut: reads and writes fail.
    is_cut: bool,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The near end of a connection in memory, for [`Io::in_memory`](crate::Io::in_memory). It reads
/// and writes as a socket that never blocks.
#[derive(Debug)]
pub struct Pipe(Arc<Mutex<Shared>>);

/// The far end, in the hand of whoever plays the network.
#[derive(Debug)]
pub struct PipeEnd(Arc<Mutex<Shared>>);

/// A connection in memory. The near end may write `capacity` octets ahead of what the far end
/// takes; 0 blocks all its writes.
pub fn pipe(capacity: usize) -> (Pipe, PipeEnd) {
    let shared = Arc::new(Mutex::new(Shared { capacity, ..Shared::default() }));
    (Pipe(shared.clone()), PipeEnd(shared))
}

impl Pipe {
    pub(crate) fn try_read(&self, buf: &mut BytesMut, max: usize) -> io::Result<usize> {
        let mut shared = lock(&self.0);
        if shared.is_cut {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if shared.inward.is_empty() && !shared.far_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = shared.inward.len().min(max);
        buf.extend_from_slice(&shared.inward.split_to(n));
        Ok(n)
    }

    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut shared = lock(&self.0);
        if shared.is_cut {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = shared.capacity.saturating_sub(shared.outward.len());
        if room == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let before = shared.outward.len();
        for slice in slices {
            let left = room - (shared.outward.len() - before);
            shared.outward.extend_from_slice(slice.get(..left).unwrap_or(slice));
        }
        Ok(shared.outward.len() - before)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        lock(&self.0).near_gone = true;
    }
}

impl PipeEnd {
    /// Brings octets to the near end.
    pub fn push(&self, octets: &[u8]) {
        lock(&self.0).inward.extend_from_slice(octets);
    }

    /// Takes up to `max` octets that the near end has written.
    pub fn take(&self, max: usize) -> BytesMut {
        let mut shared = lock(&self.0);
        let n = shared.outward.len().min(max);
        shared.outward.split_to(n)
    }

    /// Octets that were brought and not read yet.
    pub fn unread(&self) -> usize {
        lock(&self.0).inward.len()
    }

    /// Octets that can be taken.
    pub fn untaken(&self) -> usize {
        lock(&self.0).outward.len()
    }

    /// Ends the far side in good order: after what was brought comes the end.
    pub fn end(&self) {
        lock(&self.0).far_ended = true;
    }

    /// Cuts the connection: what is under way is lost.
    pub fn cut(&self) {
        let mut shared = lock(&self.0);
        shared.is_cut = true;
        shared.inward.clear();
        shared.outward.clear();
    }

    /// Whether a read of the near end would bring octets, the end or an error.
    pub fn is_readable(&self) -> bool {
        let shared = lock(&self.0);
        shared.is_cut || shared.far_ended || !shared.inward.is_empty()
    }

    /// Whether a write of the near end would take octets or fail.
    pub fn is_writable(&self) -> bool {
        let shared = lock(&self.0);
        shared.is_cut || shared.outward.len() < shared.capacity
    }

    /// Whether the near end is gone; what it wrote before can still be taken.
    pub fn is_left(&self) -> bool {
        lock(&self.0).near_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn a_pipe_blocks_ends_and_breaks_as_a_socket_does() {
        let (near, far) = pipe(3);
        let mut read = BytesMut::new();
        let blocked = Err(io::ErrorKind::WouldBlock);
        let kind = |result: io::Result<usize>| result.map_err(|error| error.kind());
        assert_eq!(kind(near.try_read(&mut read, 9)), blocked);
        assert_eq!(kind(near.try_write(&[IoSlice::new(b"ab"), IoSlice::new(b"cd")])), Ok(3));
        assert_eq!(kind(near.try_write(&[IoSlice::new(b"d")])), blocked);
        assert_eq!(&far.take(2)[..], b"ab");
        assert_eq!(kind(near.try_write(&[IoSlice::new(b"de")])), Ok(2));
        far.push(b"12345");
        far.end();
        assert_eq!(kind(near.try_read(&mut read, 4)), Ok(4));
        assert_eq!(kind(near.try_read(&mut read, 4)), Ok(1));
        assert_eq!(kind(near.try_read(&mut read, 4)), Ok(0));
        assert_eq!(&read[..], b"12345");
        far.cut();
        assert_eq!(kind(near.try_read(&mut read, 4)), Err(io::ErrorKind::ConnectionReset));
        assert_eq!(kind(near.try_write(&[IoSlice::new(b"f")])), Err(io::ErrorKind::BrokenPipe));
        drop(near);
        assert!(far.is_left() && far.take(9).is_empty());
    }

    #[test]
    fn a_clock_that_is_held_moves_by_hand_on_its_thread_only() {
        let at = Instant::from_nanos(17);
        hold_clock(Some(at));
        assert_eq!(Clock.now(), at);
        assert_eq!(crate::clock_domain().wall_offset_ns, 0);
        std::thread::spawn(move || assert!(Clock.now() > at)).join().unwrap();
        hold_clock(None);
        assert!(Clock.now() > at);
    }
}
