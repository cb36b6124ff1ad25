use std::fmt;

use crate::{ClockOffset, Instant, TimelineError};

/// The longest name of a node in octets; longer ones are cut between two characters.
pub const MAX_NAME_OCTETS: usize = 64;

/// The type octet of a node record.
pub(crate) const NODE_TYPE: u8 = 0x80;

/// Octets of a node record between its length octet and the name.
const FIXED_OCTETS: usize = 1 + 16 + 8 + 8;

/// Who stamps, and on which clock.
#[derive(Clone, Eq, PartialEq, Hash, Debug, Default)]
pub struct Node {
    /// The container-id or another name that means something to a reader. On its way into a
    /// timeline it is cut to [`MAX_NAME_OCTETS`], and control characters become U+FFFD.
    pub name: String,
    /// The clock that the node's stamps are read from.
    pub clock: ClockDomain,
}

/// A clock: stamps of equal [`kind`](Self::kind) and [`host`](Self::host) can be subtracted.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct ClockDomain {
    /// Which of the host's clocks.
    pub kind: ClockKind,
    /// The host's boot id, since a monotonic clock begins anew at each boot. All zero: unknown,
    /// and then equal to no other host.
    pub host: [u8; 16],
    /// Realtime minus this clock, in ns, when the node record was made; 0 for a realtime clock.
    pub wall_offset_ns: i64,
    /// The kernel's own bound of the error of its realtime clock, in ns;
    /// [`UNSYNCHRONISED`](Self::UNSYNCHRONISED) if it claims none.
    pub error_bound_ns: u64,
}

/// Which of a host's clocks a node reads.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub enum ClockKind {
    /// `CLOCK_MONOTONIC`, code 1: ns since about the boot; never set back.
    Monotonic,
    /// `CLOCK_REALTIME`, code 2: ns since 1970-01-01T00:00:00Z; can be set back.
    Realtime,
    /// A code that this version does not know (never 1 or 2: see [`from_code`](Self::from_code)).
    Other(u8),
}

impl Node {
    /// A node with this name and clock.
    pub fn new(name: impl Into<String>, clock: ClockDomain) -> Self {
        Node { name: name.into(), clock }
    }

    /// The encoded node record: made once per process or connection, then appended as it is.
    pub fn record(&self) -> Vec<u8> {
        let name = clean_name(&self.name);
        let length = FIXED_OCTETS + name.len();
        let mut out = Vec::with_capacity(2 + length);
        out.push(NODE_TYPE);
        // 33 + 64 octets at most.
        out.push(length as u8);
        out.push(self.clock.kind.code());
        out.extend_from_slice(&self.clock.host);
        out.extend_from_slice(&self.clock.wall_offset_ns.to_be_bytes());
        out.extend_from_slice(&self.clock.error_bound_ns.to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        out
    }

    /// Reads what follows the length octet of the node record at `offset`.
    pub(crate) fn parse(content: &[u8], offset: usize) -> Result<Node, TimelineError> {
        Self::split(content).ok_or(TimelineError::ShortNode { offset })
    }

    fn split(content: &[u8]) -> Option<Node> {
        let (kind, rest) = content.split_first()?;
        let (host, rest) = rest.split_first_chunk()?;
        let (wall_offset, rest) = rest.split_first_chunk()?;
        let (error_bound, name) = rest.split_first_chunk()?;
        let clock = ClockDomain {
            kind: ClockKind::from_code(*kind),
            host: *host,
            wall_offset_ns: i64::from_be_bytes(*wall_offset),
            error_bound_ns: u64::from_be_bytes(*error_bound),
        };
        Some(Node { name: clean_name(&String::from_utf8_lossy(name)), clock })
    }

    /// Whether both are the same node on the same clock, whenever their records were made.
    pub(crate) fn is_same_as(&self, other: &Node) -> bool {
        self.name == other.name && self.clock.is_same_as(&other.clock)
    }
}

impl ClockDomain {
    /// The error bound of a clock that nothing keeps right.
    pub const UNSYNCHRONISED: u64 = u64::MAX;

    /// The [`host`](Self::host) of a clock whose host is not known.
    pub const UNKNOWN_HOST: [u8; 16] = [0; 16];

    /// Whether instants of both can be subtracted without any error.
    pub fn is_same_as(&self, other: &ClockDomain) -> bool {
        self.host != Self::UNKNOWN_HOST && self.host == other.host && self.kind == other.kind
    }

    /// The wall-clock time of an instant of this clock, in ns since 1970-01-01T00:00:00Z. `None`
    /// for an unknown kind of clock and beyond the range of `i64`.
    pub fn wall_ns(&self, at: Instant) -> Option<i64> {
        match self.kind {
            ClockKind::Monotonic => at.as_nanos().checked_add(self.wall_offset_ns),
            ClockKind::Realtime => Some(at.as_nanos()),
            ClockKind::Other(_) => None,
        }
    }

    /// How far this clock is ahead of another one, going by the wall clocks of both hosts. `None`
    /// where one of them claims no bound of its error, or its kind of clock is not known.
    pub(crate) fn ahead_by_walls(&self, other: &ClockDomain) -> Option<ClockOffset> {
        let epoch = Instant::from_nanos(0);
        let (ours, theirs) = (self.wall_ns(epoch)?, other.wall_ns(epoch)?);
        let bounds = [self, other].map(|clock| clock.error_bound_ns);
        let [a, b] = bounds;
        if bounds.contains(&Self::UNSYNCHRONISED) {
            return None;
        }
        let ahead_ns = theirs.checked_sub(ours)?;
        Some(ClockOffset { ahead_ns, error_bound_ns: a.checked_add(b)? })
    }
}

impl Default for ClockDomain {
    /// A monotonic clock of which nothing more is known.
    fn default() -> Self {
        ClockDomain {
            kind: ClockKind::Monotonic,
            host: Self::UNKNOWN_HOST,
            wall_offset_ns: 0,
            error_bound_ns: Self::UNSYNCHRONISED,
        }
    }
}

impl ClockKind {
    /// The octet in a node record.
    pub fn code(self) -> u8 {
        match self {
            ClockKind::Monotonic => 1,
            ClockKind::Realtime => 2,
            ClockKind::Other(code) => code,
        }
    }

