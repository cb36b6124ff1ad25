use super::keys::{Key, Settings};
use super::values::{Address, Kind, Value};
use super::{Listening, SettingsError};
use hopline_driver::KernelTimestamps;
use std::path::PathBuf;

/// What flags say. Absent ones leave the setting to the environment, the file or the default.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--listen HOST:PORT`, as often as given. They take the place of all other listeners, with
    /// the socket options of the first of those and without TLS.
    pub listen: Vec<String>,
    /// `--nodelay on|off`, for all listeners.
    pub nodelay: Option<bool>,
    /// `--kernel-timestamps off|receive|all|1/N`, for all listeners.
    pub kernel_timestamps: Option<String>,
    /// `--side-records off|FILE|$timeline`.
    pub side_records: Option<String>,
    /// `--name NAME`.
    pub name: Option<String>,
    /// `--timelines all|carried|off|1/N`.
    pub timelines: Option<String>,
}

impl Overrides {
    /// What they say of single keys.
    pub(super) fn settings(&self) -> Result<Settings, SettingsError> {
        Ok(Settings {
            name: get("--name", self.name.as_ref())?,
            timelines: get("--timelines", self.timelines.as_ref())?,
            side_records: get("--side-records", self.side_records.as_ref())?,
            ..Settings::default()
        })
    }

    /// What they say of all listeners.
    pub(super) fn listening(&self) -> Result<Listening, SettingsError> {
        let addresses = self.listen.iter().map(|address| parse::<Address>("--listen", address));
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        let addresses = (!addresses.is_empty()).then_some(addresses);
        let kernel_timestamps = self.kernel_timestamps.as_ref();
        let wanted =
            kernel_timestamps.map(|text| parse::<KernelTimestamps>("--kernel-timestamps", text));
        let kernel_timestamps = wanted.transpose()?;
        Ok(Listening { addresses, nodelay: self.nodelay, kernel_timestamps })
    }
}

fn get<K: Kind>(name: &'static str, text: Option<&String>) -> Result<Key<K>, SettingsError> {
    text.map(|text| parse::<K>(name, text).map(Value)).transpose()
}

fn parse<K: Kind>(name: &'static str, text: &str) -> Result<K::Meant, SettingsError> {
    K::parse(text).map_err(|problem| SettingsError::Flag { name, value: text.into(), problem })
}
