//! The `hopline-subscribe` program.
fn main() {}
