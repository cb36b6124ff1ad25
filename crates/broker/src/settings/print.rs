//! The configuration in force, as a TOML file that would bring it about.

use crate::config::{Config, ListenerConfig, Sampling};
use std::fmt::Write;
use std::time::Duration;
use toml::{Table, Value};

/// The configuration as TOML. Passwords are masked; all else can be read back.
pub fn print(config: &Config) -> String {
    let mut table = Table::new();
    table.insert("name".into(), config.name.clone().into());
    table.insert("anonymous".into(), config.anonymous.into());
    table.insert("timelines".into(), timelines(config.timelines).into());
    table.insert("stop_timeout".into(), duration(config.stop_timeout));
    table.insert("limits".into(), Value::Table(limits(config)));
    table.insert("nodes".into(), Value::Table(nodes(config)));
    let listeners: Vec<_> = config.listeners.iter().map(listener).map(Value::Table).collect();
    table.insert("listener".into(), Value::Array(listeners));
    let user = |user: &crate::config::User| {
        let mut table = Table::new();
        table.insert("name".into(), user.name.clone().into());
        table.insert("password".into(), "********".into());
        Value::Table(table)
    };
    table.insert("user".into(), Value::Array(config.users.iter().map(user).collect()));
    let mut text = String::new();
    // A table of plain values can always be written.
    let _ = write!(text, "{}", toml::to_string(&table).unwrap_or_default());
    text
}

fn timelines(sampling: Sampling) -> String {
    match sampling {
        Sampling::All => "all".into(),
        Sampling::OneIn(n) => format!("1/{n}"),
        Sampling::Carried => "carried".into(),
        Sampling::Off => "off".into(),
    }
}

fn duration(duration: Duration) -> Value {
    humantime::format_duration(duration).to_string().into()
}

fn number(n: impl TryInto<i64>) -> Value {
    Value::Integer(n.try_into().unwrap_or(i64::MAX))
}

fn put(table: &mut Table, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        table.insert(key.into(), value);
    }
}

fn limits(config: &Config) -> Table {
    let limits = &config.limits;
    let idle = limits.idle_timeout.unwrap_or(Duration::ZERO);
    let entries = [
        ("connections", number(limits.connections)),
        ("max_frame_size", number(limits.max_frame_size)),
        ("channel_max", number(limits.channel_max)),
        ("handle_max", number(limits.handle_max)),
        ("max_message_size", number(limits.max_message_size)),
        ("idle_timeout", duration(idle)),
        ("handshake_timeout", duration(limits.handshake_timeout)),
        ("producer_credit", number(limits.producer_credit)),
    ];
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn nodes(config: &Config) -> Table {
    let nodes = &config.nodes;
    let entries = [
        ("auto_create", nodes.auto_create.into()),
        ("deny", nodes.deny.clone().into()),
        ("queues", nodes.queues.clone().into()),
        ("topic_prefixes", nodes.topic_prefixes.clone().into()),
        ("max_messages", number(nodes.max_messages)),
        ("max_octets", number(nodes.max_octets)),
        ("max_nodes", number(nodes.max_nodes)),
    ];
    let mut table: Table =
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    put(&mut table, "dead_letter", nodes.dead_letter.clone().map(Value::from));
    put(&mut table, "max_delivery_count", nodes.max_delivery_count.map(number));
    table
}

fn listener(listener: &ListenerConfig) -> Table {
    let socket = &listener.socket;
    let mut table = Table::new();
    put(&mut table, "address", Some(listener.address.clone().into()));
    put(&mut table, "nodelay", Some(socket.nodelay.into()));
    put(&mut table, "send_buffer", socket.send_buffer.map(number));
    put(&mut table, "receive_buffer", socket.receive_buffer.map(number));
    put(&mut table, "notsent_lowat", socket.notsent_lowat.map(number));
    put(&mut table, "keepalive", socket.keepalive.map(duration));
    put(&mut table, "user_timeout", socket.user_timeout.map(duration));
    put(&mut table, "backlog", Some(number(socket.backlog)));
    put(&mut table, "reuse_port", Some(socket.reuse_port.into()));
    if let Some(tls) = &listener.tls {
        let mut files = Table::new();
        put(&mut files, "certificate", Some(tls.certificate.display().to_string().into()));
        put(&mut files, "key", Some(tls.key.display().to_string().into()));
        put(&mut table, "tls", Some(Value::Table(files)));
    }
    table
}
