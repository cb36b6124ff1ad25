use crate::append::{Appender, HEADER_OCTETS, STAMP_OCTETS, new_timeline};
use crate::node::NODE_TYPE;
use crate::{Instant, Reserved, Stamp, Timeline};

impl Timeline {
    /// The octets of this timeline.
    ///
    /// What [`parse`](Timeline::parse) read comes out again, octet for octet if this crate wrote
    /// it; names that were no UTF-8 come out as they were read, which is longer. Of a timeline put
    /// together by hand, what exceeds the limits or could not be read again is dropped, and the
    /// header says so.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_OCTETS + self.stamps.len() * STAMP_OCTETS);
        new_timeline(self.id, &mut out);
        if let Some(appender) = Appender::new(&mut out, 0) {
            let reserved = &self.reserved;
            let encoder = Encoder { timeline: self, appender, nodes: 0, current: None, reserved };
            encoder.run();
        }
        out
    }
}

/// Puts nodes, stamps and reserved records back into the order in which they were written.
struct Encoder<'a> {
    timeline: &'a Timeline,
    appender: Appender<'a>,
    /// How many of the nodes are written.
    nodes: usize,
    /// The node whose record was written last.
    current: Option<usize>,
    /// The records that are still to be written.
    reserved: &'a [Reserved],
}

impl Encoder<'_> {
    fn run(mut self) {
        for (index, stamp) in self.timeline.stamps.iter().enumerate() {
            self.put_nodes_until(stamp.node, index);
            self.put_reserved(index);
            self.put_stamp(stamp);
        }
        let end = self.timeline.stamps.len();
        self.put_nodes_until(usize::MAX, end);
        self.nodes = usize::MAX;
        self.put_reserved(usize::MAX);
        // The mark comes last: a marked timeline takes no more records.
        if self.timeline.overflow || self.timeline.dropped > 0 {
            self.appender.count_dropped(self.timeline.dropped);
        }
    }

    /// Writes the nodes up to and including `last` that are not written yet.
    fn put_nodes_until(&mut self, last: usize, stamps: usize) {
        let nodes = self.timeline.nodes.iter().enumerate();
        for (index, node) in nodes.skip(self.nodes).take_while(|(index, _)| *index <= last) {
            self.put_reserved(stamps);
            self.appender.node(&node.record());
            self.nodes = index + 1;
            self.current = Some(index);
        }
    }

    /// Writes the reserved records that stand before the next node or stamp.
    fn put_reserved(&mut self, stamps: usize) {
        let nodes = self.nodes;
        let is_due = |r: &Reserved| r.nodes_before <= nodes && r.stamps_before <= stamps;
        while let Some((next, rest)) = self.reserved.split_first().filter(|(r, _)| is_due(r)) {
            self.reserved = rest;
            self.appender.reserved(next.kind, &next.content);
        }
    }

    fn put_stamp(&mut self, stamp: &Stamp) {
        let Some(node) = self.timeline.nodes.get(stamp.node) else {
            return self.appender.count_dropped(1);
        };
        if self.current != Some(stamp.node) {
            self.appender.node(&node.record());
            self.current = Some(stamp.node);
        }
        if (1..NODE_TYPE).contains(&stamp.stage) {
            let at = stamp.at.unwrap_or(Instant::UNFILLED);
            self.appender.stamp_code(stamp.stage, stamp.detail, at);
        } else {
            self.appender.count_dropped(1);
        }
    }
}
