//! hopline-wire
