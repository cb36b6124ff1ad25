//! hopline-messenger
