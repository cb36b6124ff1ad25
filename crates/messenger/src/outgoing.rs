//! A message on its way out: what is kept of it, and how its head is written.

use bytes::Bytes;
use hopline_driver::engine::Slot;
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

/// Octets of a bare message up to which it is copied: a connection would do so anyway.
pub(crate) const SMALL: usize = 4096;

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

/// What a message is sent with.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) tracker: u64,
    pub(crate) settled: bool,
    pub(crate) put_at: Instant,
    /// The stamps of one that is timed.
    pub(crate) stamps: Option<Stamps>,
}

/// Who stamps, why the message could not be sent at once, and what time it is.
pub(crate) struct Stamping<'a> {
    pub(crate) node: &'a [u8],
    pub(crate) wait: Wait,
    pub(crate) now: &'a dyn Fn() -> Instant,
}

/// A message in the store, encoded as far as it can be before it is sent.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) terms: Terms,
    /// Why it could not be sent at once.
    pub(crate) wait: Wait,
    pub(crate) bare: Bytes,
    /// Header and delivery-annotations.
    head: Vec<u8>,
    /// Message-annotations but the timeline: how many, and their keys and values.
    others: (u32, Vec<u8>),
}

impl Stored {
    /// Encodes what is known of a message besides its bare part.
    pub(crate) fn new(message: &Message, bare: Bytes, terms: Terms) -> Self {
        let mut head = Vec::new();
        message.encode_head(&mut head);
        let mut others = (0, Vec::new());
        for (key, value) in others_of(message, terms.stamps.is_some()) {
            key.encode(&mut others.1);
            value.encode(&mut others.1);
            others.0 += 1;
        }
        Self { terms, wait: Wait::None, bare, head, others }
    }

    /// Octets, as the store's limit counts them.
    pub(crate) const fn octets(&self) -> usize {
        self.head.len() + self.others.1.len() + self.bare.len() + OVERHEAD
    }

    /// Writes header and annotations; returns where the SEND stamp's instant lies.
    pub(crate) fn write_head(&self, out: &mut Vec<u8>, stamping: &Stamping<'_>) -> Option<Slot> {
        out.extend_from_slice(&self.head);
        let (count, octets) = &self.others;
        let others = |out: &mut Vec<u8>| out.extend_from_slice(octets);
        write_annotations(out, (*count, others), self.terms.stamps.as_ref(), stamping)
    }
}

/// Writes a whole message; returns where the SEND stamp's instant lies, and how many octets the
/// store's limit counts.
pub(crate) fn write_message(
    out: &mut Vec<u8>,
    (message, bare): (&Message, &[u8]),
    stamps: Option<&Stamps>,
    stamping: &Stamping<'_>,
) -> (Option<Slot>, usize) {
    let start = out.len();
    message.encode_head(out);
    let count = others_of(message, stamps.is_some()).count() as u32;
    let others = |out: &mut Vec<u8>| {
        for (key, value) in others_of(message, stamps.is_some()) {
            key.encode(out);
            value.encode(out);
        }
    };
    let slot = write_annotations(out, (count, others), stamps, stamping);
    out.extend_from_slice(bare);
    (slot, out.len() - start + OVERHEAD)
}

/// The timeline that a message carries already.
pub(crate) fn carried(message: &Message) -> Option<Bytes> {
    match message.message_annotations.get(ANNOTATION) {
        Some(Value::Binary(octets)) if is_timeline(octets) => Some(octets.clone()),
        _ => None,
    }
}

/// The message-annotations; of one that is timed, those but the timeline.
fn others_of(message: &Message, is_timed: bool) -> impl Iterator<Item = &(Symbol, Value)> {
    let annotations = message.message_annotations.0.iter();
    annotations.filter(move |(key, _)| !is_timed || *key != *ANNOTATION)
}

fn write_annotations(
    out: &mut Vec<u8>,
    (count, others): (u32, impl FnOnce(&mut Vec<u8>)),
    stamps: Option<&Stamps>,
    stamping: &Stamping<'_>,
) -> Option<Slot> {
    let pairs = count + u32::from(stamps.is_some());
    if pairs == 0 {
        return None;
    }
    out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS]);
    let map = start_map32(out);
    others(out);
    // Last, so that whoever appends to the timeline next has nothing to move.
    let slot = stamps.and_then(|stamps| stamps.write(out, stamping));
    finish_map32(out, map, pairs as usize);
    slot
}

/// Encodes the bare message into a buffer that may be used again; seldom has to move it.
pub(crate) fn encode_bare(message: &Message, bare: &mut Vec<u8>) {
    let body = match &message.body {
        Body::Data(parts) => parts.iter().map(|part| part.len() + 8).sum(),
        _ => 0,
    };
    bare.clear();
    bare.reserve(body + 128);
    message.encode_bare(bare);
}

impl Stamps {
    fn write(&self, out: &mut Vec<u8>, stamping: &Stamping<'_>) -> Option<Slot> {
        Symbol::from_static(ANNOTATION).encode(out);
        let start = start_binary32(out);
        match &self.base {
            Base::New(id) => new_timeline(*id, out),
            Base::Carried(octets) => out.extend_from_slice(octets),
        }
        let slot = Appender::new(out, start).and_then(|mut stamps| {
            stamps.node(stamping.node);
            if let Some(due) = self.due {
                stamps.stamp(Stage::Due, 0, due);
            }
            stamps.stamp(Stage::Create, 0, self.created);
            stamps.stamp(Stage::Publish, 0, self.published);
            stamps.stamp(Stage::Serialize, 0, (stamping.now)());
            stamps.stamp(Stage::Send, stamping.wait.code(), Instant::UNFILLED)
        });
        finish_binary32(out, start);
        slot.map(|instant| Slot { timeline: start, instant })
    }
}
