use crate::append::{MAX_OCTETS, MAX_STAMPS};
use crate::scan::{Header, RawRecord};
use crate::{Instant, Node, Stage, TimelineError, TimelineId, Wait};

/// A timeline read from its octets: who stamped, and when.
#[derive(Clone, Eq, PartialEq, Debug, Default)]
pub struct Timeline {
    /// What tells this message from others.
    pub id: TimelineId,
    /// Whether a node had to drop something for want of room.
    pub overflow: bool,
    /// How many stamps were dropped; 65,535 means at least so many.
    pub dropped: u16,
    /// The node records in order of writing. A node that the message visits twice is here twice.
    pub nodes: Vec<Node>,
    /// The stamps in order of writing, which need not be the order of their instants.
    pub stamps: Vec<Stamp>,
    /// The records of kinds that this version does not know.
    pub reserved: Vec<Reserved>,
}

/// One stamp of a timeline.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub struct Stamp {
    /// Index of the node that stamped, in [`Timeline::nodes`].
    pub node: usize,
    /// The stage's code, which need not be one of [`Stage`].
    pub stage: u8,
    /// The detail octet; what it says depends on the stage.
    pub detail: u8,
    /// When, on the node's clock; `None` if the slot was never filled in.
    pub at: Option<Instant>,
}

/// A record of a kind that this version does not know, kept as it is.
#[derive(Clone, Eq, PartialEq, Hash, Debug)]
pub struct Reserved {
    /// How many nodes stand before it.
    pub nodes_before: usize,
    /// How many stamps stand before it.
    pub stamps_before: usize,
    /// The type octet, 0x81 to 0xff.
    pub kind: u8,
    /// The octets after the length octet, 255 at most.
    pub content: Vec<u8>,
}

impl Stamp {
    /// The stage; `None` for a code that this version does not know.
    pub fn known_stage(&self) -> Option<Stage> {
        Stage::from_code(self.stage)
    }

    /// What the message waited for; `None` for stages whose detail is something else, and for
    /// reasons that this version does not know.
    pub fn wait(&self) -> Option<Wait> {
        let has_wait = matches!(self.known_stage(), Some(Stage::Dequeue | Stage::Send));
        Wait::from_code(self.detail).filter(|_| has_wait)
    }
}

impl Timeline {
    /// Reads a timeline, such as the value of the annotation [`ANNOTATION`](crate::ANNOTATION).
    ///
    /// # Errors
    /// Another version, a length or number of stamps beyond the limits, a cut or malformed record.
    /// Unknown stages and records are no error.
    pub fn parse(octets: &[u8]) -> Result<Timeline, TimelineError> {
        let (header, records) = Header::split(octets)?;
        if octets.len() > MAX_OCTETS {
            return Err(TimelineError::TooLong { octets: octets.len() });
        }
        let Header { overflow, dropped, id } = header;
        let mut timeline = Timeline { id, overflow, dropped, ..Timeline::default() };
        for record in records {
            let (offset, record) = record?;
            timeline.add(record, offset)?;
        }
        Ok(timeline)
    }

    fn add(&mut self, record: RawRecord<'_>, offset: usize) -> Result<(), TimelineError> {
        match record {
            RawRecord::Stamp { .. } if self.stamps.len() == MAX_STAMPS => {
                return Err(TimelineError::TooManyStamps);
            }
            RawRecord::Stamp { code, detail, at } => {
                let last = self.nodes.len().checked_sub(1);
                let node = last.ok_or(TimelineError::StampWithoutNode { offset })?;
                let at = Some(at).filter(|at| *at != Instant::UNFILLED);
                self.stamps.push(Stamp { node, stage: code, detail, at });
            }
            RawRecord::Node { content } => self.nodes.push(Node::parse(content, offset)?),
            RawRecord::Reserved { kind, content } => self.reserved.push(Reserved {
                nodes_before: self.nodes.len(),
                stamps_before: self.stamps.len(),
                kind,
                content: content.to_vec(),
            }),
        }
        Ok(())
    }
}
