//! A message while it is here: the octets that came, and what changes on the way.

use crate::added::Added;
use crate::forward::path;
use crate::groups::LOOSE;
use crate::selector::Subject;
use crate::{ConnId, ConsumerId};
use bytes::Bytes;
use hopline_driver::engine::wire::codec::{Decode, Encode, Reader, code};
use hopline_driver::engine::wire::message::{Head, Header, Layout, Timestamp, annotation, section};
use hopline_driver::engine::wire::value::{
    finish_binary32, finish_map32, start_binary32, start_map32,
};
use hopline_driver::engine::wire::{Fields, Symbol, WireError};
use hopline_driver::engine::{Arrival, Delivery, Slot};
use hopline_driver::timeline::{
    ANNOTATION, Appender, ClockOffset, Instant, Stage, TimelineId, Wait,
};
use hopline_driver::timeline::{is_timeline, new_timeline, receive_detail};
use std::ops::Range;
use std::time::Duration;

/// Payloads up to this size are copied when they stay, rather than keep a whole read buffer.
const COPY_MAX: usize = 16 << 10;

/// A bare message up to this size is copied for each who gets it: a connection would do so anyway.
const SMALL: usize = 4096;

/// `to` among the properties' fields.
const TO_FIELD: usize = 2;

/// `absolute-expiry-time` likewise.
const EXPIRY_FIELD: usize = 8;

/// `group-id` likewise.
const GROUP_FIELD: usize = 10;

/// A message of a queue, or one that is out for delivery. In a box from the start: it is too large
/// to be moved from list to list.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its place in the queue.
    pub(crate) seq: u64,
    /// As it came.
    payload: Bytes,
    bare: usize,
    annotations: Option<Range<usize>>,
    /// Where in the payload the timeline's octets are.
    timeline: Option<Range<usize>>,
    /// Likewise the brokers that have forwarded it, as a value.
    path: Option<Range<usize>>,
    /// What was given to a message without a timeline.
    new_timeline: Option<TimelineId>,
    pub(crate) format: u32,
    header: Option<Header>,
    pub(crate) delivery_count: u32,
    acquired_before: bool,
    pub(crate) expires: Option<Instant>,
    received: Instant,
    /// The detail of RECEIVE.
    via: u8,
    arrived: Option<Arrival>,
    /// How far the clock of the node before was ahead of ours.
    tie: Option<ClockOffset>,
    deserialized: Instant,
    pub(crate) enqueued: Instant,
    /// What it waits for.
    pub(crate) wait: Wait,
    /// Annotations that it was given here.
    added: Option<Box<Added>>,
    /// Links that are not to get it again.
    pub(crate) excluded: Vec<ConsumerId>,
    /// Where it is in a queue with groups.
    pub(crate) lane: u16,
    /// The connection that it came over.
    pub(crate) publisher: Option<ConnId>,
}

impl Message {
    /// Takes the payload of a delivery, and reads of it what forwarding needs.
    pub(crate) fn read(
        delivery: &mut Delivery,
        wall_offset_ns: i64,
    ) -> Result<Box<Self>, WireError> {
        let payload = std::mem::take(&mut delivery.payload);
        let layout = Layout::scan(&payload)?;
        let expires = expiry(&layout, &payload, delivery.received, wall_offset_ns)?;
        let (timeline, path) = match layout.message_annotations.clone() {
            Some(map) => find_ours(&payload, map),
            None => (None, None),
        };
        Ok(Box::new(Self {
            seq: 0,
            bare: layout.bare,
            annotations: layout.message_annotations,
            timeline,
            path,
            new_timeline: None,
            format: delivery.format,
            delivery_count: 0,
            header: layout.header,
            acquired_before: false,
            expires,
            received: delivery.received,
            via: 0,
            arrived: delivery.arrived,
            tie: None,
            deserialized: delivery.received,
            enqueued: delivery.received,
            wait: Wait::None,
            added: None,
            excluded: Vec::new(),
            lane: LOOSE,
            publisher: None,
            payload,
        }))
    }

