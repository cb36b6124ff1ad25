//! Messages (part 3, 3.2): their sections as ranges of octets, and as values.
//!
//! Who forwards uses [`Layout`]: it finds where the sections are and leaves the bare message alone.
//! Who writes and reads messages uses [`Message`].

mod annotated;
mod layout;
mod sections;

pub use annotated::{Body, Message};
pub use layout::{Head, Layout, annotation, message_annotations, section};
pub use sections::{Header, Properties, Timestamp};
