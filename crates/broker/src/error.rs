/// Why the broker can't serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A listener can't be had.
    #[error("the listener {address} can't be opened")]
    Listen {
        /// The address as configured.
        address: String,
        /// What the driver said.
        source: hopline_driver::Error,
    },
    /// The file of side records can't be made.
    #[error("side records can't be written to {}: correct side_records", path.display())]
    SideRecords {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing to listen on.
    #[error("no listener is configured; give --listen HOST:PORT or a [[listener]] in the file")]
    NoListener,
    /// The runtime can't be made.
    #[error("the runtime can't be started; the system may be out of file descriptors")]
    Runtime(#[source] std::io::Error),
}
