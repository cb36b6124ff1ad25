//! hopline-broker
