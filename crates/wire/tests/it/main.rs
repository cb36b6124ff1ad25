//! Tests of the codec: one program for all, as each costs a link.

mod common;
mod composites;
mod field_order;
mod hostile;
mod reports;
mod round_trip;
mod sections;
mod values;
