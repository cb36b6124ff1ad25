//! A message on its way out: what is kept of it, and how its head is written.

use bytes::Bytes;
use hopline_driver::engine::wire::codec::Encode;
use hopline_driver::engine::wire::message::{Body, Message, section};
use hopline_driver::engine::wire::value::{
    finish_binary32, finish_map32, start_binary32, start_map32,
};
use hopline_driver::engine::wire::{Symbol, Value};
use hopline_driver::timeline::{
    ANNOTATION, Appender, Instant, Stage, TimelineId, Wait, is_timeline, new_timeline,
};

/// What the store counts for a message beside its own octets: our book-keeping and its timeline.
const OVERHEAD: usize = 256;

/// How a message is to be put.
#[derive(Copy, Clone, Debug, Default)]
pub struct PutOptions {
    /// When a schedule wanted it sent (open loop); stamped as DUE.
    pub due: Option<Instant>,
    /// When the application made it; the time of the call if absent. Stamped as CREATE.
    pub created: Option<Instant>,
    /// Send it settled: no outcome will come.
    pub settled: bool,
}

/// The stamps before the message is sent.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    /// A timeline that the message carried already, or the id of a new one.
    pub(crate) base: Base,
    pub(crate) due: Option<Instant>,
    pub(crate) created: Instant,
    pub(crate) published: Instant,
}

#[derive(Clone, Debug)]
pub(crate) enum Base {
    New(TimelineId),
    Carried(Bytes),
}

/// A message in the store, encoded as far as it can be before it is sent.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) tracker: u64,
    pub(crate) settled: bool,
    pub(crate) put_at: Instant,
    /// Why it could not be sent at once.
    pub(crate) wait: Wait,
    pub(crate) bare: Bytes,
    /// Header and delivery-annotations.
    head: Vec<u8>,
    /// Message-annotations but the timeline: how many, and their keys and values.
    others: (u32, Vec<u8>),
    stamps: Option<Stamps>,
}

impl Stored {
    /// Encodes what is known of a message; `stamps` makes the stamps of one that is timed.
    pub(crate) fn new(
        message: &Message,
        (tracker, settled, put_at): (u64, bool, Instant),
        stamps: impl FnOnce(Option<Bytes>) -> Option<Stamps>,
    ) -> Self {
        let (mut head, mut bare) = (Vec::new(), Vec::with_capacity(bare_guess(message)));
        message.encode_head(&mut head);
        message.encode_bare(&mut bare);
        let annotations = &message.message_annotations;
        let carried = annotations.get(ANNOTATION).and_then(|value| match value {
            Value::Binary(octets) if is_timeline(octets) => Some(octets.clone()),
            _ => None,
        });
        let stamps = stamps(carried);
        let mut others = (0, Vec::new());
        for (key, value) in &annotations.0 {
            if stamps.is_none() || *key != *ANNOTATION {
                key.encode(&mut others.1);
                value.encode(&mut others.1);
                others.0 += 1;
            }
        }
        let (wait, bare) = (Wait::None, bare.into());
        Self { tracker, settled, put_at, wait, bare, head, others, stamps }
    }

    /// Octets, as the store's limit counts them.
    pub(crate) const fn octets(&self) -> usize {
        self.head.len() + self.others.1.len() + self.bare.len() + OVERHEAD
    }

    /// Writes header and annotations; returns where the SEND stamp's instant lies.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        node: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<usize> {
        out.extend_from_slice(&self.head);
        let (others, octets) = &self.others;
        let pairs = others + u32::from(self.stamps.is_some());
        if pairs == 0 {
            return None;
        }
        out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS]);
        let map = start_map32(out);
        out.extend_from_slice(octets);
        // Last, so that whoever appends to the timeline next has nothing to move.
        let slot = self.stamps.as_ref().and_then(|stamps| stamps.write(out, node, self.wait, now));
        finish_map32(out, map, pairs as usize);
        slot
    }
}

/// Octets of the bare message, so that encoding it seldom has to move it.
fn bare_guess(message: &Message) -> usize {
    let body = match &message.body {
        Body::Data(parts) => parts.iter().map(|part| part.len() + 8).sum(),
        _ => 0,
    };
    body + 128
}

impl Stamps {
    fn write(
        &self,
        out: &mut Vec<u8>,
        node: &[u8],
        wait: Wait,
        now: impl Fn() -> Instant,
    ) -> Option<usize> {
        Symbol::from_static(ANNOTATION).encode(out);
        let start = start_binary32(out);
        match &self.base {
            Base::New(id) => new_timeline(*id, out),
            Base::Carried(octets) => out.extend_from_slice(octets),
        }
        let slot = Appender::new(out, start).and_then(|mut stamps| {
            stamps.node(node);
            if let Some(due) = self.due {
                stamps.stamp(Stage::Due, 0, due);
            }
            stamps.stamp(Stage::Create, 0, self.created);
            stamps.stamp(Stage::Publish, 0, self.published);
            stamps.stamp(Stage::Serialize, 0, now());
            stamps.stamp(Stage::Send, wait.code(), Instant::UNFILLED)
        });
        finish_binary32(out, start);
        slot
    }
}
