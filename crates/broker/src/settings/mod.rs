//! The configuration as typed: a TOML file, environment variables, flags; flags win over the
//! environment, the environment over the file, the file over the defaults of [`Config`].

mod file;
mod print;

pub use file::FileError;
pub use print::print;

use crate::config::{Config, ListenerConfig, Sampling};
use file::FileSettings;
use std::path::{Path, PathBuf};

/// What flags say. Absent ones leave the setting to the environment, the file or the default.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--listen HOST:PORT`, as often as given; they replace all other listeners.
    pub listen: Vec<String>,
    /// `--nodelay on|off`, for all listeners.
    pub nodelay: Option<bool>,
    /// `--name NAME`.
    pub name: Option<String>,
    /// `--timelines all|1/N|carried|off`.
    pub timelines: Option<String>,
}

/// A setting that can't be used: where it stands, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A variable of the environment.
    #[error("the environment variable {name}={value:?} is wrong: {remedy}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to write.
        remedy: String,
    },
    /// A flag.
    #[error("{flag} {value:?} is wrong: {remedy}")]
    Flag {
        /// Which.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What to write.
        remedy: String,
    },
}

/// The variables that are read.
pub const VARIABLES: [&str; 5] =
    ["HOPLINE_CONFIG", "HOPLINE_LISTEN", "HOPLINE_NODELAY", "HOPLINE_NAME", "HOPLINE_TIMELINES"];

/// Puts the configuration together. `variable` looks up the environment.
///
/// # Errors
/// The first setting that can't be used.
pub fn load(
    flags: &Overrides,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Config, SettingsError> {
    let file = flags.config.clone().or_else(|| variable("HOPLINE_CONFIG").map(PathBuf::from));
    let mut config = match &file {
        Some(path) => FileSettings::read(path)?.into_config(path)?,
        None => Config::default(),
    };
    apply_environment(&mut config, &variable)?;
    apply_flags(&mut config, flags)?;
    Ok(config)
}

fn apply_environment(
    config: &mut Config,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(), SettingsError> {
    let wrong = |name, value: &str, remedy: &str| SettingsError::Variable {
        name,
        value: value.to_owned(),
        remedy: remedy.to_owned(),
    };
    if let Some(listen) = variable("HOPLINE_LISTEN") {
        let addresses: Vec<_> = listen.split(',').map(|one| one.trim().to_owned()).collect();
        if let Some(bad) = addresses.iter().find(|address| !is_address(address)) {
            return Err(wrong("HOPLINE_LISTEN", bad, LISTEN));
        }
        replace_listeners(config, &addresses);
    }
    if let Some(value) = variable("HOPLINE_NODELAY") {
        let on = on_off(&value).ok_or_else(|| wrong("HOPLINE_NODELAY", &value, ON_OFF))?;
        set_nodelay(config, on);
    }
    if let Some(name) = variable("HOPLINE_NAME") {
        config.name = name;
    }
    if let Some(value) = variable("HOPLINE_TIMELINES") {
        config.timelines =
            sampling(&value).ok_or_else(|| wrong("HOPLINE_TIMELINES", &value, SAMPLING))?;
    }
    Ok(())
}

fn apply_flags(config: &mut Config, flags: &Overrides) -> Result<(), SettingsError> {
    let wrong = |flag, value: &str, remedy: &str| SettingsError::Flag {
        flag,
        value: value.to_owned(),
        remedy: remedy.to_owned(),
    };
    if let Some(bad) = flags.listen.iter().find(|address| !is_address(address)) {
        return Err(wrong("--listen", bad, LISTEN));
    }
    if !flags.listen.is_empty() {
        replace_listeners(config, &flags.listen);
    }
    if let Some(on) = flags.nodelay {
        set_nodelay(config, on);
    }
    if let Some(name) = &flags.name {
        config.name.clone_from(name);
    }
    if let Some(value) = &flags.timelines {
        config.timelines = sampling(value).ok_or_else(|| wrong("--timelines", value, SAMPLING))?;
    }
    Ok(())
}

const LISTEN: &str = "write HOST:PORT, such as 127.0.0.1:5672; port 0 takes a free one";
const ON_OFF: &str = "write on or off";
const SAMPLING: &str = "write all, 1/N, carried or off";

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty() && port.parse::<u16>().is_ok()
}

fn on_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// The new listeners have the socket options of the first one there was.
fn replace_listeners(config: &mut Config, addresses: &[String]) {
    let socket = config.listeners.first().map(|first| first.socket.clone()).unwrap_or_default();
    let listener = |address: &String| ListenerConfig {
        address: address.clone(),
        socket: socket.clone(),
        tls: None,
    };
    config.listeners = addresses.iter().map(listener).collect();
}

fn set_nodelay(config: &mut Config, on: bool) {
    config.listeners.iter_mut().for_each(|listener| listener.socket.nodelay = on);
}

/// `all`, `1/N`, `carried` or `off`.
pub(crate) fn sampling(text: &str) -> Option<Sampling> {
    match text {
        "all" => Some(Sampling::All),
        "carried" => Some(Sampling::Carried),
        "off" => Some(Sampling::Off),
        _ => {
            let n: u32 = text.strip_prefix("1/")?.parse().ok()?;
            (n > 0).then_some(Sampling::OneIn(n))
        }
    }
}

/// The file, for messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
