//! What can keep an experiment from being made.

use std::io;
use std::path::PathBuf;

/// Why an experiment could not be made, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that the experiment starts isn't there.
    #[error(
        "{}: not there; build all programs (cargo build --release --bins) and keep them in one \
         folder, or name theirs with --programs", path.display()
    )]
    Program {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A process could not be started.
    #[error("{name} can't be started: {source}")]
    Start {
        /// The program.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A process ended badly, or sooner than it should.
    #[error("{name} ended with {status}, and said last:\n{said}")]
    Failed {
        /// The program.
        name: String,
        /// Its exit status.
        status: String,
        /// Its last lines.
        said: String,
    },
    /// A process took too long, and was killed.
    #[error("{name} was not done after {seconds} s, and said last:\n{said}")]
    TooLong {
        /// The program.
        name: String,
        /// How long it had.
        seconds: u64,
        /// Its last lines.
        said: String,
    },
    /// A setting that can't be.
    #[error("{setting}: {why}")]
    Setting {
        /// As it is named on the command line.
        setting: &'static str,
        /// What is wrong, and how to mend it.
        why: String,
    },
    /// A file could not be written or read.
    #[error("{}: {source}; check the space and the rights there", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Publishers or subscribers of this process could not go on.
    #[error("the load could not go on: {0}")]
    Load(String),
    /// The records of a run can't be used.
    #[error("the records of a run can't be used: {0}")]
    Records(String),
    /// The timelines could not be read.
    #[error(transparent)]
    Report(#[from] hopline_report::Error),
    /// The user wants no more: what was measured so far is no error.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A file at `path` that can't be written or read.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
