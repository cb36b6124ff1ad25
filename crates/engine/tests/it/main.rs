//! Tests of the protocol engine, fed by hand: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod chunks;
mod clocks;
mod closing;
mod credit;
mod deliveries;
mod echoes;
mod handshake;
mod hostile;
mod ids;
mod limits;
mod links;
mod opening;
mod outcomes;
mod ranges;
mod sasl;
mod serials;
mod simulation;
mod small_frames;
mod support;
mod transactions;
mod transfers;
