use std::fs;

use hopline_timeline::{ClockDomain, ClockKind, Instant, Node};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

const NS_PER_S: i64 = 1_000_000_000;

/// Readings of which the best is kept: with five, one that no interrupt fell into is among them.
const SANDWICHES: usize = 5;

/// The host's `CLOCK_MONOTONIC`.
///
/// A reading costs some 25 ns and no system call. All processes of a host read the same clock, so
/// their stamps can be subtracted.
#[derive(Copy, Clone, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The least difference of two readings in ns; `None` if it is a second or more.
    pub fn resolution_ns(self) -> Option<u32> {
        let resolution = clock_getres(ClockId::Monotonic);
        u32::try_from(resolution.tv_nsec).ok().filter(|_| resolution.tv_sec == 0)
    }

    /// The present instant.
    pub fn now(self) -> Instant {
        #[cfg(feature = "simulation")]
        if let Some(held) = crate::simulation::held() {
            return held;
        }
        Instant::from_nanos(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }
}

/// The node that stamps as `name` on [`Clock`], with the clock's present offset and error.
pub fn node(name: impl Into<String>) -> Node {
    Node::new(name, clock_domain())
}

/// What a reader elsewhere must know of [`Clock`] to set its stamps in relation to others.
///
/// Takes some microseconds: call it once per process or connection. The error bound is the
/// kernel's own estimate plus half the width of our reading; it is
/// [`ClockDomain::UNSYNCHRONISED`] where no time service disciplines the clock, or the system
/// can't say. The host is all zero, which compares equal to no other, where there is no boot id
/// (systems other than Linux) or the clock is shifted for this process by a time namespace.
pub fn clock_domain() -> ClockDomain {
    #[cfg(feature = "simulation")]
    if crate::simulation::held().is_some() {
        return ClockDomain::default();
    }
    let (wall_offset_ns, width_ns) = wall_offset(SANDWICHES);
    ClockDomain {
        kind: ClockKind::Monotonic,
        host: host().unwrap_or_default(),
        wall_offset_ns,
        error_bound_ns: wall_error_ns()
            .map_or(ClockDomain::UNSYNCHRONISED, |error| error.saturating_add(width_ns / 2)),
    }
}

/// Realtime minus monotonic in ns, and the width of the reading that it comes from, the best of so
/// many.
///
/// The realtime clock is read between two readings of the monotonic one, so that the truth lies
/// within half the width.
pub(crate) fn wall_offset(readings: usize) -> (i64, u64) {
    let sandwich = |_| {
        let before = Clock.now();
        let wall_ns = nanoseconds(clock_gettime(ClockId::Realtime));
        let width_ns = Clock.now().since_ns(before);
        let middle_ns = before.as_nanos().saturating_add(width_ns / 2);
        (wall_ns.saturating_sub(middle_ns), width_ns.unsigned_abs())
    };
    (0..readings).map(sandwich).min_by_key(|&(_, width_ns)| width_ns).unwrap_or_default()
}

/// Saturates in the year 2262.
fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(NS_PER_S).saturating_add(time.tv_nsec)
}

#[cfg(target_os = "linux")]
fn wall_error_ns() -> Option<u64> {
    crate::kernel::wall_error_ns()
}

#[cfg(not(target_os = "linux"))]
fn wall_error_ns() -> Option<u64> {
    None
}

fn host() -> Option<[u8; 16]> {
    // Absent before Linux 5.6, which has no time namespaces either.
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    if is_shifted(&offsets) {
        return None;
    }
    parse_boot_id(&fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
}

/// Lines of `clock seconds nanoseconds`, see time_namespaces(7).
fn is_shifted(timens_offsets: &str) -> bool {
    let monotonic = timens_offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    monotonic.is_some_and(|offset| offset.split_whitespace().any(|part| part != "0"))
}

fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let digits = text.trim().replace('-', "");
    let all_hex = digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    all_hex.then(|| u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_forwards() {
        let first = Clock.now();
        assert!(first.as_nanos() > 0);
        assert!(Clock.now() >= first);
    }

    #[test]
    fn the_offset_leads_to_the_time_of_day() {
        let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64;
        let ours = Clock.now().as_nanos() + clock_domain().wall_offset_ns;
        assert!((ours - since_1970).abs() < NS_PER_S, "{ours} is far from {since_1970}");
    }

    #[test]
    fn two_readings_tell_the_same_clock() {
        let (one, two) = (clock_domain(), clock_domain());
        assert_eq!((one.kind, one.host), (two.kind, two.host));
        assert!((one.wall_offset_ns - two.wall_offset_ns).abs() < NS_PER_S);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_host_is_the_boot_id() {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let hex: String = clock_domain().host.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, text.trim().replace('-', ""));
    }

    #[test]
    fn a_boot_id_is_32_digits_or_none() {
        let id = parse_boot_id("00000000-0000-0000-0000-0000000001ff\n").unwrap();
        assert_eq!(id[14..], [0x01, 0xff]);
        for text in ["", "\n", "+0000000000000000000000000000001", "bc7318ed", "g", &"é".repeat(16)]
        {
            assert_eq!(parse_boot_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_time_namespace_is_noticed() {
        assert!(!is_shifted(""));
        assert!(!is_shifted("monotonic           0         0\nboottime            7         0\n"));
        assert!(is_shifted("monotonic       86400         0\nboottime            0         0\n"));
        assert!(is_shifted("monotonic           0         1\n"));
        assert!(is_shifted("monotonic          -3         0\n"));
    }

    #[test]
    fn a_node_has_a_name_and_this_clock() {
        let node = node("broker-1");
        assert_eq!(node.name, "broker-1");
        assert_eq!(node.clock.host, clock_domain().host);
    }
}
