//! The way of a message, and steps of it, each as something to do once more.

mod forward;
mod records;
mod units;

use forward::{Forward, Settling};
use records::{Parse, Report};
use units::{Decode, Scan, Stamps};

/// Deliveries that are handled at once where that is how they come.
pub(crate) const BATCH: u32 = 64;

/// Records of one report: so many that what a report costs in all does not count.
pub(crate) const RECORDS: u32 = 1_600;

/// Something to do once more, and of how many messages it is the work.
pub(crate) struct Case {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Messages that one time handles; figures are for one of them.
    pub(crate) messages: u32,
    /// Makes it ready.
    pub(crate) prepare: fn() -> Box<dyn FnMut()>,
}

/// All of them.
pub(crate) const CASES: [Case; 9] = [
    Case { name: "decode_transfer", messages: 1, prepare: || once(Decode::new(), Decode::run) },
    Case { name: "scan_message", messages: 1, prepare: || once(Scan::new(), Scan::run) },
    Case { name: "stamp_a_stay", messages: 1, prepare: || once(Stamps::new(), Stamps::run) },
    Case {
        name: "forward_settled",
        messages: BATCH,
        prepare: || forward(Settling::Settled, false),
    },
    Case { name: "forward_accepted", messages: BATCH, prepare: || forward(Settling::Range, false) },
    Case {
        name: "forward_settled_one_by_one",
        messages: BATCH,
        prepare: || forward(Settling::OneByOne, false),
    },
    Case { name: "forward_timed", messages: BATCH, prepare: || forward(Settling::Range, true) },
    Case { name: "parse_record", messages: 1, prepare: || once(Parse::new(), Parse::run) },
    Case { name: "report_record", messages: RECORDS, prepare: || once(Report::new(), Report::run) },
];

fn once<T: 'static>(mut it: T, run: fn(&mut T)) -> Box<dyn FnMut()> {
    Box::new(move || run(&mut it))
}

fn forward(settling: Settling, is_timed: bool) -> Box<dyn FnMut()> {
    once(Forward::new(settling, is_timed), Forward::run)
}
