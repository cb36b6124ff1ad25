//! The `hopline-broker` program.
fn main() {}
