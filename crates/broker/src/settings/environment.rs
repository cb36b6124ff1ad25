//! The variables of the environment: `HOPLINE_` and the path of a key in capitals.

use super::keys::{Key, LimitSettings, NodeSettings, Settings};
use super::values::{Address, Kind, Switch, Value};
use super::{Listening, SettingsError};
use hopline_driver::KernelTimestamps;
use std::ffi::OsString;

/// The environment.
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    /// What it says of single keys.
    pub(super) fn settings(&self) -> Result<Settings, SettingsError> {
        Ok(Settings {
            name: self.get("HOPLINE_NAME")?,
            anonymous: self.get("HOPLINE_ANONYMOUS")?,
            timelines: self.get("HOPLINE_TIMELINES")?,
            side_records: self.get("HOPLINE_SIDE_RECORDS")?,
            stop_timeout: self.get("HOPLINE_STOP_TIMEOUT")?,
            limits: self.limits()?,
            nodes: self.nodes()?,
            listener: None,
            user: None,
            forward: None,
        })
    }

    /// What it says of all listeners.
    pub(super) fn listening(&self) -> Result<Listening, SettingsError> {
        Ok(Listening {
            addresses: self.addresses("HOPLINE_LISTEN")?,
            nodelay: self.get::<Switch>("HOPLINE_NODELAY")?.map(|Value(nodelay)| nodelay),
            kernel_timestamps: self
                .get::<KernelTimestamps>("HOPLINE_KERNEL_TIMESTAMPS")?
                .map(|Value(wanted)| wanted),
        })
    }

    fn limits(&self) -> Result<LimitSettings, SettingsError> {
        Ok(LimitSettings {
            connections: self.get("HOPLINE_LIMITS_CONNECTIONS")?,
            connections_per_address: self.get("HOPLINE_LIMITS_CONNECTIONS_PER_ADDRESS")?,
            max_frame_size: self.get("HOPLINE_LIMITS_MAX_FRAME_SIZE")?,
            channel_max: self.get("HOPLINE_LIMITS_CHANNEL_MAX")?,
            handle_max: self.get("HOPLINE_LIMITS_HANDLE_MAX")?,
            max_message_size: self.get("HOPLINE_LIMITS_MAX_MESSAGE_SIZE")?,
            idle_timeout: self.get("HOPLINE_LIMITS_IDLE_TIMEOUT")?,
            handshake_timeout: self.get("HOPLINE_LIMITS_HANDSHAKE_TIMEOUT")?,
            producer_credit: self.get("HOPLINE_LIMITS_PRODUCER_CREDIT")?,
            transactions: self.get("HOPLINE_LIMITS_TRANSACTIONS")?,
            transaction_timeout: self.get("HOPLINE_LIMITS_TRANSACTION_TIMEOUT")?,
            transaction_deliveries: self.get("HOPLINE_LIMITS_TRANSACTION_DELIVERIES")?,
            transaction_octets: self.get("HOPLINE_LIMITS_TRANSACTION_OCTETS")?,
        })
    }

    fn nodes(&self) -> Result<NodeSettings, SettingsError> {
        Ok(NodeSettings {
            auto_create: self.get("HOPLINE_NODES_AUTO_CREATE")?,
            deny: self.list("HOPLINE_NODES_DENY")?,
            queues: self.list("HOPLINE_NODES_QUEUES")?,
            topic_prefixes: self.list("HOPLINE_NODES_TOPIC_PREFIXES")?,
            group_queues: self.list("HOPLINE_NODES_GROUP_QUEUES")?,
            priority_queues: self.list("HOPLINE_NODES_PRIORITY_QUEUES")?,
            max_messages: self.get("HOPLINE_NODES_MAX_MESSAGES")?,
            max_octets: self.get("HOPLINE_NODES_MAX_OCTETS")?,
            max_nodes: self.get("HOPLINE_NODES_MAX_NODES")?,
            dead_letter: self.get("HOPLINE_NODES_DEAD_LETTER")?,
            max_delivery_count: self.get("HOPLINE_NODES_MAX_DELIVERY_COUNT")?,
            durable_messages: self.get("HOPLINE_NODES_DURABLE_MESSAGES")?,
        })
    }

    fn text(&self, name: &'static str) -> Result<Option<String>, SettingsError> {
        self.0(name).map(OsString::into_string).transpose().map_err(|value| {
            let value = value.to_string_lossy().into_owned();
            SettingsError::Variable { name, value, problem: "write it in UTF-8".into() }
        })
    }

    fn get<K: Kind>(&self, name: &'static str) -> Result<Key<K>, SettingsError> {
        self.text(name)?.map(|text| parse::<K>(name, text).map(Value)).transpose()
    }

    /// Parts between commas; of an empty text, none.
    fn list(&self, name: &'static str) -> Result<Option<Vec<String>>, SettingsError> {
        let parts = |text: String| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        Ok(self.text(name)?.map(parts))
    }

    /// One address at least.
    fn addresses(&self, name: &'static str) -> Result<Option<Vec<String>>, SettingsError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parts = text.split(',').map(|part| parse::<Address>(name, part.trim().to_owned()));
        parts.collect::<Result<_, _>>().map(Some)
    }
}

fn parse<K: Kind>(name: &'static str, value: String) -> Result<K::Meant, SettingsError> {
    K::parse(&value).map_err(|problem| SettingsError::Variable { name, value, problem })
}
