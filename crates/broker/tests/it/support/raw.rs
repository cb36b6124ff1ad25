//! A peer that sends whatever octets a test wants.

use super::{Broker, PATIENCE};
use hopline_driver::engine::wire::frame::FrameHeader;
use hopline_driver::engine::wire::performative::{Attach, Begin, Close, Detach, Frame, Open};
use hopline_driver::engine::wire::performative::{Flow, Performative, Transfer};
use hopline_driver::engine::wire::terminus::{Source, Target, TargetKind};
use hopline_driver::engine::wire::{DeliveryTag, Role, definitions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

pub const AMQP: &[u8; 8] = b"AMQP\x00\x01\x00\x00";

pub struct Raw {
    pub socket: TcpStream,
    buffer: Vec<u8>,
}

impl Raw {
    pub fn connect(broker: &Broker) -> Self {
        Self::connect_to(broker.address())
    }

    pub fn connect_to(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the broker listens");
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { socket, buffer: Vec::new() }
    }

    /// Header, open, begin; the answers are read. Each is a container of its own.
    pub fn open(broker: &Broker) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let container = format!("raw-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self::open_as(broker, &container)
    }

    /// The same with this container-id.
    pub fn open_as(broker: &Broker, container: &str) -> Self {
        let mut raw = Self::connect(broker);
        raw.write(AMQP);
        raw.put(&open(container));
        raw.put(&begin());
        raw.skip_header();
        while !matches!(raw.frame(), Some(Performative::Begin(_))) {}
        raw
    }

    pub fn write(&mut self, octets: &[u8]) {
        self.socket.write_all(octets).expect("the broker reads");
    }

    /// Writes what the broker takes; it may have hung up.
    pub fn try_write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.socket.write_all(octets)
    }

    pub fn put(&mut self, frame: &impl Frame) {
        let mut out = Vec::new();
        frame.put(&mut out, 0);
        self.write(&out);
    }

    /// Writes all frames in one piece.
    pub fn put_all(&mut self, frames: &[&dyn Octets]) {
        let mut out = Vec::new();
        frames.iter().for_each(|frame| frame.append(&mut out));
        self.write(&out);
    }

    /// Reads up to a detach; its handle, whether it closes, and its condition.
    pub fn detached(&mut self) -> (u32, bool, Option<String>) {
        loop {
            let frame = self.frame().expect("the broker goes on");
            if let Performative::Detach(Detach { handle, closed, error }) = frame {
                return (handle, closed, error.map(|error| error.condition.to_string()));
            }
        }
    }

    /// Reads up to an attach.
    pub fn attached(&mut self) -> Attach {
        loop {
            if let Performative::Attach(attach) = self.frame().expect("the broker goes on") {
                return attach;
            }
        }
    }

    pub fn skip_header(&mut self) {
        let mut header = [0; 8];
        self.socket.read_exact(&mut header).expect("a protocol header");
    }

    /// The next frame, heartbeats left out; `None`: the broker has hung up.
    pub fn frame(&mut self) -> Option<Performative> {
        self.frame_with_payload().map(|(_, frame, _)| frame)
    }

    /// The next frame with its channel and payload.
    pub fn frame_with_payload(&mut self) -> Option<(u16, Performative, Vec<u8>)> {
        loop {
            if let Some(header) = FrameHeader::parse(&self.buffer, u32::MAX).expect("a frame")
                && self.buffer.len() >= header.size
            {
                let frame: Vec<u8> = self.buffer.drain(..header.size).collect();
                if header.body < header.size {
                    let body = &frame[header.body..];
                    let (frame, used) = Performative::decode(body).expect("a performative");
                    return Some((header.channel, frame, body[used..].to_vec()));
                }
                continue;
            }
            let mut chunk = [0; 65_536];
            match self.socket.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("the broker says nothing: {error}"),
            }
        }
    }

    /// Reads until the broker closes; the condition that it closed with.
    pub fn closed(&mut self) -> Option<String> {
        let mut condition = None;
        while let Some(frame) = self.frame() {
            if let Performative::Close(Close { error }) = frame {
                condition = error.map(|error| error.condition.to_string());
            }
        }
        condition
    }

    /// Attaches as a sender and waits for credit.
    pub fn attach_sender(&mut self, address: &str) {
        self.put(&attach("sender", 0, Role::Sender, address));
        while !matches!(self.frame(), Some(Performative::Flow(Flow { handle: Some(_), .. }))) {}
    }

    /// Attaches as a receiver with this credit.
    pub fn attach_receiver(&mut self, address: &str, credit: u32) {
        self.put(&attach("receiver", 0, Role::Receiver, address));
        while !matches!(self.frame(), Some(Performative::Attach(_))) {}
        self.put(&flow(credit));
    }

    pub fn shutdown(&self, how: Shutdown) {
        self.socket.shutdown(how).expect("connected");
    }
}

/// A frame, or what is behind a frame's header already.
pub trait Octets {
    fn append(&self, out: &mut Vec<u8>);
}

impl<F: Frame> Octets for F {
    fn append(&self, out: &mut Vec<u8>) {
        self.put(out, 0);
    }
}

/// A detach.
pub fn detach(handle: u32, closed: bool) -> Detach {
    Detach { handle, closed, error: None }
}

pub fn open(container: &str) -> Open {
    Open {
        container_id: container.into(),
        hostname: None,
        max_frame_size: 65_536,
        channel_max: 10,
        idle_time_out: None,
        outgoing_locales: Vec::new(),
        incoming_locales: Vec::new(),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

pub fn begin() -> Begin {
    Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: u32::MAX >> 1,
        outgoing_window: u32::MAX >> 1,
        handle_max: 10,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

pub fn attach(name: &str, handle: u32, role: Role, address: &str) -> Attach {
    Attach {
        name: name.into(),
        handle,
        role,
        snd_settle_mode: definitions::SenderSettleMode::Mixed,
        rcv_settle_mode: definitions::ReceiverSettleMode::First,
        source: Some(Box::new(Source::at(address))),
        target: Some(Box::new(TargetKind::Target(Target::at(address)))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: 0,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

/// Credit for the link with handle 0, nothing received yet.
pub fn flow(credit: u32) -> Flow {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: u32::MAX >> 1,
        next_outgoing_id: 0,
        outgoing_window: u32::MAX >> 1,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(credit),
        ..Flow::default()
    }
}

/// The octets of a transfer on handle 0.
pub fn transfer(id: u32, more: bool, payload: &[u8]) -> Vec<u8> {
    use hopline_driver::engine::wire::codec::Encode;
    use hopline_driver::engine::wire::frame::{self, FrameType};
    let transfer = Transfer {
        handle: 0,
        delivery_id: Some(id),
        delivery_tag: Some(DeliveryTag::from(u64::from(id))),
        message_format: Some(0),
        settled: None,
        more,
        rcv_settle_mode: None,
        state: None,
        resume: false,
        aborted: false,
        batchable: false,
    };
    let mut out = Vec::new();
    let at = frame::start(&mut out, FrameType::Amqp, 0);
    transfer.encode(&mut out);
    out.extend_from_slice(payload);
    frame::finish(&mut out, at, 0);
    out
}
