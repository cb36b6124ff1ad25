//! The kernel's opinion of its own clock.
#![allow(unsafe_code, reason = "adjtimex has no safe wrapper")]

use std::mem;

/// The kernel's bound of the error of `CLOCK_REALTIME` in ns; `None` if the clock is not
/// synchronised or the kernel doesn't tell (adjtimex(2)).
pub(crate) fn wall_error_ns() -> Option<u64> {
    // SAFETY: `timex` is a C structure of integers, for which all zeroes is a valid value.
    let mut timex: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: the pointer is to a live `timex` of our own. With `modes` zero the call only
    // reads the clock's state into it, which needs no privilege.
    let state = unsafe { libc::adjtimex(&mut timex) };
    let synchronised =
        state >= 0 && state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0;
    // `maxerror` is in microseconds, whatever the unit of the other fields.
    synchronised.then(|| u64::try_from(timex.maxerror).ok()?.checked_mul(1_000))?
}
