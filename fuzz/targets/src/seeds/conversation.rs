use crate::engine_support::{
    attach, begin, close, detach, disposition, end, error, flow, go_on, grant, transfer,
};
use hopline_engine::wire::codec::Encode;
use hopline_engine::wire::outcome::Received;
use hopline_engine::wire::performative::{Attach, Begin, Detach, Flow, Transfer};
use hopline_engine::wire::{DeliveryState, Role};

/// The channel and the body of a frame.
pub(super) type Body = (u8, Vec<u8>);

/// What a peer may say once the connection is open: a conversation each.
pub(super) fn all() -> Vec<Vec<Body>> {
    vec![incoming(), outgoing(), wrapping(), crossing(), busy()]
}

fn on(channel: u8, performative: &impl Encode) -> Body {
    with(channel, performative, b"")
}

fn with(channel: u8, performative: &impl Encode, payload: &[u8]) -> Body {
    let mut body = Vec::new();
    performative.encode(&mut body);
    body.extend_from_slice(payload);
    (channel, body)
}

/// Deliveries to us: whole, in parts, aborted, with a state, settled later.
fn incoming() -> Vec<Body> {
    let more = |id| Transfer { more: true, ..transfer(0, id) };
    let state = Some(DeliveryState::Received(Received { section_number: 0, section_offset: 1 }));
    vec![
        on(0, &begin()),
        on(0, &attach("in", 0, Role::Sender)),
        with(0, &transfer(0, 0), b"whole"),
        with(0, &more(1), b"in two"),
        with(0, &go_on(0), b" parts"),
        with(0, &more(2), b"never"),
        on(0, &Transfer { aborted: true, ..go_on(0) }),
        with(0, &Transfer { settled: Some(true), ..transfer(0, 3) }, b"at once"),
        with(0, &Transfer { state, ..transfer(0, 4) }, b"resumed"),
        on(0, &Flow { next_outgoing_id: 7, echo: true, ..flow() }),
        on(0, &disposition(Role::Sender, 0, 4, Some(DeliveryState::Accepted))),
        on(0, &detach(0, true)),
        on(0, &end()),
        on(0, &close()),
    ]
}

/// Credit for us: granted, taken back, drained, echoed.
fn outgoing() -> Vec<Body> {
    let unlimited = Flow { available: Some(3), ..grant(1, 0, u32::MAX) };
    vec![
        on(1, &begin()),
        on(1, &attach("out", 1, Role::Receiver)),
        on(1, &grant(1, 0, 10)),
        on(1, &Flow { drain: true, ..grant(1, 0, 10) }),
        on(1, &Flow { echo: true, incoming_window: 0, ..flow() }),
        on(1, &unlimited),
        on(1, &grant(1, 0, 0)),
        on(1, &disposition(Role::Receiver, 0, u32::MAX, Some(DeliveryState::Released))),
        on(1, &Detach { error: error("amqp:internal-error"), ..detach(1, false) }),
        on(1, &attach("out", 1, Role::Receiver)),
        on(1, &end()),
    ]
}

/// Every number close to where it wraps.
fn wrapping() -> Vec<Body> {
    let edge = 0xffff_fffe;
    let count = Some(edge);
    vec![
        on(2, &Begin { next_outgoing_id: edge, incoming_window: u32::MAX, ..begin() }),
        on(2, &Attach { initial_delivery_count: count, ..attach("wrap", 7, Role::Sender) }),
        with(2, &transfer(7, edge), b"last"),
        with(2, &transfer(7, edge.wrapping_add(1)), b"very last"),
        with(2, &transfer(7, 0), b"first"),
        on(2, &disposition(Role::Sender, edge, 0, None)),
        on(2, &Flow { next_outgoing_id: 1, ..grant(7, 1, 1) }),
    ]
}

/// Sessions and links with one name, on one handle, ended and begun again.
fn crossing() -> Vec<Body> {
    vec![
        on(0, &begin()),
        on(3, &begin()),
        on(0, &attach("same", 0, Role::Sender)),
        on(3, &attach("same", 0, Role::Sender)),
        on(3, &attach("same", 1, Role::Receiver)),
        on(0, &detach(0, true)),
        on(3, &end()),
        on(3, &begin()),
        on(3, &attach("same", 0, Role::Receiver)),
        on(0, &end()),
        on(0, &begin()),
    ]
}

/// More to answer than may wait to be written.
fn busy() -> Vec<Body> {
    let link = [on(0, &attach("to and fro", 0, Role::Receiver)), on(0, &detach(0, true))];
    let links = (0..150).flat_map(|_| link.clone());
    [on(0, &begin())].into_iter().chain(links).collect()
}
