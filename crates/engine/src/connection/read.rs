use super::handshake::out_of_place;
use super::{Connection, Reading};
use crate::SessionId;
use crate::event::Event;
use crate::fault::Fault;
use crate::link::Half;
use crate::session::Session;
use bytes::Bytes;
use hopline_timeline::Instant;
use hopline_wire::codec::Reader;
use hopline_wire::frame::{FrameHeader, FrameType, HEADER};
use hopline_wire::performative::{Begin, Performative, Transfer};
use hopline_wire::{WireError, condition, limits};
use std::ops::Range;

/// The octets before every transfer with a numeric descriptor.
const TRANSFER: [u8; 3] = [0x00, 0x53, Transfer::CODE];

impl Connection {
    /// Decodes one header or frame. `false`: more octets are needed.
    pub(super) fn step(&mut self, now: Instant) -> bool {
        let result = match self.reading {
            Reading::Header | Reading::AmqpHeader => self.read_header(),
            Reading::Over => return false,
            _ => self.read_frame(now),
        };
        match result {
            Ok(went_on) => went_on,
            Err(fault) => {
                self.answer_fault(fault, now);
                true
            }
        }
    }

    pub(super) fn frame_limit(&self) -> u32 {
        match self.reading {
            // Before `open` 512 octets are the rule; a longer SASL response (a token) is let in.
            Reading::Sasl => limits::MIN_MAX_FRAME_SIZE.max(self.config.max_frame_size.min(16_384)),
            _ => self.config.max_frame_size,
        }
    }

    fn read_frame(&mut self, now: Instant) -> Result<bool, Fault> {
        if self.frames.is_empty() && !self.take_frames()? {
            return Ok(false);
        }
        let rest = self.frames.get(self.decoded..).unwrap_or_default();
        let Some(header) = FrameHeader::parse(rest, self.frame_limit())? else {
            return Ok(false);
        };
        let at = self.decoded + header.body;
        self.decoded += header.size;
        // Lent for as long as the frame is handled: its payload alone is worth a reference count.
        let frames = std::mem::take(&mut self.frames);
        let is_last = self.decoded >= frames.len();
        self.has_more = !(is_last && self.input.is_empty());
        let body = at..self.decoded.min(frames.len());
        let handled = self.handle_frame(header, &frames, body, now);
        if is_last {
            self.decoded = 0;
        } else {
            self.frames = frames;
        }
        handled.map(|()| true)
    }

    /// Moves the whole frames at the start of the input to `frames`: one if the layer may change
    /// behind it, else all that are there.
    fn take_frames(&mut self) -> Result<bool, Fault> {
        let Some(header) = FrameHeader::parse(&self.input, self.frame_limit())? else {
            return Ok(false);
        };
        let mut end = header.size;
        if end > self.input.len() {
            return Ok(false);
        }
        // What is wrong with those behind it is found when it is their turn.
        while self.reading != Reading::Sasl
            && let Some(size) = self.input.get(end..).and_then(|rest| rest.first_chunk())
            && let size = u32::from_be_bytes(*size) as usize
            && size >= HEADER
            && size <= self.input.len() - end
        {
            end += size;
        }
        self.frames = self.input.split_to(end).freeze();
        Ok(true)
    }

    /// `body`: where that of the frame lies in `frames`.
    fn handle_frame(
        &mut self,
        header: FrameHeader,
        frames: &Bytes,
        body: Range<usize>,
        now: Instant,
    ) -> Result<(), Fault> {
        let frame = frames.get(body.clone()).unwrap_or_default();
        match (self.reading, header.kind) {
            (Reading::Frames, FrameType::Amqp)
                if frame.starts_with(&TRANSFER) && self.remote == Half::Active =>
            {
                self.transfer_frame(header.channel, frames, body)
            }
            (Reading::Sasl, FrameType::Sasl) => self.sasl_frame(frame),
            (Reading::Sasl, FrameType::Amqp) => Err(out_of_place("an AMQP frame during SASL")),
            (_, FrameType::Sasl) => {
                Err(WireError::Frame("a SASL frame does not belong behind SASL").into())
            }
            _ if frame.is_empty() => Ok(()),
            (Reading::Discard, _) => self.discard(frame),
            _ => self.amqp_frame(header.channel, &frames.slice(body), now),
        }
    }

    /// The frame that nearly all are: decoded without a detour.
    fn transfer_frame(
        &mut self,
        channel: u16,
        frames: &Bytes,
        body: Range<usize>,
    ) -> Result<(), Fault> {
        let fields = frames.get(body.start + TRANSFER.len()..body.end).unwrap_or_default();
        let (transfer, used) = match Transfer::decode_plain(fields) {
            Some(plain) => plain,
            None => {
                let mut r = Reader::new(fields);
                (Transfer::decode_fields(&mut r)?, r.position())
            }
        };
        let payload = frames.slice(body.start + TRANSFER.len() + used..body.end);
        self.transfer(channel, transfer, payload)
    }

