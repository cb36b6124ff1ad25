//! What can keep a report from being made.

use std::io;
use std::path::PathBuf;

/// Why a report could not be made, or not from all of its input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened.
    #[error("{}: can't be opened: {source}; check the name and the permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading stopped in the middle; what came before is in the report.
    #[error("{name}:{line}: reading stopped: {source}; the report covers the lines before")]
    Read {
        /// The file, `-` for the standard input.
        name: String,
        /// The line that could not be read.
        line: u64,
        /// What the system, or the gzip decoder, said.
        source: io::Error,
    },
    /// The report could not be written.
    #[error("the report can't be written: {0}; check the space and the rights at its destination")]
    Write(#[source] io::Error),
    /// A file beside the report could not be written.
    #[error("{}: {source}; check the space and the rights there", path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system didn't let the program catch Ctrl-C.
    #[error("Ctrl-C can't be caught: {0}; read the records from a file")]
    Signal(#[source] io::Error),
    /// A histogram could not be made.
    #[error("no histogram of 1 ns to 1 h: {0:?}; this is a fault of the program, please report it")]
    Histogram(hdrhistogram::CreationError),
}

impl Error {
    /// Whether the reader of the report left: a pipe such as `| head` that took what it needed.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Write(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }
}
