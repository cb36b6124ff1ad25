//! hopline-engine
