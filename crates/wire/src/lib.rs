//! AMQP 1.0 octets to frames, performatives and message sections, and back.
//!
//! This floor knows what octets mean and nothing of connections: no IO, no clock, no state.
//! Everything that a peer can send is read with bounded work: sizes are checked against the octets
//! that are there, nesting against [`limits::NESTING`], counts against the octets they announce.
//!
//! - [`frame`]: the eight octets before each performative, and the protocol header;
//! - [`performative`]: the nine performatives of part 2 and the five of SASL;
//! - [`definitions`], [`terminus`], [`outcome`]: what they carry;
//! - [`message`]: sections as ranges of octets (for who forwards) and as values (for who reads);
//! - [`codec`], [`value`]: the type system of part 1.

#![forbid(unsafe_code)]

pub mod codec;
pub mod composite;
pub mod control;
pub mod definitions;
mod error;
pub mod frame;
pub mod limits;
pub mod message;
pub mod outcome;
pub mod performative;
pub mod serial;
pub mod terminus;
mod transfer;
pub mod value;

pub use definitions::{AmqpError, DeliveryTag, Fields, Role, Symbol, condition};
pub use error::WireError;
pub use outcome::DeliveryState;
pub use performative::Performative;
pub use serial::Serial;
pub use value::Value;