    /// What selectors look at.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let came = self.header.as_ref();
        Subject { header: self.header(came.and_then(|header| header.ttl)), bare: self.bare() }
    }

    /// Its `to`, for the anonymous relay.
    pub(crate) fn to_address(&self) -> Result<Option<String>, WireError> {
        let Some(properties) = Head::scan(self.bare())?.properties else { return Ok(None) };
        let (mut fields, count) = Reader::new(properties).list("properties")?;
        if count <= TO_FIELD {
            return Ok(None);
        }
        for _ in 0..TO_FIELD {
            fields.skip()?;
        }
        if fields.take_null() { Ok(None) } else { String::decode(&mut fields).map(Some) }
    }

    /// The group that it belongs to.
    pub(crate) fn group_id(&self) -> Option<&[u8]> {
        let properties = Head::scan(self.bare()).ok()?.properties?;
        let (mut fields, count) = Reader::new(properties).list("properties").ok()?;
        for _ in 0..GROUP_FIELD.min(count) {
            fields.skip().ok()?;
        }
        match fields.octet("group-id").ok()? {
            code::STRING8 => fields.variable(false, "group-id").ok(),
            code::STRING32 => fields.variable(true, "group-id").ok(),
            _ => None,
        }
    }

    /// Where its priority puts it, from 0: those of level 0 come first. There are ten (3.2.1).
    pub(crate) fn level(&self) -> u64 {
        let priority = self.header.as_ref().map_or(4, |header| header.priority);
        9 - u64::from(priority.min(9))
    }

    /// Whether it has expired.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Octets, as the queue's limit counts them.
    pub(crate) const fn octets(&self) -> usize {
        self.payload.len()
    }

    /// The bare message and footer as it is to be sent: a large one apart, by reference.
    pub(crate) fn large_bare(&self) -> Option<Bytes> {
        (self.payload.len() - self.bare > SMALL).then(|| self.payload.slice(self.bare..))
    }

    /// The bare message and footer.
    pub(crate) fn bare(&self) -> &[u8] {
        self.payload.get(self.bare..).unwrap_or_default()
    }

    /// Whether it is stamped.
    pub(crate) const fn is_timed(&self) -> bool {
        self.timeline.is_some() || self.new_timeline.is_some()
    }

    /// Whether its publisher asks that it outlives the broker.
    pub(crate) fn is_durable(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.durable)
    }

    /// Gives a timeline to a message without one.
    pub(crate) fn start_timeline(&mut self) {
        if self.timeline.is_none() {
            self.new_timeline = Some(TimelineId(*uuid::Uuid::new_v4().as_bytes()));
        }
    }

    /// Forwards the timeline as it came, without stamps of ours.
    pub(crate) fn stop_timeline(&mut self) {
        self.timeline = None;
    }

    /// It was decoded at that instant.
    pub(crate) const fn set_deserialized(&mut self, at: Instant) {
        self.deserialized = at;
    }

    /// It stays for a while: it lets go of the buffer that it was read into.
    pub(crate) fn settle_down(&mut self) {
        if self.payload.len() <= COPY_MAX {
            self.payload = Bytes::copy_from_slice(&self.payload);
        }
    }

    /// It comes back: its last delivery failed or not.
    pub(crate) const fn returned(&mut self, failed: bool) {
        self.acquired_before = true;
        if failed {
            self.delivery_count = self.delivery_count.saturating_add(1);
        }
    }

    /// It becomes a dead letter: it is there for anybody, for good.
    pub(crate) fn lay_out(&mut self) {
        self.expires = None;
        self.excluded.clear();
        self.publisher = None;
        if let Some(header) = &mut self.header {
            header.ttl = None;
        }
    }

    /// The brokers that have forwarded it (see `forward/path.rs`).
    pub(crate) fn path(&self) -> Option<&[u8]> {
        self.path.clone().and_then(|path| self.payload.get(path))
    }

    fn timeline_octets(&self) -> Option<&[u8]> {
        self.timeline.clone().and_then(|timeline| self.payload.get(timeline))
    }

    /// It came from another broker, which may be none that stamps.
    pub(crate) fn comes_from(&mut self, container: &str) {
        self.via = self.timeline_octets().map_or(0, |octets| receive_detail(octets, container));
    }

    /// It came from this container, whose clock was so far ahead of ours. If it isn't the node that
    /// stamped last, that says nothing.
    pub(crate) fn set_tie(&mut self, container: &str, offset: ClockOffset) {
        let timeline = self.timeline_octets();
        let is_last = timeline.is_some_and(|octets| receive_detail(octets, container) == 0);
        self.tie = is_last.then_some(offset);
    }

    /// A broker forwards it.
    pub(crate) fn passes(&mut self, broker: &str) {
        let path = path::longer(self.path(), broker);
        let field = (Symbol::from_static(path::ANNOTATION), path);
        self.added.get_or_insert_default().merge(Fields(vec![field]));
    }

    /// Merges annotations of a `modified` outcome, or of a dead letter. Its timeline and its path
    /// are none of the consumer's business.
    pub(crate) fn merge(&mut self, mut fields: Fields) {
        fields.0.retain(|(key, _)| key.as_str() != path::ANNOTATION);
        if self.is_timed() {
            fields.0.retain(|(key, _)| key.as_str() != ANNOTATION);
        }
        self.added.get_or_insert_default().merge(fields);
    }

    /// Writes header and message-annotations for the next hop; returns where the SEND stamp's
    /// instant lies, if there is one. `dequeued` and `republished` are the stamps before it.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        node: &[u8],
        (dequeued, republished): (Instant, Instant),
        now: impl Fn() -> Instant,
    ) -> Option<Slot> {
        self.write_header(out, dequeued);
        if !self.is_timed() && self.added.is_none() {
            if let Some(map) = self.annotations.clone() {
                out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS]);
                out.extend_from_slice(self.payload.get(map).unwrap_or_default());
            }
            return None;
        }
        out.extend_from_slice(&[0x00, 0x53, section::MESSAGE_ANNOTATIONS]);
        let map = start_map32(out);
        let kept = self.copy_annotations(out);
        let added = self.added.as_ref().map_or(0, |added| added.write(out));
        let slot = match self.is_timed() {
            true => self.write_timeline(out, node, (dequeued, republished), now),
            false => None,
        };
        finish_map32(out, map, kept + added + usize::from(self.is_timed()));
        slot
    }

    fn write_header(&self, out: &mut Vec<u8>, now: Instant) {
        let ttl = self.header.as_ref().and_then(|header| header.ttl);
        let header = self.header(ttl.map(|ttl| self.ttl_left(ttl, now)));
        if header != Header::default() {
            header.encode(out);
        }
    }

    fn header(&self, ttl: Option<u32>) -> Header {
        let came = self.header.as_ref();
        Header {
            durable: came.is_some_and(|header| header.durable),
            priority: came.map_or(4, |header| header.priority),
            ttl,
            first_acquirer: came.is_some() && !self.acquired_before,
            delivery_count: self.delivery_count,
        }
    }

    /// The time that it spent here is gone (3.2.1).
    fn ttl_left(&self, ttl: u32, now: Instant) -> u32 {
        let spent = now.saturating_duration_since(self.received).as_millis();
        ttl.saturating_sub(u32::try_from(spent).unwrap_or(u32::MAX))
    }

    /// Copies the annotations that are neither ours nor replaced; returns how many.
    fn copy_annotations(&self, out: &mut Vec<u8>) -> usize {
        let Some(map) = self.annotations.clone() else { return 0 };
        let mut kept = 0;
        annotation(self.payload.get(map).unwrap_or_default(), |name, key, value| {
            let replaced = name.is_some_and(|name| {
                let is_ours = name == ANNOTATION.as_bytes() && self.is_timed();
                is_ours || self.added.as_ref().is_some_and(|added| added.has(name))
            });
            if !replaced {
                out.extend_from_slice(key);
                out.extend_from_slice(value);
                kept += 1;
            }
        });
        kept
    }

    fn write_timeline(
        &self,
        out: &mut Vec<u8>,
        node: &[u8],
        (dequeued, republished): (Instant, Instant),
        now: impl Fn() -> Instant,
    ) -> Option<Slot> {
        Symbol::from_static(ANNOTATION).encode(out);
        let start = start_binary32(out);
        match (&self.timeline, self.new_timeline) {
            (Some(range), _) => {
                out.extend_from_slice(self.payload.get(range.clone()).unwrap_or_default());
            }
            (None, Some(id)) => new_timeline(id, out),
            (None, None) => {}
        }
        let slot = Appender::new(out, start).and_then(|mut stamps| {
            stamps.node(node);
            if let Some(tie) = self.tie {
                stamps.tie(tie);
            }
            if let Some(arrived) = self.arrived {
                stamps.stamp(Stage::KernelReceive, arrived.detail(), arrived.at);
            }
            stamps.stamp(Stage::Receive, self.via, self.received);
            stamps.stamp(Stage::Deserialize, 0, self.deserialized);
            stamps.stamp(Stage::Enqueue, 0, self.enqueued);
            stamps.stamp(Stage::Dequeue, self.wait.code(), dequeued);
            stamps.stamp(Stage::Republish, 0, republished);
            stamps.stamp(Stage::Serialize, 0, now());
            stamps.stamp(Stage::Send, 0, Instant::UNFILLED)
        });
        finish_binary32(out, start);
        slot.map(|instant| Slot { timeline: start, instant })
    }
}

