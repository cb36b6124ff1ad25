//! Octets that came as a file of records: a report of them, in each form.

use crate::input::Input;
use crate::memory;
use hopline_report::{Format, Options, Wanted, run as report};

/// One octet says which traces are asked for and in which form; the rest is the input.
pub fn run(octets: &[u8]) {
    let mut input = Input::new(octets);
    let choice = input.octet();
    let octets = input.take(usize::MAX);
    let format = [Format::Text, Format::Json, Format::Csv][usize::from(choice % 3)];
    let [first, slowest] = [choice >> 2 & 3, choice >> 4 & 3].map(usize::from);
    let wanted = Wanted { first, slowest, ..Wanted::default() };
    let options = Options { wanted, format, ..Options::default() };
    let (mut out, mut log) = (Vec::new(), Vec::new());
    memory::in_proportion(octets.len(), 4096, 16 << 20, || {
        report(&options, octets, &mut out, &mut log).expect("a report is made of whatever comes")
    });
    let [out, log] = [out, log].map(|text| String::from_utf8(text).expect("it is text"));
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n');
    assert!(is_plain(&log), "{log:?}");
    match format {
        Format::Json => drop(serde_json::from_str::<serde_json::Value>(&out).expect("it is JSON")),
        _ => assert!(is_plain(&out), "{out:?}"),
    }
}
