//! Ctrl-C at the end of a pipe.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::error::Error;

/// Lets the program outlast the one that writes its records.
///
/// A terminal sends Ctrl-C to a whole pipe. The subscriber before the report then leaves in good
/// order, and the report of what it wrote is still wanted; a second Ctrl-C ends the report too.
///
/// # Errors
/// [`Error::Signal`].
pub fn outlast_writer() -> Result<(), Error> {
    interrupted().map(drop)
}

/// As [`outlast_writer`]; tells by what it returns that Ctrl-C came.
///
/// # Errors
/// [`Error::Signal`].
pub fn interrupted() -> Result<Arc<AtomicBool>, Error> {
    let interrupted = Arc::new(AtomicBool::new(false));
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupted)).map_err(Error::Signal)?;
    flag::register(SIGINT, Arc::clone(&interrupted)).map_err(Error::Signal)?;
    Ok(interrupted)
}