    /// The kind of an octet in a node record.
    pub fn from_code(code: u8) -> ClockKind {
        match code {
            1 => ClockKind::Monotonic,
            2 => ClockKind::Realtime,
            other => ClockKind::Other(other),
        }
    }

    /// The kind that [`Display`](fmt::Display) shows by this name.
    pub fn from_name(name: &str) -> Option<ClockKind> {
        match name {
            "monotonic" => Some(ClockKind::Monotonic),
            "realtime" => Some(ClockKind::Realtime),
            other => other.strip_prefix('#')?.parse().ok().map(Self::from_code),
        }
    }
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockKind::Monotonic => f.write_str("monotonic"),
            ClockKind::Realtime => f.write_str("realtime"),
            ClockKind::Other(code) => write!(f, "#{code}"),
        }
    }
}

/// A name as a timeline carries it: within the limit, and harmless to a terminal.
pub fn clean_name(name: &str) -> String {
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut clean: String = name.chars().take(MAX_NAME_OCTETS).map(printable).collect();
    clean.truncate(clean.floor_char_boundary(MAX_NAME_OCTETS));
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instant;

    const CLOCK: ClockDomain = ClockDomain {
        kind: ClockKind::Monotonic,
        host: [0x11; 16],
        wall_offset_ns: -2,
        error_bound_ns: 3,
    };

    #[test]
    fn a_record_lies_as_documented() {
        let record = Node::new("pub", CLOCK).record();
        let mut expected = vec![0x80, 36, 1];
        expected.extend([0x11; 16]);
        expected.extend((-2_i64).to_be_bytes());
        expected.extend(3_u64.to_be_bytes());
        expected.extend(*b"pub");
        assert_eq!(record, expected);
        assert_eq!(Node::parse(&record[2..], 0), Ok(Node::new("pub", CLOCK)));
    }

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        for (name, expected) in [
            ("x".repeat(65), "x".repeat(64)),
            (format!("x{}", "é".repeat(40)), format!("x{}", "é".repeat(31))),
            ("\u{1f980}".repeat(1_000), "\u{1f980}".repeat(16)),
            (String::new(), String::new()),
        ] {
            let record = Node::new(name, CLOCK).record();
            assert_eq!(Node::parse(&record[2..], 0).unwrap().name, expected);
        }
    }

    #[test]
    fn a_name_cannot_steer_a_terminal() {
        let hostile = Node::new("a\u{1b}[2J\u{9b}\n", CLOCK).record();
        let read = Node::parse(&hostile[2..], 0).unwrap();
        assert_eq!(read.name, "a\u{fffd}[2J\u{fffd}\u{fffd}");
        let mut raw = hostile[2..35].to_vec();
        raw.extend(b"b\xff\x07");
        assert_eq!(Node::parse(&raw, 0).unwrap().name, "b\u{fffd}\u{fffd}");
    }

    #[test]
    fn the_longest_record_of_another_writer_is_read() {
        let mut raw = Node::new("", CLOCK).record()[2..].to_vec();
        raw.resize(255, b'n');
        assert_eq!(Node::parse(&raw, 0).unwrap().name, "n".repeat(64));
    }

    #[test]
    fn a_record_without_its_fixed_fields_is_refused() {
        let record = Node::new("", CLOCK).record();
        for length in 0..33 {
            let error = Node::parse(&record[2..2 + length], 40);
            assert_eq!(error, Err(TimelineError::ShortNode { offset: 40 }));
        }
    }

    #[test]
    fn clocks_are_one_only_where_host_and_kind_are_known_to_be() {
        let realtime = ClockDomain { kind: ClockKind::Realtime, ..CLOCK };
        let later = ClockDomain { wall_offset_ns: 9, error_bound_ns: 9, ..CLOCK };
        let elsewhere = ClockDomain { host: [0x12; 16], ..CLOCK };
        assert!(CLOCK.is_same_as(&later));
        assert!(!CLOCK.is_same_as(&realtime));
        assert!(!CLOCK.is_same_as(&elsewhere));
        assert!(!ClockDomain::default().is_same_as(&ClockDomain::default()), "host unknown");
    }

    #[test]
    fn wall_time_is_known_for_known_kinds_within_range() {
        let at = Instant::from_nanos(10);
        let of = |kind| ClockDomain { kind, ..CLOCK }.wall_ns(at);
        assert_eq!(of(ClockKind::Monotonic), Some(8));
        assert_eq!(of(ClockKind::Realtime), Some(10));
        assert_eq!(of(ClockKind::Other(3)), None);
        assert_eq!(CLOCK.wall_ns(Instant::UNFILLED), None);
    }

    #[test]
    fn kinds_of_clock_lead_back_from_code_and_name() {
        for code in 0..=u8::MAX {
            let kind = ClockKind::from_code(code);
            assert_eq!(kind.code(), code);
            assert_eq!(ClockKind::from_name(&kind.to_string()), Some(kind));
        }
        assert_eq!(ClockKind::Other(3).to_string(), "#3");
        assert_eq!(ClockKind::from_name("tai"), None);
        assert_eq!(ClockKind::from_name("#256"), None);
    }
}
