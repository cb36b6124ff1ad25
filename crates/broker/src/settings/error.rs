use std::path::PathBuf;

/// What is wrong with the settings, where, and what to write instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file can't be read.
    #[error("the configuration file {} can't be read; give one that is there", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something that it must not.
    #[error("{}:{line}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong in it, and the cure. No text of the file but keys: there may be a
        /// password in it.
        problem: String,
    },
    /// An environment variable has an impossible value.
    #[error("the environment variable {name} is {value:?}: {problem}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to write instead.
        problem: String,
    },
    /// A flag has an impossible value.
    #[error("the flag {name} is {value:?}: {problem}")]
    Flag {
        /// The flag.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to write instead.
        problem: String,
    },
    /// Nobody could connect.
    #[error("nobody may connect: anonymous is false; add a [[user]], or set anonymous to true")]
    Nobody,
    /// The kernel is asked for what nobody would hear of.
    #[error(
        "kernel_timestamps of {place} asks for stamps of sent messages, which need a place to go: \
         set side_records to a file or to \"$timeline\", or kernel_timestamps to \"receive\""
    )]
    NoSideRecords {
        /// The listener's address or the forward's name.
        place: String,
    },
    /// One user has two passwords.
    #[error("there are two [[user]] of the name {name:?}; keep one")]
    SameUser {
        /// The name.
        name: String,
    },
    /// What belongs to that user would be within reach of everybody.
    #[error(
        "a [[user]] of the name \"anonymous\" is the same as peers without a name; rename it, or \
         set anonymous to false"
    )]
    UserOfAnybody,
    /// The links of two forwards would push each other out.
    #[error("there are two [[forward]] of the name {name:?}; give each a `name` of its own")]
    SameForward {
        /// The name.
        name: String,
    },
    /// The files of a listener's TLS can't be used.
    #[error("the listener {address} can't have TLS; correct its [listener.tls]")]
    Tls {
        /// The address as configured.
        address: String,
        /// What the driver said.
        source: hopline_driver::Error,
    },
    /// A forward has nobody to trust.
    #[error("the forward {name:?} can't have TLS; correct its `ca`")]
    ForwardTls {
        /// Its name.
        name: String,
        /// What the driver said.
        source: hopline_driver::Error,
    },
}
