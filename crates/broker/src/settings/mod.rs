//! The configuration as people write it: a TOML file, environment variables and flags, each laid
//! over the one before, and the whole over the defaults. What is written is checked where it is
//! read, so that each error names its place.

mod environment;
mod error;
mod file;
mod flags;
mod forward;
mod keys;
mod print;
mod values;

pub use error::SettingsError;
pub use flags::Overrides;
pub use print::print;

use crate::config::{Config, ListenerConfig, SideSink};
use crate::links::ANYBODY;
use environment::Variables;
use hopline_driver::{ClientTls, KernelTimestamps, ServerTls};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// Puts the configuration together: flags win over variables of the environment, those over the
/// file, the file over the defaults. `docs/configuration.md` lists all of them. `variable` looks
/// up the environment, as [`std::env::var_os`] does.
///
/// Nothing is opened but the file, and the certificates and keys that it names.
///
/// # Errors
/// The first mistake: file and line, variable or flag, and what to write instead.
pub fn load(
    flags: &Overrides,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Config, SettingsError> {
    let mut config = Config::default();
    let file = flags.config.clone().or_else(|| variable("HOPLINE_CONFIG").map(PathBuf::from));
    if let Some(path) = file {
        file::read(&path)?.apply(&mut config);
    }
    let variables = Variables(&variable);
    variables.settings()?.apply(&mut config);
    flags.settings()?.apply(&mut config);
    flags.listening()?.or(variables.listening()?).apply(&mut config);
    check(&config)?;
    Ok(config)
}

/// What variables and flags say of all listeners at once.
struct Listening {
    addresses: Option<Vec<String>>,
    nodelay: Option<bool>,
    kernel_timestamps: Option<KernelTimestamps>,
}

impl Listening {
    fn or(self, below: Self) -> Self {
        Self {
            addresses: self.addresses.or(below.addresses),
            nodelay: self.nodelay.or(below.nodelay),
            kernel_timestamps: self.kernel_timestamps.or(below.kernel_timestamps),
        }
    }

    fn apply(self, config: &mut Config) {
        if let Some(addresses) = self.addresses {
            // Socket options that somebody has chosen should not get lost with the port.
            let first = config.listeners.first().map(|first| first.socket.clone());
            let socket = first.unwrap_or_default();
            let listener = |address| ListenerConfig { address, socket: socket.clone(), tls: None };
            config.listeners = addresses.into_iter().map(listener).collect();
        }
        if let Some(nodelay) = self.nodelay {
            for listener in &mut config.listeners {
                listener.socket.nodelay = nodelay;
            }
        }
        if let Some(wanted) = self.kernel_timestamps {
            for listener in &mut config.listeners {
                listener.socket.kernel_timestamps = wanted;
            }
        }
    }
}

/// What only all keys together can tell.
fn check(config: &Config) -> Result<(), SettingsError> {
    if !config.anonymous && config.users.is_empty() {
        return Err(SettingsError::Nobody);
    }
    let mut names = HashSet::new();
    if let Some(user) = config.users.iter().find(|user| !names.insert(&user.name)) {
        return Err(SettingsError::SameUser { name: user.name.clone() });
    }
    if config.anonymous && config.users.iter().any(|user| user.name == ANYBODY) {
        return Err(SettingsError::UserOfAnybody);
    }
    let mut names = HashSet::new();
    if let Some(twice) = config.forwards.iter().find(|forward| !names.insert(&forward.name)) {
        return Err(SettingsError::SameForward { name: twice.name.clone() });
    }
    let listeners = config.listeners.iter().map(|it| (&it.address, &it.socket));
    let forwards = config.forwards.iter().map(|it| (&it.name, &it.socket));
    let mut all = listeners.chain(forwards);
    let stamped = all.find(|(_, socket)| socket.kernel_timestamps.is_of_sent());
    if let (Some((place, _)), SideSink::Off) = (stamped, &config.side_records) {
        return Err(SettingsError::NoSideRecords { place: place.clone() });
    }
    for listener in &config.listeners {
        if let Some(tls) = &listener.tls {
            ServerTls::new(&tls.certificate, &tls.key).map_err(|source| SettingsError::Tls {
                address: listener.address.clone(),
                source,
            })?;
        }
    }
    for forward in config.forwards.iter().filter(|forward| forward.remote.tls) {
        ClientTls::new(forward.ca.as_deref())
            .map_err(|source| SettingsError::ForwardTls { name: forward.name.clone(), source })?;
    }
    Ok(())
}
