//! Values of every type, and what became of them on their way through a broker;
//! `tests/values/README.md` says what the parts are.

mod case;
mod client;
mod deviations;
mod native;
mod text;

pub use case::{Case, cases};
pub use client::{Line, ValueClient};
pub use deviations::{Deviations, Direction};
pub use native::{receive_all, send_messages, send_octets};
pub use text::{bare, text_of_message};

/// Octets in hexadecimal.
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Octets from hexadecimal.
///
/// # Panics
/// If it is none.
pub fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "half an octet in {text}");
    let octet = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    (0..text.len()).step_by(2).map(octet).collect()
}
