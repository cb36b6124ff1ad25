//! Octets that came as a message: its layout, its values, its values written again.

use crate::memory;
use bytes::Bytes;

use hopline_wire::codec::Encode;
use hopline_wire::message::{Layout, Message, annotation};

use std::ops::Range;

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
    let Ok(message) = message else { return };
    assert!(layout.is_ok(), "a message is read by its layout");
    let mut written = Vec::new();
    message.encode(&mut written);
    let again = Message::decode(&written.into()).expect("what was written can be read");
    let (one, other) = (format!("{message:?}"), format!("{again:?}"));
    assert_eq!(one, other, "by text, for the sake of NaN");
}

/// Every section is within the octets, in order, and annotations within their section.
fn check_layout(layout: &Layout, octets: &[u8]) {
    let before = [&layout.delivery_annotations, &layout.message_annotations];
    let behind = [&layout.properties, &layout.application_properties];
    let ends = |range: &Range<usize>| {
        assert!(range.start < range.end && range.end <= octets.len());
        (range.start, range.end)
    };
    let mut at = 0;
    let mut follow = |range: &Range<usize>| {
        let (start, end) = ends(range);
        assert!(start >= at, "sections overlap");
        at = end;
    };
    before.into_iter().flatten().for_each(&mut follow);
    assert!(layout.bare <= layout.body.start);
    behind.into_iter().flatten().for_each(&mut follow);
    follow(&layout.body);
    layout.footer.iter().for_each(&mut follow);
    for map in before.into_iter().chain([&layout.footer]).flatten() {
        let mut left = map.len();
        annotation(&octets[map.clone()], |_, key, value| left -= key.len() + value.len());
    }
}
