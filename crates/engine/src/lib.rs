//! AMQP 1.0 connections, sessions and links without IO: octets and time in, events and octets out.
//!
//! A [`Connection`] is one end of one AMQP connection. It has four kinds of method:
//!
//! - **inputs**: [`Connection::read_buffer`] and [`Connection::handle_read`] take octets,
//!   [`Connection::handle_eof`] their end, [`Connection::handle_timeout`] the passing of time;
//! - **outputs**: [`Connection::poll_event`] decodes on until something is to be told,
//!   [`Connection::poll_transmit`] readies the [`Outbox`], [`Connection::poll_timeout`] says when
//!   `handle_timeout` is due;
//! - **commands**: begin, attach, accept, send, settle, detach, end, close and the like;
//! - **questions**: [`Connection::send_block`], [`Connection::credit`] and the like.
//!
//! After each input: call `poll_event` until it is `None`, answering each event by commands; then
//! `poll_transmit`, and write the outbox. A frame is not decoded before the events of the ones
//! before it were taken, so that answers stand in the order of the questions.
//!
//! Nothing here knows sockets, clocks or tasks.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod counts;
mod departures;
mod dispositions;
mod event;
mod fault;
mod link;
mod outbox;
mod outgoing;
pub mod sasl;
mod session;
mod tags;
mod unsettled;

pub use config::Config;
pub use connection::{Answer, AttachOptions, Connection};
pub use counts::{FrameCounts, Waited};
pub use departures::Departure;
pub use event::{Arrival, Delivery, Event, LinkInfo};
pub use fault::CommandError;
pub use hopline_timeline as timeline;
pub use hopline_wire as wire;
pub use outbox::{Outbox, Slot};
pub use outgoing::Outgoing;
pub use sasl::{Anonymous, Authenticator, ClientSasl};

slotmap::new_key_type! {
    /// A session of one connection; never used again once the session has ended.
    pub struct SessionId;
    /// A link of one connection; never used again once the link is gone.
    pub struct LinkId;
}
