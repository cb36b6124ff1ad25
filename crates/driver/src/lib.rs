//! hopline-driver
