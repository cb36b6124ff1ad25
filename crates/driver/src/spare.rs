//! The buffer that the connections of a thread read into in turn: one that is idle needs none.

use bytes::BytesMut;
use std::cell::Cell;

/// A buffer that has grown beyond this is given back to the system.
const KEEP_MAX: usize = 1 << 20;

thread_local! {
    static SPARE: Cell<BytesMut> = Cell::default();
}

/// Before a read: who has nothing unread gets what the last one has left of the buffer.
pub(crate) fn lend(buffer: &mut BytesMut) {
    if buffer.capacity() == 0 {
        *buffer = SPARE.take();
    }
}

/// After a turn: who has nothing unread needs no buffer.
pub(crate) fn take_back(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > 0 {
        let spare = std::mem::take(buffer);
        if spare.capacity() <= KEEP_MAX {
            SPARE.set(spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_from_one_to_the_next_unless_something_is_unread() {
        let (mut a, mut b) = (BytesMut::new(), BytesMut::new());
        a.reserve(1000);
        let place = a.as_ptr();
        take_back(&mut a);
        assert_eq!(a.capacity(), 0);
        lend(&mut b);
        assert_eq!(b.as_ptr(), place);
        b.extend_from_slice(b"unread");
        take_back(&mut b);
        assert_eq!(&b[..], b"unread");
        lend(&mut a);
        assert_eq!(a.capacity(), 0, "there is no other");
    }

    #[test]
    fn one_that_has_grown_is_not_kept() {
        let mut buffer = BytesMut::with_capacity(KEEP_MAX + 1);
        take_back(&mut buffer);
        lend(&mut buffer);
        assert_eq!(buffer.capacity(), 0);
    }
}