    /// After our close only the peer's counts; what else comes need not even be well-formed.
    fn discard(&mut self, frame: &[u8]) -> Result<(), Fault> {
        if let Ok((Performative::Close(_), _)) = Performative::decode(frame) {
            self.over();
        }
        Ok(())
    }

    fn amqp_frame(&mut self, channel: u16, frame: &Bytes, now: Instant) -> Result<(), Fault> {
        let (performative, used) = Performative::decode(frame)?;
        if self.remote == Half::Idle && !matches!(performative, Performative::Open(_)) {
            return Err(out_of_place("a frame before open"));
        }
        match performative {
            Performative::Transfer(transfer) => {
                self.transfer(channel, transfer, frame.slice(used..))
            }
            Performative::Flow(flow) => self.flow(channel, flow, now),
            Performative::Disposition(disposition) => self.disposition(channel, disposition, used),
            Performative::Open(open) => self.open(channel, open, now),
            Performative::Begin(begin) => self.begin_frame(channel, begin),
            Performative::Attach(attach) => self.attach_frame(channel, attach),
            Performative::Detach(detach) => self.detach_frame(channel, detach),
            Performative::End(end) => self.end_frame(channel, end),
            Performative::Close(close) => {
                self.close_frame(close);
                Ok(())
            }
        }
    }

    /// The session of a channel of the peer. One that we have ended discards its frames: `None`.
    pub(super) fn session_of(&self, channel: u16) -> Result<Option<SessionId>, Fault> {
        let found = self.by_remote_channel.get(usize::from(channel)).copied().flatten();
        let Some(id) = found else {
            let text = format!("no session has begun on channel {channel}");
            return Err(Fault::connection(condition::NOT_ALLOWED, text));
        };
        let discards = self.sessions.get(id).is_none_or(|session| session.local == Half::Ended);
        Ok((!discards).then_some(id))
    }

    fn begin_frame(&mut self, channel: u16, begin: Begin) -> Result<(), Fault> {
        if channel > self.config.channel_max {
            let text =
                format!("channel {channel} is above channel-max {}", self.config.channel_max);
            return Err(Fault::connection(condition::FRAMING_ERROR, text));
        }
        if matches!(self.by_remote_channel.get(usize::from(channel)), Some(Some(_))) {
            let text = format!("a session has already begun on channel {channel}");
            return Err(Fault::connection(condition::NOT_ALLOWED, text));
        }
        let id = match begin.remote_channel {
            Some(ours) => self.begin_answered(ours)?,
            None => self.begin_by_peer(channel)?,
        };
        if let Some(session) = self.sessions.get_mut(id) {
            session.remote = Half::Active;
            session.remote_channel = Some(channel);
            session.remote_handle_max = begin.handle_max;
            session.windows.begun(&begin);
        }
        let at = usize::from(channel);
        if self.by_remote_channel.len() <= at {
            self.by_remote_channel.resize(at + 1, None);
        }
        if let Some(slot) = self.by_remote_channel.get_mut(at) {
            *slot = Some(id);
        }
        self.events.push_back(Event::SessionBegun(id));
        Ok(())
    }

    fn begin_answered(&self, ours: u16) -> Result<SessionId, Fault> {
        let found = self.by_local_channel.get(usize::from(ours)).copied().flatten();
        let waits = |id: &SessionId| self.sessions.get(*id).is_some_and(|s| s.remote == Half::Idle);
        found.filter(waits).ok_or_else(|| {
            let text = format!("begin answers channel {ours}, on which nothing waits for it");
            Fault::connection(condition::INVALID_FIELD, text)
        })
    }

    fn begin_by_peer(&mut self, remote_channel: u16) -> Result<SessionId, Fault> {
        let Some(id) = self.new_session() else {
            let text = "all channels are in use: end a session first";
            return Err(Fault::connection(condition::RESOURCE_LIMIT_EXCEEDED, text));
        };
        self.put_begin(id, Some(remote_channel));
        Ok(id)
    }

    /// A session on the lowest free channel.
    pub(super) fn new_session(&mut self) -> Option<SessionId> {
        let table = &mut self.by_local_channel;
        let free = table.iter().position(Option::is_none).unwrap_or(table.len());
        let channel = u16::try_from(free).ok()?;
        if channel > self.config.channel_max.min(self.peer.channel_max) {
            return None;
        }
        let id = self.sessions.insert(Box::new(Session::new(channel, &self.config)));
        if table.len() == free {
            table.push(None);
        }
        if let Some(slot) = table.get_mut(free) {
            *slot = Some(id);
        }
        Some(id)
    }

    pub(super) fn put_begin(&mut self, id: SessionId, remote_channel: Option<u16>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.local = Half::Active;
        let (channel, window) = (session.local_channel, session.window_max);
        let begin = Begin {
            remote_channel,
            next_outgoing_id: session.windows.next_outgoing_id.0,
            incoming_window: window,
            outgoing_window: window,
            handle_max: self.config.handle_max,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        };
        self.put(&begin, channel);
    }
}
