//! Tests of the report, from records to text: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod causes;
mod exports;
mod field_report;
mod golden;
mod hostile;
mod page;
mod support;
