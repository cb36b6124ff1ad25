//! Tests of records and annotations: one program for all, as each costs a link.

mod document;
mod hostile;
mod readers;
mod record;
mod round_trip;
mod support;
