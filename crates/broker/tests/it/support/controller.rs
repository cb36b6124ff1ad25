//! A peer that does transactional work: every frame as a test wants it.

use super::{Broker, Raw, attach, begin, encoded, text};
use bytes::Bytes;
use hopline_driver::engine::wire::codec::Encode;
use hopline_driver::engine::wire::control::Control;
use hopline_driver::engine::wire::frame::{self, FrameType};
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::outcome::TransactionalState;
use hopline_driver::engine::wire::performative::{
    Attach, Detach, Disposition, Flow, Frame, Performative, Transfer,
};
use hopline_driver::engine::wire::terminus::{Coordinator, Declare, Discharge, TargetKind};
use hopline_driver::engine::wire::{DeliveryState, DeliveryTag, Fields, Role, Symbol, Value};
use std::collections::VecDeque;

/// A connection with a session, and a coordinator at handle 0. Other links are to be attached
/// with the handles from 1 on, in their order.
pub struct Controller {
    pub raw: Raw,
    skipped: VecDeque<(u16, Performative, Vec<u8>)>,
    /// The id of the next delivery on the session of channel 0.
    pub next_id: u32,
    sent: u32,
}

impl Controller {
    pub fn open(broker: &Broker) -> Self {
        let mut controller = Self::open_without(broker);
        controller.attach(&coordinator(&[]));
        controller
    }

    /// Without a coordinator.
    pub fn open_without(broker: &Broker) -> Self {
        let raw = Raw::open(broker);
        Self { raw, skipped: VecDeque::new(), next_id: 0, sent: 0 }
    }

    /// Another session; its deliveries count from 0.
    pub fn begin(&mut self, channel: u16) {
        self.put(channel, &begin());
        self.take("begin", |_, frame, _| matches!(frame, Performative::Begin(_)).then_some(()));
    }

    pub fn put(&mut self, channel: u16, frame: &impl Frame) {
        let mut out = Vec::new();
        frame.put(&mut out, channel);
        self.raw.write(&out);
    }

    /// The first frame of which `pick` makes something, now or later.
    pub fn take<T>(
        &mut self,
        what: &str,
        pick: impl Fn(u16, &Performative, &[u8]) -> Option<T>,
    ) -> T {
        let known = self.skipped.iter().enumerate();
        let known = known.filter_map(|(at, (c, f, p))| Some((at, pick(*c, f, p)?))).next();
        if let Some((at, found)) = known {
            self.skipped.remove(at);
            return found;
        }
        loop {
            let Some((channel, frame, payload)) = self.raw.frame_with_payload() else {
                panic!("no {what} before the end; these came: {:?}", self.skipped);
            };
            match pick(channel, &frame, &payload) {
                Some(found) => return found,
                None => self.skipped.push_back((channel, frame, payload)),
            }
        }
    }

    pub fn attach(&mut self, attach: &Attach) -> Attach {
        self.put(0, attach);
        let name = attach.name.clone();
        self.take("attach", |_, frame, _| match frame {
            Performative::Attach(answer) if answer.name == name => Some(answer.clone()),
            _ => None,
        })
    }

    pub fn sender(&mut self, handle: u32, address: &str) {
        self.attach(&attach(&format!("link-{handle}"), handle, Role::Sender, address));
    }

    pub fn receiver(&mut self, handle: u32, address: &str, credit: u32) {
        self.attach(&attach(&format!("link-{handle}"), handle, Role::Receiver, address));
        self.grant(handle, credit, None);
    }

    /// Credit for so many deliveries since the attach, in a transaction or not.
    pub fn grant(&mut self, handle: u32, credit: u32, txn: Option<&Bytes>) {
        let key = Symbol::from_static("txn-id");
        let properties = txn.map(|txn| Fields(vec![(key, Value::Binary(txn.clone()))]));
        let flow = Flow { properties, link_credit: Some(credit), ..self.flow(Some(handle)) };
        self.put(0, &flow);
    }

    pub fn flow(&self, handle: Option<u32>) -> Flow {
        Flow {
            next_outgoing_id: self.sent,
            handle,
            delivery_count: handle.and(Some(0)),
            ..super::flow(0)
        }
    }

    /// Waits until the broker has read, and answered, all that was sent.
    pub fn sync(&mut self) {
        let flow = Flow { echo: true, link_credit: None, ..self.flow(None) };
        self.put(0, &flow);
        self.take("echo", |channel, frame, _| match frame {
            Performative::Flow(Flow { handle: None, .. }) if channel == 0 => Some(()),
            _ => None,
        });
    }

    /// A delivery in one transfer, not sent yet; its id.
    pub fn octets(&mut self, handle: u32, payload: &[u8], form: Form<'_>) -> (u32, Vec<u8>) {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.sent += 1;
        let state = form.txn.map(|txn| in_transaction(txn, None));
        let transfer = Transfer { state, settled: Some(form.settled), ..first(handle, id) };
        (id, framed(0, &transfer, payload))
    }

    pub fn post_octets(&mut self, handle: u32, payload: &[u8], form: Form<'_>) -> u32 {
        let (id, octets) = self.octets(handle, payload, form);
        self.raw.write(&octets);
        id
    }

    /// An unsettled message, in a transaction or not; its id.
    pub fn post(&mut self, handle: u32, body: &str, txn: Option<&Bytes>) -> u32 {
        self.post_octets(handle, &encoded(&text(body)), Form { txn, settled: false })
    }

    /// As [`Self::post`], and waits for the outcome.
    pub fn posted(&mut self, handle: u32, body: &str, txn: Option<&Bytes>) -> DeliveryState {
        let id = self.post(handle, body, txn);
        self.outcome(id)
    }

