//! A message on its way out: what is kept of it, and how its head is written.

use bytes::Bytes;
use hopline_driver::engine::wire::codec::Encode;
use hopline_driver::engine::wire::message::{Header, Message, section};
use hopline_driver::engine::wire::value::{finish_binary32, start_binary32};
use hopline_driver::engine::wire::{Fields, Symbol, Value};
use hopline_driver::timeline::{
    ANNOTATION, Appender, Instant, Stage, TimelineId, is_timeline, new_timeline,
};

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

/// A message in the store.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) tracker: u64,
    pub(crate) settled: bool,
    pub(crate) put_at: Instant,
    pub(crate) bare: Bytes,
    header: Header,
    delivery_annotations: Fields,
    annotations: Fields,
    stamps: Option<Stamps>,
}

impl Stored {
    /// Encodes what is immutable of a message; `stamps` makes the stamps of one that is timed.
    pub(crate) fn new(
        mut message: Message,
        (tracker, settled, put_at): (u64, bool, Instant),
        stamps: impl FnOnce(Option<Bytes>) -> Option<Stamps>,
    ) -> Self {
        let mut bare = Vec::with_capacity(256);
        message.encode_bare(&mut bare);
        let carried = message.message_annotations.get(ANNOTATION).and_then(|value| match value {
            Value::Binary(octets) if is_timeline(octets) => Some(octets.clone()),
            _ => None,
        });
        let stamps = stamps(carried);
        if stamps.is_some() {
            message.message_annotations.0.retain(|(key, _)| *key != *ANNOTATION);
        }
        Self {
            tracker,
            settled,
            put_at,
            bare: bare.into(),
            header: message.header,
            delivery_annotations: message.delivery_annotations,
            annotations: message.message_annotations,
            stamps,
        }
    }

    /// Octets, as the store's limit counts them.
    pub(crate) const fn octets(&self) -> usize {
        self.bare.len() + 64
    }

    /// Writes header and annotations; returns where the SEND stamp's instant lies.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        node: &[u8],
        now: impl Fn() -> Instant,
    ) -> Option<usize> {
        if self.header != Header::default() {
            self.header.encode(out);
        }
        if !self.delivery_annotations.is_empty() {
            out.extend_from_slice(&[0x00, 0x53, section::DELIVERY_ANNOTATIONS]);
            self.delivery_annotations.encode(out);
        }
        let Some(stamps) = &self.stamps else {
            if !self.annotations.is_empty() {
                out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS]);
                self.annotations.encode(out);
            }
            return None;
        };
        out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS, 0xd1]);
        let map = out.len();
        out.extend_from_slice(&[0; 8]);
        for (key, value) in &self.annotations.0 {
            key.encode(out);
            value.encode(out);
        }
        let slot = stamps.write(out, node, now);
        let size = ((out.len() - map - 4) as u32).to_be_bytes();
        let count = (self.annotations.0.len() as u32 * 2 + 2).to_be_bytes();
        for (slot, octet) in out.iter_mut().skip(map).zip(size.into_iter().chain(count)) {
            *slot = octet;
        }
        slot
    }
}

impl Stamps {
    fn write(&self, out: &mut Vec<u8>, node: &[u8], now: impl Fn() -> Instant) -> Option<usize> {
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
            stamps.stamp(Stage::Send, 0, Instant::UNFILLED)
        });
        finish_binary32(out, start);
        slot
    }
}
