//! Tests of the codec: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod common;
mod composites;
mod field_order;
mod hostile;
mod reports;
mod round_trip;
mod sections;
mod values;
