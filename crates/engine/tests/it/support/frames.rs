//! Frames as plain as they can be, to be altered by the test.

use hopline_engine::wire::definitions::{ReceiverSettleMode, SenderSettleMode};
use hopline_engine::wire::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Transfer,
};
use hopline_engine::wire::terminus::{Source, Target, TargetKind};
use hopline_engine::wire::{AmqpError, DeliveryState, DeliveryTag, Role, Symbol};

pub fn open() -> Open {
    Open {
        container_id: "script".into(),
        hostname: None,
        max_frame_size: u32::MAX,
        channel_max: u16::MAX,
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
        incoming_window: 10_000,
        outgoing_window: 10_000,
        handle_max: u32::MAX,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

/// An attach whose handle is the caller's.
pub fn attach(name: &str, handle: u32, role: Role) -> Attach {
    Attach {
        name: name.into(),
        handle,
        role,
        snd_settle_mode: SenderSettleMode::Mixed,
        rcv_settle_mode: ReceiverSettleMode::First,
        source: Some(Box::new(Source::at("from"))),
        target: Some(Box::new(TargetKind::Target(Target::at("to")))),
        unsettled: None,
        incomplete_unsettled: false,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: 0,
        offered_capabilities: Vec::new(),
        desired_capabilities: Vec::new(),
        properties: None,
    }
}

/// A flow of the session.
pub fn flow() -> Flow {
    Flow {
        next_incoming_id: Some(0),
        incoming_window: 10_000,
        outgoing_window: 10_000,
        ..Flow::default()
    }
}

/// A flow that grants credit.
pub fn grant(handle: u32, delivery_count: u32, credit: u32) -> Flow {
    Flow {
        handle: Some(handle),
        delivery_count: Some(delivery_count),
        link_credit: Some(credit),
        ..flow()
    }
}

pub fn tag(octets: &[u8]) -> Option<DeliveryTag> {
    DeliveryTag::new(octets)
}

/// The only transfer of a delivery; its tag is its id.
pub fn transfer(handle: u32, id: u32) -> Transfer {
    Transfer {
        delivery_id: Some(id),
        delivery_tag: tag(&id.to_be_bytes()),
        message_format: Some(0),
        ..go_on(handle)
    }
}

/// A further transfer.
pub fn go_on(handle: u32) -> Transfer {
    Transfer {
        handle,
        delivery_id: None,
        delivery_tag: None,
        message_format: None,
        settled: None,
        more: false,
        rcv_settle_mode: None,
        state: None,
        resume: false,
        aborted: false,
        batchable: false,
    }
}

pub fn disposition(role: Role, first: u32, last: u32, state: Option<DeliveryState>) -> Disposition {
    Disposition { role, first, last: Some(last), settled: true, state, batchable: false }
}

pub fn detach(handle: u32, closed: bool) -> Detach {
    Detach { handle, closed, error: None }
}

pub fn end() -> End {
    End { error: None }
}

pub fn close() -> Close {
    Close { error: None }
}

pub fn error(text: &'static str) -> Option<Box<AmqpError>> {
    Some(Box::new(AmqpError {
        condition: Symbol::from_static(text),
        description: None,
        info: None,
    }))
}
