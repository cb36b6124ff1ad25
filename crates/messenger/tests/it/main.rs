//! Tests of the messenger against itself, the broker and bad peers: one program for all, as each
//! costs a link.

mod calls;
mod common;
mod failures;
mod foreign_stamps;
mod limits;
mod peer_to_peer;
mod reconnect;
mod secure;
