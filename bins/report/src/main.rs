//! The `hopline-report` program.
fn main() {}
