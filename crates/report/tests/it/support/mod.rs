//! Messages from a publisher by way of a broker to a subscriber, made late on purpose.

use hopline_timeline::record::{MessageInfo, MessageRecord, Record};
use hopline_timeline::{ClockDomain, Instant, Node, Stage, Stamp, Timeline, TimelineId, Wait};

pub(crate) const US: i64 = 1_000;
pub(crate) const MS: i64 = 1_000_000;

/// The time between two messages.
const PERIOD: i64 = 10 * MS;

/// A node, its stage, and the ns since the stamp before.
type Step = (usize, &'static str, i64, Wait);

const PUB: usize = 0;
const BROKER: usize = 1;
const SUB: usize = 2;

/// One message. Where a stage occurs at several nodes, the last one is meant, but SEND at the
/// first.
#[derive(Clone)]
pub(crate) struct Chain {
    steps: Vec<Step>,
    octets: u64,
    due_before: i64,
    later: i64,
}

impl Default for Chain {
    fn default() -> Self {
        let none = Wait::None;
        let steps = vec![
            (PUB, "CREATE", 0, none),
            (PUB, "SEND", 6 * US, none),
            (BROKER, "RECEIVE", 20 * US, none),
            (BROKER, "ENQUEUE", US, none),
            (BROKER, "DEQUEUE", 2 * US, none),
            (BROKER, "SEND", 6 * US, none),
            (SUB, "RECEIVE", 20 * US, none),
            (SUB, "DESERIALIZE", 2 * US, none),
            (SUB, "QUEUE_EVENT", 2 * US, none),
            (SUB, "NEXT_EVENT", 9 * US, none),
        ];
        Self { steps, octets: 100, due_before: 2 * US, later: 0 }
    }
}

impl Chain {
    fn step(&mut self, stage: &str) -> &mut Step {
        let mut steps = self.steps.iter_mut();
        let is_it = |step: &&mut Step| step.1 == stage;
        if stage == "SEND" { steps.find(is_it) } else { steps.rfind(is_it) }.unwrap()
    }

    /// Lets the stage take so many ns instead.
    pub(crate) fn takes(mut self, stage: &str, ns: i64) -> Self {
        self.step(stage).2 = ns;
        self
    }

    pub(crate) fn waits(mut self, stage: &str, wait: &str) -> Self {
        self.step(stage).3 = Wait::from_name(wait).unwrap();
        self
    }

    pub(crate) fn due_before(mut self, ns: i64) -> Self {
        self.due_before = ns;
        self
    }

    /// Everything happens so many ns later than its number in the run says.
    pub(crate) fn later(mut self, ns: i64) -> Self {
        self.later = ns;
        self
    }

    pub(crate) fn octets(mut self, octets: u64) -> Self {
        self.octets = octets;
        self
    }

    /// Stamps of the broker's kernel after its SEND.
    pub(crate) fn with_sender_kernel(mut self) -> Self {
        let at = self.steps.iter().rposition(|step| step.1 == "SEND").unwrap() + 1;
        let stamps = [("KERNEL_SCHED", 3 * US), ("KERNEL_SEND", US)];
        self.steps.splice(at..at, stamps.map(|(stage, ns)| (BROKER, stage, ns, Wait::None)));
        self
    }

    /// A stamp of the subscriber's kernel before its RECEIVE.
    pub(crate) fn with_receiver_kernel(mut self) -> Self {
        let at = self.steps.iter().rposition(|step| step.1 == "RECEIVE").unwrap();
        self.steps.insert(at, (SUB, "KERNEL_RECEIVE", 4 * US, Wait::None));
        self
    }

    /// The timeline of the message of this number.
    pub(crate) fn timeline(&self, seq: u64) -> Timeline {
        let clock = ClockDomain { host: [7; 16], error_bound_ns: 0, ..ClockDomain::default() };
        let stamp = |node, stage, wait: Wait, ns| Stamp {
            node,
            stage: Stage::code_of(stage).unwrap(),
            detail: wait.code(),
            at: Some(Instant::from_nanos(ns)),
        };
        let mut now = 1_000 * MS + seq as i64 * PERIOD + self.later;
        let mut stamps = vec![stamp(PUB, "DUE", Wait::None, now - self.due_before)];
        for &(node, stage, ns, wait) in &self.steps {
            now += ns;
            stamps.push(stamp(node, stage, wait, now));
        }
        Timeline {
            id: TimelineId(u128::from(seq + 1).to_be_bytes()),
            nodes: ["pub", "broker", "sub"].map(|name| Node::new(name, clock)).to_vec(),
            stamps,
            ..Timeline::default()
        }
    }

    /// Its record.
    pub(crate) fn line(&self, seq: u64) -> String {
        let info = MessageInfo { seq, octets: self.octets, ..MessageInfo::default() };
        let record = Record::Message(MessageRecord::new(info, &self.timeline(seq)));
        let mut line = Vec::new();
        record.write_line(&mut line).unwrap();
        String::from_utf8(line).unwrap()
    }
}
