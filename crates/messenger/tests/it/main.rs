//! Tests of the messenger against itself, the broker and bad peers: one program for all, as each
//! costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod calls;
mod common;
mod failures;
mod foreign_stamps;
mod limits;
mod peer_to_peer;
mod reconnect;
mod secure;
