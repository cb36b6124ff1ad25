//! What is said on the standard error about lines that are no records.

use std::fmt::Display;
use std::io::Write;

use crate::units::Printable;

/// How many malformed lines are named one by one; further ones are only counted.
pub const DETAIL_LIMIT: u64 = 10;

const PROGRAM: &str = "hopline-report";

/// The longest part of a message that quotes the input, in characters.
const QUOTE_LIMIT: usize = 200;

/// Says things without ever failing: a report is worth more than its complaints.
pub(crate) struct Log<W> {
    out: W,
    malformed: u64,
}

impl<W: Write> Log<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, malformed: 0 }
    }

    /// Where things were said.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// A line that is left out.
    pub(crate) fn malformed(&mut self, name: &str, line: u64, what: &impl Display) {
        self.malformed += 1;
        if self.malformed <= DETAIL_LIMIT {
            let what: String = what.to_string().chars().take(QUOTE_LIMIT).collect();
            self.say(format_args!("{}:{line}: {}", Printable(name), Printable(&what)));
        }
    }

    /// Anything else.
    pub(crate) fn say(&mut self, what: impl Display) {
        let _ = writeln!(self.out, "{PROGRAM}: {what}");
    }

    /// How many malformed lines weren't named.
    pub(crate) fn finish(&mut self) {
        let unnamed = self.malformed.saturating_sub(DETAIL_LIMIT);
        if unnamed > 0 {
            self.say(format_args!("{unnamed} more malformed lines, left out as well"));
        }
    }
}
