//! A connection's counts in words.

use std::fmt;

use super::{ConnectionRecord, HeldRecord, TcpRecord, WaitedRecord};

/// Some lines for people: what passed, and what each message cost.
impl fmt::Display for ConnectionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (io, frames) = (&self.io, &self.frames);
        writeln!(f, "connection {} to {}", self.local, self.peer)?;
        writeln!(
            f,
            "  writes {}: {} octets, {} frames and {} transfers each, {} short; reads {}: {} \
             octets each",
            io.writes,
            Per(io.octets_written, io.writes),
            Per(self.frames_out(), io.writes),
            Per(frames.transfers_out, io.writes),
            io.short_writes,
            io.reads,
            Per(io.octets_read, io.reads),
        )?;
        let transfers = frames.transfers_in.saturating_add(frames.transfers_out);
        let rate = |count: u64| Per(count.saturating_mul(1_000), transfers);
        writeln!(
            f,
            "  transfers out {} in {}; to 1,000 of them flows out {} in {}, dispositions out {} \
             in {}",
            frames.transfers_out,
            frames.transfers_in,
            rate(frames.flows_out),
            rate(frames.flows_in),
            rate(frames.dispositions_out),
            rate(frames.dispositions_in),
        )?;
        let ms = |ns: u64| ns as f64 / 1e6;
        let WaitedRecord { no_credit_ns, no_window_ns } = self.waited;
        writeln!(
            f,
            "  without credit for {:.3} ms, without session window for {:.3} ms",
            ms(no_credit_ns),
            ms(no_window_ns)
        )?;
        write!(f, "  the kernel held octets back: {}", self.held)?;
        match &self.tcp {
            Some(tcp) => write!(f, "\n  {}", Tcp(tcp, frames.transfers_out)),
            None => Ok(()),
        }
    }
}

impl ConnectionRecord {
    fn frames_out(&self) -> u64 {
        let frames = &self.frames;
        frames
            .transfers_out
            .saturating_add(frames.flows_out)
            .saturating_add(frames.dispositions_out)
    }
}

impl fmt::Display for HeldRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.nagle, "Nagle"),
            (self.cork, "cork"),
            (self.receive_window, "receive window"),
            (self.congestion, "congestion window or pacing"),
            (self.unknown, "unknown reason"),
        ];
        let mut separator = "";
        for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} times by {reason}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("never") } else { Ok(()) }
    }
}

/// TCP's account, and how many transfers it carried.
struct Tcp<'a>(&'a TcpRecord, u64);

impl fmt::Display for Tcp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tcp(tcp, transfers) = self;
        write!(f, "TCP: retransmits {}, round trip {} us", tcp.retransmits, tcp.rtt_us)?;
        if let Some(us) = tcp.min_rtt_us {
            write!(f, " (least {us})")?;
        }
        if let (Some(out), Some(data_in), Some(all_in)) =
            (tcp.data_segments_out, tcp.data_segments_in, tcp.segments_in)
        {
            let each = Per(out.into(), *transfers);
            let acks = all_in.saturating_sub(data_in);
            write!(f, ", data segments out {out} ({each} a transfer) in {data_in}, ")?;
            write!(f, "pure ACKs in {acks}")?;
        }
        if let (Some(limited), Some(busy)) = (tcp.window_limited_us, tcp.busy_us) {
            write!(f, ", busy {busy} us, of these {limited} for want of window")?;
            if let Some(limited) = tcp.send_buffer_limited_us {
                write!(f, " and {limited} of send buffer")?;
            }
        }
        match tcp.unsent_octets {
            Some(octets) if octets > 0 => write!(f, ", unsent {octets} octets"),
            _ => Ok(()),
        }
    }
}

/// A ratio with one decimal; `-` where there is nothing to divide by.
struct Per(u64, u64);

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Per(_, 0) => f.write_str("-"),
            Per(count, all) => write!(f, "{:.1}", *count as f64 / *all as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{FramesRecord, IoRecord};

    #[test]
    fn a_connection_in_words() {
        let mut record = ConnectionRecord {
            local: "a:1".into(),
            peer: "b:2".into(),
            io: IoRecord {
                reads: 4,
                octets_read: 10,
                writes: 10,
                octets_written: 25,
                short_writes: 1,
            },
            frames: FramesRecord { transfers_out: 20, dispositions_in: 5, ..Default::default() },
            waited: WaitedRecord { no_credit_ns: 1_500_000, no_window_ns: 0 },
            held: HeldRecord { nagle: 3, congestion: 1, ..Default::default() },
            ..ConnectionRecord::default()
        };
        assert_eq!(
            record.to_string(),
            "connection a:1 to b:2\n  writes 10: 2.5 octets, 2.0 frames and 2.0 transfers each, \
             1 short; reads 4: 2.5 octets each\n  transfers out 20 in 0; to 1,000 of them flows \
             out 0.0 in 0.0, dispositions out 0.0 in 250.0\n  without credit for 1.500 ms, without \
             session window for 0.000 ms\n  the kernel held octets back: 3 times by Nagle, 1 times \
             by congestion window or pacing"
        );
        record.tcp = Some(TcpRecord {
            rtt_us: 40,
            data_segments_out: Some(22),
            data_segments_in: Some(3),
            segments_in: Some(9),
            ..TcpRecord::default()
        });
        let text = record.to_string();
        let tcp = "\n  TCP: retransmits 0, round trip 40 us, data segments out 22 (1.1 a \
                   transfer) in 3, pure ACKs in 6";
        assert!(text.ends_with(tcp), "{text}");
        let idle = ConnectionRecord::default().to_string();
        assert!(idle.contains("writes 0: - octets") && idle.ends_with("back: never"), "{idle}");
    }
}