    /// What the broker says of a delivery of ours.
    pub fn outcome(&mut self, id: u32) -> DeliveryState {
        self.disposition(Role::Receiver, id).state.expect("a state")
    }

    /// The broker's disposition that covers a delivery; the others of its range are lost.
    pub fn disposition(&mut self, by: Role, id: u32) -> Disposition {
        self.take("disposition", |_, frame, _| match frame {
            Performative::Disposition(d) if d.role == by => {
                let last = d.last.unwrap_or(d.first);
                (id.wrapping_sub(d.first) <= last.wrapping_sub(d.first)).then(|| d.clone())
            }
            _ => None,
        })
    }

    pub fn control(&mut self, control: &Control) -> DeliveryState {
        let id = self.control_only(control);
        self.outcome(id)
    }

    pub fn control_only(&mut self, control: &Control) -> u32 {
        self.post_octets(0, &control_octets(control), Form::default())
    }

    pub fn declare(&mut self) -> Bytes {
        match self.control(&Control::Declare(Declare { global_id: None })) {
            DeliveryState::Declared(declared) => declared.txn_id,
            other => panic!("not declared: {other:?}"),
        }
    }

    pub fn discharge(&mut self, txn: &[u8], fail: bool) -> DeliveryState {
        self.control(&discharge(txn, fail))
    }

    pub fn commit(&mut self, txn: &[u8]) {
        assert_eq!(self.discharge(txn, false), DeliveryState::Accepted);
    }

    pub fn roll_back(&mut self, txn: &[u8]) {
        assert_eq!(self.discharge(txn, true), DeliveryState::Accepted);
    }

    /// The next delivery that comes: its transfer and body.
    pub fn receive(&mut self) -> (Transfer, String) {
        self.take("delivery", |_, frame, payload| match frame {
            Performative::Transfer(transfer) => Some((transfer.clone(), body_of(payload))),
            _ => None,
        })
    }

    pub fn receive_all(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.receive().1).collect()
    }

    /// The bodies of all deliveries that came until now.
    pub fn came(&mut self) -> Vec<String> {
        self.sync();
        let is_transfer =
            |f: &(u16, Performative, Vec<u8>)| matches!(f.1, Performative::Transfer(_));
        let came = self.skipped.iter().filter(|frame| is_transfer(frame)).count();
        self.receive_all(came)
    }

    /// Of all that the broker has sent until now nothing is a delivery.
    pub fn assert_no_delivery(&mut self) {
        let came = self.came();
        assert!(came.is_empty(), "{came:?}");
    }

    /// An outcome for deliveries of the broker.
    pub fn dispose(&mut self, (first, last): (u32, u32), state: DeliveryState, settled: bool) {
        let (last, state) = (Some(last), Some(state));
        let role = Role::Receiver;
        self.put(0, &Disposition { role, first, last, settled, state, batchable: false });
    }

    pub fn detach(&mut self, handle: u32, closed: bool) {
        self.put(0, &Detach { handle, closed, error: None });
        assert_eq!(self.detached(handle), None);
    }

    /// Waits for the broker's detach; its condition.
    pub fn detached(&mut self, handle: u32) -> Option<String> {
        self.take("detach", |_, frame, _| match frame {
            Performative::Detach(detach) if detach.handle == handle => {
                Some(detach.error.as_ref().map(|error| error.condition.to_string()))
            }
            _ => None,
        })
    }
}

/// How a delivery is sent.
#[derive(Copy, Clone, Default)]
pub struct Form<'a> {
    pub txn: Option<&'a Bytes>,
    pub settled: bool,
}

/// The first transfer of a delivery, and the only one.
pub fn first(handle: u32, id: u32) -> Transfer {
    Transfer {
        handle,
        delivery_id: Some(id),
        delivery_tag: Some(DeliveryTag::from(u64::from(id))),
        message_format: Some(0),
        settled: None,
        more: false,
        rcv_settle_mode: None,
        state: None,
        resume: false,
        aborted: false,
        batchable: false,
    }
}

pub fn framed(channel: u16, transfer: &Transfer, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = frame::start(&mut out, FrameType::Amqp, channel);
    transfer.encode(&mut out);
    out.extend_from_slice(payload);
    frame::finish(&mut out, at, 0);
    out
}

/// The attach of a coordinator's link at handle 0 whose source has these outcomes.
pub fn coordinator(outcomes: &[&'static str]) -> Attach {
    let mut attach = attach("control", 0, Role::Sender, "unused");
    let capabilities = vec![Symbol::from_static("amqp:local-transactions")];
    attach.target = Some(Box::new(TargetKind::Coordinator(Coordinator { capabilities })));
    if let Some(source) = &mut attach.source {
        source.address = None;
        source.outcomes = outcomes.iter().copied().map(Symbol::from_static).collect();
    }
    attach
}

pub fn discharge(txn: &[u8], fail: bool) -> Control {
    Control::Discharge(Discharge { txn_id: Bytes::copy_from_slice(txn), fail })
}

pub fn control_octets(control: &Control) -> Vec<u8> {
    let mut out = Vec::new();
    control.write(&mut out);
    out
}

/// The state of a delivery in a transaction.
pub fn in_transaction(txn: &Bytes, outcome: Option<DeliveryState>) -> DeliveryState {
    let (txn_id, outcome) = (txn.clone(), outcome.map(Box::new));
    DeliveryState::Transactional(TransactionalState { txn_id, outcome })
}

fn body_of(payload: &[u8]) -> String {
    let message = Message::decode(&Bytes::copy_from_slice(payload)).expect("a message");
    let octets = message.octets().expect("a data body");
    String::from_utf8(octets.to_vec()).expect("text")
}
