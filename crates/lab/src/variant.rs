//! Settings that an experiment compares, as a user writes them.

use hopline_messenger::SocketOptions;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// Settings of broker and clients that differ from the defaults: `KEY=VALUE,...`.
///
/// A key is one of the broker's file, such as `timelines`, `listener.nodelay` or
/// `limits.producer_credit`, or one of the clients: `client.nodelay`, `client.timelines` (`on` or
/// `off`), `client.send_buffer`, `client.receive_buffer` (octets). Nothing stands for the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    text: String,
    broker: Table,
    pub(crate) timelines: bool,
    pub(crate) socket: SocketOptions,
}

impl Variant {
    /// These settings of the broker's file.
    pub(crate) fn with(broker: Table) -> Self {
        Self { broker, ..Self::default() }
    }

    /// The file of a broker of that name: these settings, and a free port of loopback.
    pub(crate) fn broker_file(&self, name: &str) -> String {
        let mut file = self.broker.clone();
        let listener = file.remove("listener").unwrap_or_else(|| Value::Table(Table::new()));
        let Value::Table(mut listener) = listener else { return String::new() };
        listener.insert("address".into(), "127.0.0.1:0".into());
        file.entry("name").or_insert_with(|| name.into());
        file.entry("stop_timeout").or_insert_with(|| "1s".into());
        file.insert("listener".into(), Value::Array(vec![Value::Table(listener)]));
        file.to_string()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.split_once('.') {
            Some(("client", key)) => self.set_client(key, value),
            Some((table @ ("listener" | "limits" | "nodes"), key)) if key != "address" => {
                let table = self.broker.entry(table).or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(table) = table {
                    table.insert(key.to_owned(), meant(value));
                }
                Ok(())
            }
            None if matches!(key, "timelines" | "anonymous" | "threads") => {
                self.broker.insert(key.to_owned(), meant(value));
                Ok(())
            }
            _ => Err(format!(
                "{key} can't be set here: write timelines, listener.KEY, limits.KEY or nodes.KEY \
                 of the broker's file, or client.nodelay, client.timelines, client.send_buffer, \
                 client.receive_buffer"
            )),
        }
    }

    fn set_client(&mut self, key: &str, value: &str) -> Result<(), String> {
        let octets = || {
            let octets = value.parse().map_err(|_| format!("client.{key}: write octets"));
            octets.map(Some)
        };
        match key {
            "nodelay" => self.socket.nodelay = switch(key, value)?,
            "timelines" => self.timelines = switch(key, value)?,
            "send_buffer" => self.socket.send_buffer = octets()?,
            "receive_buffer" => self.socket.receive_buffer = octets()?,
            _ => return Err(format!("client.{key} is no setting of the clients")),
        }
        Ok(())
    }
}

fn switch(key: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(format!("client.{key}: write on or off")),
    }
}

fn meant(value: &str) -> Value {
    match (value.parse::<i64>(), value.parse::<bool>()) {
        (Ok(number), _) => number.into(),
        (_, Ok(truth)) => truth.into(),
        _ => value.into(),
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut variant = Variant { text: text.to_owned(), ..Variant::default() };
        for setting in text.split(',').filter(|setting| !setting.is_empty()) {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("{setting}: write KEY=VALUE"))?;
            variant.set(key.trim(), value.trim())?;
        }
        Ok(variant)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.text.is_empty() { "the defaults" } else { &self.text })
    }
}

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_where_they_belong() {
        let text =
            "timelines=all,listener.nodelay=off,limits.producer_credit=10,client.nodelay=off";
        let variant: Variant = text.parse().unwrap();
        assert!(!variant.socket.nodelay);
        let file: Table = variant.broker_file("broker").parse().unwrap();
        assert_eq!(file["timelines"].as_str(), Some("all"));
        assert_eq!(file["limits"]["producer_credit"].as_integer(), Some(10));
        assert_eq!(file["listener"][0]["nodelay"].as_str(), Some("off"));
        assert_eq!(file["listener"][0]["address"].as_str(), Some("127.0.0.1:0"));
        assert_eq!(variant.to_string(), text);
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for (text, said) in [
            ("nonsense", "write KEY=VALUE"),
            ("listener.address=0.0.0.0:1", "can't be set here"),
            ("user.name=x", "can't be set here"),
            ("client.nodelay=maybe", "write on or off"),
            ("client.send_buffer=many", "write octets"),
        ] {
            let error = text.parse::<Variant>().unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!("".parse::<Variant>().unwrap().to_string(), "the defaults");
    }
}
