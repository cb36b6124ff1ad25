//! Tests of the broker, driven over real sockets: one program for all, as each costs a link.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "a test reports by panicking"
)]

mod addresses;
mod auth;
mod bad_input;
mod browsing;
mod connections;
mod crowds;
mod dispositions;
mod forwards;
mod forwards_secure;
mod forwards_silent;
mod forwards_trouble;
mod groups;
mod kernel_stamps;
mod latency;
mod lifetimes;
mod limits;
mod messages;
mod no_local;
mod priorities;
mod queues;
mod reattach;
mod selectors;
mod sessions;
mod settings;
mod stalls;
mod stealing;
mod stopping;
mod subscriptions;
mod support;
mod termini;
mod timelines;
mod transactions;
mod transactions_limits;
mod transactions_retiring;
mod waits;