/// Where the octets of a timeline lie that can be appended to, and the value of a path. Anything
/// else under the timeline's name is passed on as it came.
fn find_ours(payload: &[u8], map: Range<usize>) -> (Option<Range<usize>>, Option<Range<usize>>) {
    let octets = payload.get(map.clone()).unwrap_or_default();
    let (mut found, mut path) = (None, None);
    annotation(octets, |name, _, value| {
        if name == Some(path::ANNOTATION.as_bytes()) {
            let at = map.start + (value.as_ptr() as usize - octets.as_ptr() as usize);
            path = Some(at..at + value.len());
        }
        if name == Some(ANNOTATION.as_bytes())
            && let Ok(timeline) =
                hopline_driver::engine::wire::codec::read_binary(&mut Reader::new(value))
            && is_timeline(timeline)
        {
            let offset = timeline.as_ptr() as usize - octets.as_ptr() as usize;
            found = Some(map.start + offset..map.start + offset + timeline.len());
        }
    });
    (found, path)
}

/// When it is of no use any more: by `ttl` (which wins, as it does not depend on anybody's clock)
/// or by `absolute-expiry-time`.
fn expiry(
    layout: &Layout,
    payload: &[u8],
    received: Instant,
    wall_offset_ns: i64,
) -> Result<Option<Instant>, WireError> {
    if let Some(ttl) = layout.header.as_ref().and_then(|header| header.ttl) {
        return Ok(Some(received.saturating_add(Duration::from_millis(ttl.into()))));
    }
    let Some(range) = layout.properties.clone() else { return Ok(None) };
    let mut r = Reader::new(payload.get(range).unwrap_or_default());
    let (mut fields, count) = r.list("properties")?;
    if count <= EXPIRY_FIELD {
        return Ok(None);
    }
    for _ in 0..EXPIRY_FIELD {
        fields.skip()?;
    }
    if fields.take_null() {
        return Ok(None);
    }
    let Timestamp(ms) = Timestamp::decode(&mut fields)?;
    let wall_ns = ms.saturating_mul(1_000_000);
    Ok(Some(Instant::from_nanos(wall_ns.saturating_sub(wall_offset_ns))))
}
