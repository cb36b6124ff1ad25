//! What is private and worth to be fuzzed by itself (feature `fuzzing`).

use crate::selector::{Selector, Subject};
use hopline_driver::engine::wire::message::Layout;

/// Compiles a selector and runs it on an encoded message: whether it matches, and how many octets
/// it took to find out.
///
/// # Errors
/// Why the text is no selector; a message whose sections can't be found.
pub fn select(text: &str, message: &[u8]) -> Result<(bool, usize), String> {
    let selector = Selector::parse(text).map_err(|error| error.to_string())?;
    let layout = Layout::scan(message).map_err(|error| error.to_string())?;
    let bare = message.get(layout.bare..).unwrap_or_default();
    Ok(selector.matches(&Subject { header: layout.header.unwrap_or_default(), bare }))
}
