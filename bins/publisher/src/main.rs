//! The `hopline-publish` program.
fn main() {}
