//! Tests of the whole chain, and of the workspace itself: one program for all, as
//! each costs a link.

mod clocks;
mod conformance;
mod floors;
mod forwards;
mod interop_brokers;
mod interop_clients;
mod interop_values;
mod kernel;
mod lab;
mod peers;
mod tidy;
mod transactions;
