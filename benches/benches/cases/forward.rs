//! A message from the octets of a publisher to those of a consumer: one turn of the broker for a
//! batch, over connections in memory. What the peers write is put together here, at a small cost
//! that is counted, too.

use std::hint::black_box;

use hopline_broker::simulation::peer::wire::frame::finish;
use hopline_broker::simulation::peer::wire::message::{Body, Message};
use hopline_broker::simulation::peer::wire::performative::{
    Attach, Begin, Disposition, Flow, Frame, Open, Transfer,
};
use hopline_broker::simulation::peer::wire::terminus::{Source, Target, TargetKind};
use hopline_broker::simulation::peer::wire::{DeliveryState, DeliveryTag, Role, definitions};
use hopline_broker::simulation::{PeerId, PipeEnd, Sim};
use hopline_broker::{Config, Sampling};
use hopline_timeline::Instant;

use super::BATCH;

const AMQP: &[u8] = b"AMQP\x00\x01\x00\x00";
const WINDOW: u32 = u32::MAX >> 1;

/// How deliveries are settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Settling {
    /// From the start.
    Settled,
    /// The consumer accepts a batch by one disposition.
    Range,
    /// It accepts each by a disposition of its own.
    OneByOne,
}

/// A publisher, a broker with one queue, a consumer.
pub(super) struct Forward {
    sim: Sim,
    publisher: (PeerId, PipeEnd),
    consumer: (PeerId, PipeEnd),
    message: Vec<u8>,
    settling: Settling,
    next: u32,
    out: Vec<u8>,
}

impl Forward {
    /// All are attached; bodies have 100 octets. `is_timed`: each message is given a timeline.
    pub(super) fn new(settling: Settling, is_timed: bool) -> Self {
        let timelines = if is_timed { Sampling::All } else { Sampling::Off };
        let config = Config { timelines, ..Config::default() };
        let mut sim = Sim::new(config, Instant::from_nanos(1_000_000));
        let mut attach = |role, name| {
            let (peer, pipe) = sim.connect(usize::MAX);
            pipe.push(&opening(role, name, settling));
            sim.turn(peer);
            pipe.take(usize::MAX);
            (peer, pipe)
        };
        let consumer = attach(Role::Receiver, "consumer");
        let publisher = attach(Role::Sender, "publisher");
        let body = Body::Data(vec![vec![b'.'; 100].into()]);
        let mut message = Vec::new();
        Message { body, ..Message::default() }.encode_bare(&mut message);
        Self { sim, publisher, consumer, message, settling, next: 0, out: Vec::new() }
    }

    /// Forwards a batch.
    pub(super) fn run(&mut self) {
        let first = self.next;
        self.next += BATCH;
        self.publish(first);
        let came = self.consumer.1.take(usize::MAX);
        assert!(came.len() > self.message.len() * BATCH as usize, "{} octets came", came.len());
        self.consume(first);
        black_box((came, self.publisher.1.take(usize::MAX)));
    }

    fn publish(&mut self, first: u32) {
        self.out.clear();
        for id in first..self.next {
            let (at, tag) = (self.out.len(), DeliveryTag::from(u64::from(id)));
            let is_settled = self.settling == Settling::Settled;
            assert!(Transfer::put_plain(&mut self.out, (0, 0), id, &tag, is_settled));
            self.out.extend_from_slice(&self.message);
            finish(&mut self.out, at, 0);
        }
        self.publisher.1.push(&self.out);
        self.sim.turn(self.publisher.0);
    }

    /// Settles what came, and grants as much again.
    fn consume(&mut self, first: u32) {
        self.out.clear();
        let mut accept = |first: u32, last: u32| {
            let disposition = Disposition {
                role: Role::Receiver,
                first,
                last: Some(last),
                settled: true,
                state: Some(DeliveryState::Accepted),
                batchable: false,
            };
            disposition.put(&mut self.out, 0);
        };
        match self.settling {
            Settling::Settled => {}
            Settling::Range => accept(first, self.next - 1),
            Settling::OneByOne => (first..self.next).for_each(|id| accept(id, id)),
        }
        flow(self.next).put(&mut self.out, 0);
        self.consumer.1.push(&self.out);
        self.sim.turn(self.consumer.0);
    }
}

/// All that a peer says before the first message.
fn opening(role: Role, name: &str, settling: Settling) -> Vec<u8> {
    let mut out = AMQP.to_vec();
    let open = Open {
        container_id: name.into(),
        hostname: None,
        max_frame_size: 65_536,
        channel_max: 0,
        idle_time_out: None,
        outgoing_locales: Vec::new(),
        incoming_locales: Vec::new(),
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    };
    open.put(&mut out, 0);
    let begin = Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: WINDOW,
        outgoing_window: WINDOW,
        handle_max: 0,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    };
    begin.put(&mut out, 0);
    let attach = Attach {
        name: name.into(),
        handle: 0,
        role,
        snd_settle_mode: match settling {
            Settling::Settled => definitions::SenderSettleMode::Settled,
            Settling::Range | Settling::OneByOne => definitions::SenderSettleMode::Unsettled,
        },
        rcv_settle_mode: definitions::ReceiverSettleMode::First,
        source: Some(Box::new(Source::at("q"))),
        target: Some(Box::new(TargetKind::Target(Target::at("q")))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: 0,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    };
    attach.put(&mut out, 0);
    if role == Role::Receiver {
        flow(0).put(&mut out, 0);
    }
    out
}

/// Credit for some batches behind the deliveries that came.
fn flow(came: u32) -> Flow {
    Flow {
        next_incoming_id: Some(came),
        incoming_window: WINDOW,
        next_outgoing_id: 0,
        outgoing_window: WINDOW,
        handle: Some(0),
        delivery_count: Some(came),
        link_credit: Some(4 * BATCH),
        ..Flow::default()
    }
}
