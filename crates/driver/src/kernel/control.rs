//! Control messages of recvmsg(2).
#![allow(unsafe_code, reason = "no safe wrapper decodes what SO_TIMESTAMPING tells")]

/// Octets for control messages: a timestamp and an extended error with an address take 128.
const ROOM: usize = 256;

/// Room for control messages, aligned as they have to be.
#[repr(C, align(8))]
pub(super) struct Control([u8; ROOM]);

impl Default for Control {
    fn default() -> Self {
        Control([0; ROOM])
    }
}

/// One control message: level, type and content.
pub(super) struct Message<'a> {
    level: i32,
    kind: i32,
    content: &'a [u8],
}

impl Control {
    /// Lets the next recvmsg write here.
    pub(super) fn lend(&mut self, message: &mut libc::msghdr) {
        message.msg_control = self.0.as_mut_ptr().cast();
        message.msg_controllen = ROOM as _;
    }

    /// The messages that a recvmsg left here.
    #[allow(clippy::unnecessary_cast, reason = "other C libraries have other integers here")]
    pub(super) fn messages<'a>(
        &'a self,
        header: &libc::msghdr,
    ) -> impl Iterator<Item = Message<'a>> + use<'a> {
        let mut rest = self.0.get(..header.msg_controllen as usize).unwrap_or_default();
        std::iter::from_fn(move || {
            let head = read::<libc::cmsghdr>(rest)?;
            let len = head.cmsg_len as usize;
            let content = rest.get(size_of::<libc::cmsghdr>()..len)?;
            let aligned = len.next_multiple_of(size_of::<usize>());
            rest = rest.get(aligned..).unwrap_or_default();
            Some(Message { level: head.cmsg_level, kind: head.cmsg_type, content })
        })
    }
}

impl Message<'_> {
    /// The software timestamp of an SCM_TIMESTAMPING message: the first of its three.
    pub(super) fn timestamp(&self) -> Option<libc::timespec> {
        let is_it = (self.level, self.kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
        if is_it { read(self.content) } else { None }
    }

    /// What else the error queue tells of a packet.
    pub(super) fn extended_error(&self) -> Option<libc::sock_extended_err> {
        let is_it = matches!(
            (self.level, self.kind),
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
        );
        if is_it { read(self.content) } else { None }
    }
}

/// A C structure of integers.
trait Integers: Copy {}
impl Integers for libc::cmsghdr {}
impl Integers for libc::sock_extended_err {}
impl Integers for libc::timespec {}

/// The structure at the start of `octets`; `None`: they are too few.
fn read<T: Integers>(octets: &[u8]) -> Option<T> {
    let octets = octets.get(..size_of::<T>())?;
    // SAFETY: there are as many octets as `T` has, the read needs no alignment, and any octets
    // make a valid structure of integers.
    Some(unsafe { octets.as_ptr().cast::<T>().read_unaligned() })
}

/// Nanoseconds since 1970; `None`: the stamp was not taken, or is beyond the year 2262.
pub(super) fn nanoseconds(time: libc::timespec) -> Option<i64> {
    let ns = time.tv_sec.checked_mul(1_000_000_000)?.checked_add(time.tv_nsec)?;
    (ns != 0).then_some(ns)
}
