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
    /// Nothing to listen on.
    #[error("no listener is configured; give --listen HOST:PORT or a [[listener]] in the file")]
    NoListener,
    /// The runtime can't be made.
    #[error("the runtime can't be started; the system may be out of file descriptors")]
    Runtime(#[source] std::io::Error),
}
