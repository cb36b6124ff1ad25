//! Two messengers over loopback: one listens, the other connects.

pub(crate) mod broker;
pub(crate) mod gate;
pub(crate) mod peer;

use hopline_messenger::{Builder, Message, Messenger};
use std::time::Duration;

/// A messenger that gives up soon.
pub(crate) fn builder(name: &str) -> Builder {
    Messenger::builder().name(name).timeout(Duration::from_secs(5))
}

/// A listening messenger, and the URL of `node` at it.
pub(crate) async fn listening(builder: Builder, node: &str) -> (Messenger, String) {
    let messenger = builder.build();
    let url = messenger.subscribe("amqp://~127.0.0.1:0").await.unwrap();
    (messenger, format!("{url}/{node}"))
}

/// A message with a number in it.
pub(crate) fn numbered(n: u32) -> Message {
    Message::data(n.to_be_bytes().to_vec())
}

/// The number in a message.
pub(crate) fn number(message: &Message) -> u32 {
    u32::from_be_bytes(message.octets().unwrap()[..].try_into().unwrap())
}
