//! Tests of records and annotations: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod document;
mod hostile;
mod readers;
mod record;
mod round_trip;
mod support;
