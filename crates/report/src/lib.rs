//! Says what the stamps of timelines mean.

#![forbid(unsafe_code)]

mod counts;
mod distribution;
mod duplicates;
mod error;
mod input;
mod interrupt;
mod log;
mod names;
mod output;
mod record;
mod report;
mod run;
mod table;
mod traces;
mod units;
mod way;

pub use counts::Counts;
pub use distribution::{Distribution, LONGEST_NS};
pub use duplicates::MEMORY_LIMIT;
pub use error::Error;
pub use interrupt::outlast_writer;
pub use log::DETAIL_LIMIT;
pub use names::{NAME_LIMIT, OTHERS};
pub use output::Format;
pub use report::{HEADER_LIMIT, Report};
pub use run::{Options, Outcome, run};
pub use table::ROW_LIMIT;
pub use traces::{COPY_LIMIT, TRACE_LIMIT, Wanted};
