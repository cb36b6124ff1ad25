//! One read: how much it may bring, and what a short one tells.

use bytes::BytesMut;
use std::io;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Octets that one read may bring of small frames, and of frames of which these would be few.
const READ_MAX: usize = 64 << 10;
const READ_LARGE_MAX: usize = 256 << 10;

/// Frames as large as the one that has begun to come, that one read is to bring: what has come of
/// the last of them moves to the next buffer, so more of them are less to move for each.
const FRAMES: usize = 4;

/// Makes room for the next read, and tells how many octets it may bring. `ahead`: octets of the
/// frame at the start of `buf`, if that is known.
///
/// Grows `buf` only if there is too little room for the rest of the frame, or for half of a usual
/// read: what a small read leaves free serves the next one, so that whoever keeps slices of small
/// reads does not keep a buffer for each.
pub(crate) fn make_room(buf: &mut BytesMut, ahead: usize) -> usize {
    let max = (FRAMES * ahead).clamp(READ_MAX, READ_LARGE_MAX).max(ahead);
    let least = (READ_MAX / 2).max(ahead.saturating_sub(buf.len()));
    if buf.capacity() - buf.len() < least {
        buf.reserve(max);
    }
    max
}

/// Appends to `buf` what `read` finds in the socket, which it asks for at most `max` octets and no
/// more than there is room for. Less than that is all there is (epoll(7), "Questions and answers",
/// 9), so the socket is waited for without one more read that finds nothing.
pub(crate) fn read_once(
    socket: &TcpStream,
    buf: &mut BytesMut,
    max: usize,
    read: impl FnOnce(&mut BytesMut) -> io::Result<usize>,
) -> io::Result<usize> {
    let asked = (buf.capacity() - buf.len()).min(max);
    let mut short = None;
    let whole = socket.try_io(Interest::READABLE, || match read(buf)? {
        n if (1..asked).contains(&n) => {
            short = Some(n);
            Err(io::ErrorKind::WouldBlock.into())
        }
        n => Ok(n),
    });
    short.map_or(whole, Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_read_brings_the_rest_of_a_frame_and_some_more_if_frames_are_large() {
        let sizes = [0, 100, 20_000, 65_000, 131_072, 1 << 20];
        let most = sizes.map(|ahead| make_room(&mut BytesMut::new(), ahead));
        assert_eq!(most, [READ_MAX, READ_MAX, 80_000, 260_000, READ_LARGE_MAX, 1 << 20]);
        for ahead in sizes {
            let mut buf = BytesMut::from(&[0; 100][..]);
            make_room(&mut buf, ahead);
            assert!(buf.capacity() >= ahead.max(READ_MAX / 2), "{ahead}: {}", buf.capacity());
        }
    }

    #[test]
    fn what_a_small_read_leaves_free_serves_the_next_one() {
        let mut buf = BytesMut::new();
        make_room(&mut buf, 0);
        let (place, room) = (buf.as_ptr(), buf.capacity());
        buf.extend_from_slice(&[0; 1000]);
        let kept = buf.split().freeze();
        make_room(&mut buf, 0);
        assert_eq!((buf.as_ptr(), buf.capacity()), (place.wrapping_add(1000), room - 1000));
        drop(kept);
    }

    #[tokio::test]
    async fn a_short_read_waits_for_more_and_misses_nothing() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let far =
            TcpStream::connect(listener.local_addr().expect("one")).await.expect("it listens");
        let (near, _) = listener.accept().await.expect("it connects");
        let mut buf = BytesMut::with_capacity(64);
        for (sent, max, found) in [(5, 64, &[5][..]), (8, 4, &[4, 4]), (3, 64, &[3])] {
            far.writable().await.expect("open");
            assert_eq!(far.try_write(&[7; 8][..sent]).expect("room"), sent);
            for octets in found {
                near.readable().await.expect("open");
                let read = read_once(&near, &mut buf, max, |buf| {
                    near.try_read_buf(&mut bytes::BufMut::limit(buf, max))
                });
                assert_eq!(read.expect("octets"), *octets);
            }
            // Only what was short is known to be all.
            let waits = tokio::time::timeout(std::time::Duration::ZERO, near.readable()).await;
            assert_eq!(waits.is_err(), found.iter().any(|octets| *octets < max), "{sent}");
            buf.clear();
        }
        drop(far);
        near.readable().await.expect("told of the end");
        let end = read_once(&near, &mut buf, 64, |buf| near.try_read_buf(buf));
        assert_eq!(end.expect("the end"), 0);
    }
}
