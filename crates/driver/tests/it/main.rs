//! Tests of connections over real sockets: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod held;
mod socket_options;
mod tls;
mod url;
