//! Octets that came as a message: its layout, its values, its values written again.

use crate::memory;
use bytes::Bytes;
use hopline_wire::codec::Encode;
use hopline_wire::message::{Body, Layout, Message, annotation};

/// See [`crate::performatives`]; application-properties take a string and a value for each pair.
const PER_OCTET: usize = 128;

/// The octets are an encoded message.
pub fn run(octets: &[u8]) {
    let layout = memory::in_proportion(octets.len(), 8, 512, || Layout::scan(octets));
    if let Ok(layout) = &layout {
        check_layout(layout, octets);
    }
    let octets = Bytes::copy_from_slice(octets);
    let read = || Message::decode(&octets);
    let message = memory::in_proportion(octets.len(), PER_OCTET, 1024, read);
    let Ok(mut message) = message else { return };
    assert!(layout.is_ok(), "a message is read by its layout");
    if message.body == Body::Data(Vec::new()) {
        // Where there is no section, an empty one is written.
        message.body = Body::default();
    }
    let mut written = Vec::new();
    message.encode(&mut written);
    let again = Message::decode(&written.into()).expect("what was written can be read");
    let (one, other) = (format!("{message:?}"), format!("{again:?}"));
    assert_eq!(one, other, "by text, for the sake of NaN");
}

/// All sections are within the octets and in order, what is passed on as it is begins between
/// them, and the entries of annotations are within their section.
fn check_layout(layout: &Layout, octets: &[u8]) {
    let annotations = [&layout.delivery_annotations, &layout.message_annotations];
    let bare = Some(layout.bare..layout.bare);
    let body = Some(layout.body.clone()).filter(|body| !body.is_empty());
    let behind = [&bare, &layout.properties, &layout.application_properties, &body, &layout.footer];
    let mut at = 0;
    for range in annotations.into_iter().chain(behind).flatten() {
        assert!(at <= range.start && range.start <= range.end, "sections overlap");
        at = range.end;
    }
    assert!(at <= octets.len());
    for map in annotations.into_iter().chain([&layout.footer]).flatten() {
        let mut left = map.len();
        annotation(&octets[map.clone()], |_, key, value| left -= key.len() + value.len());
    }
}
