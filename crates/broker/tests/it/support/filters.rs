//! Sources with filters, and messages for them.

use super::text;
use hopline_driver::engine::wire::message::Message;
use hopline_driver::engine::wire::terminus::Source;
use hopline_driver::engine::wire::{Fields, Symbol, Value};

pub const SELECTOR: &str = "apache.org:selector-filter:string";
pub const SELECTOR_CODE: u64 = 0x0000_468c_0000_0004;
pub const NO_LOCAL: &str = "apache.org:no-local-filter:list";
pub const NO_LOCAL_CODE: u64 = 0x0000_468c_0000_0003;

pub fn described(descriptor: impl Into<Value>, value: impl Into<Value>) -> Value {
    Value::Described(Box::new((descriptor.into(), value.into())))
}

pub fn by_name(name: &'static str, value: impl Into<Value>) -> Value {
    described(Symbol::from_static(name), value)
}

/// A source with these filters.
pub fn filtered(address: &str, filters: impl IntoIterator<Item = (&'static str, Value)>) -> Source {
    let named = filters.into_iter().map(|(name, value)| (Symbol::from_static(name), value));
    Source { filter: Some(Fields(named.collect())), ..Source::at(address) }
}

/// A source with one selector.
pub fn selecting(address: &str, selector: &str) -> Source {
    filtered(address, [("selector", by_name(SELECTOR, selector))])
}

/// The same, to look and leave what is there.
pub fn browsing(source: Source) -> Source {
    Source { distribution_mode: Some(Symbol::from_static("copy")), ..source }
}

/// A message with its body as application-property `n`, too.
pub fn numbered(n: i32) -> Message {
    let application_properties = vec![("n".to_owned(), Value::Int(n))];
    Message { application_properties, ..text(n.to_string()) }
}
