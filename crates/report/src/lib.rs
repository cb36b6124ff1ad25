//! Says what the stamps of timelines mean: where each message's time went.
//!
//! Records come in, one JSON object a line (see [`hopline_timeline::record`]); a report goes out.
//! [`run`] is the whole program, [`Report`] its heart: [`Report::add`] takes one record,
//! [`Report::write`] says what there is to say.
//!
//! # What is measured
//!
//! A timeline is cut where the node changes. Each part is a *leg* with a row of its own, told apart
//! by the names of its nodes and by its stages, so that different things never share figures:
//!
//! | leg | from | to |
//! |---|---|---|
//! | end to end | the origin, and DUE | the last stamp, NEXT_EVENT as a rule |
//! | send lag | DUE | the origin |
//! | hop | SEND at one node | RECEIVE at the next |
//! | stay | RECEIVE; at the first node the origin | SEND; at the last node the last stamp |
//! | stage | a stamp | the next one at the same node |
//! | wait | the stamp before | a DEQUEUE or SEND that says what the message waited for |
//!
//! The *origin* is CREATE, or else the first stamp. Hops and stays together are the way from the
//! origin to the last stamp, each moment once; a row's *share* is its part of that time. A node
//! without SEND or RECEIVE lends its last or first stamp instead. The kernel's stamps bound stages
//! only.
//!
//! # Why a message was late
//!
//! A hop, stay or send lag is late where it took longer than [`Late`] says. Its cause is that of
//! its longest part: what a DEQUEUE or SEND waited for, QUEUE_EVENT to NEXT_EVENT, or the stamps
//! of the kernels on both sides. What the stamps can't tell apart is named as such. A message has
//! one cause from end to end, that of its longest hop, stay or send lag.
//!
//! # What the figures promise
//!
//! - Stamps of one clock are subtracted as they are. Stamps of two hosts are compared by way of
//!   the wall clock, with the sum of both hosts' error bounds beside the figure; where a bound is
//!   unknown, there is no figure but a count: no common clock.
//! - A negative difference keeps its sign, is counted, and is part of every figure.
//! - What is missing, saturated, duplicate, malformed, truncated or without a timeline is counted
//!   ([`Counts`]). A duplicate is a timeline that arrived at the same node before and isn't marked
//!   as redelivered; it is left out of the figures.
//! - `min`, `max`, `mean` and `total` are exact. Percentiles come from histograms of 1 ns to
//!   [one hour](LONGEST_NS) with three significant digits, and are absent where nothing was
//!   measured.
//!
//! # Limits
//!
//! Memory doesn't grow with the input: lines of [`MAX_LINE_OCTETS`], [`ROW_LIMIT`] rows of delays
//! and as many of causes, [`NAME_LIMIT`] node names, [`MEMORY_LIMIT`] timelines remembered for the
//! sake of duplicates, [`KERNEL_LIMIT`] records of kernels, [`HEADER_LIMIT`] headers and
//! connections, [`TRACE_LIMIT`] traces of each choice, [`COPY_LIMIT`] of each id asked for. The
//! report notes where rows, names or remembered timelines didn't suffice.
//!
//! ```
//! use hopline_report::{Format, Report, Wanted};
//! use hopline_timeline::record::Record;
//!
//! let line = br#"{"hopline":"message","schema":1,"seq":0,"id":"0af7651916cd43dd8448eb211c80319c",
//!   "address":"q","octets":100,"nodes":[{"name":"publisher","kind":"monotonic",
//!   "host":"6b2f0c6e9d1a4f5e8a7b0c1d2e3f4a5b","wall_offset_ns":"0","error_bound_ns":"0"}],
//!   "stamps":[{"node":0,"stage":"CREATE","at_ns":"100"},{"node":0,"stage":"SEND","at_ns":"350"}
//!   ]}"#;
//! let mut report = Report::new(Wanted { first: 1, ..Wanted::default() })?;
//! report.add(Record::parse_line(line)?)?;
//! let mut text = Vec::new();
//! report.write(Format::Text, &mut text)?;
//! assert!(text.starts_with(b"+ e2e: 0.000 TIMELINE CREATE: P00:00:00.000000  publisher"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cause;
mod compare;
mod counts;
mod distribution;
mod duplicates;
mod error;
mod export;
mod gallery;
mod html;
mod input;
mod interrupt;
mod join;
mod live;
mod log;
mod names;
mod output;
mod record;
mod report;
mod run;
mod table;
mod traces;
mod units;
mod watch;
mod way;

pub use cause::Late;
pub use counts::Counts;
pub use distribution::LONGEST_NS;
pub use duplicates::MEMORY_LIMIT;
pub use error::Error;
pub use export::Exports;
pub use hopline_timeline::record::MAX_LINE_OCTETS;
pub use interrupt::{interrupted, outlast_writer};
pub use join::KERNEL_LIMIT;
pub use live::{LEG_LIMIT, LINE_S, View, ViewLeg, WINDOW_S};
pub use log::DETAIL_LIMIT;
pub use names::{NAME_LIMIT, OTHERS};
pub use output::Format;
pub use report::{HEADER_LIMIT, Report};
pub use run::{Options, Outcome, compare, run};
pub use table::ROW_LIMIT;
pub use traces::{COPY_LIMIT, TRACE_LIMIT, Wanted};
pub use watch::{Watched, watch};
