//! Messages that their queue has given up.

use crate::broker::Broker;
use crate::message::Message;
use crate::node::Node;
use hopline_driver::engine::wire::{AmqpError, Fields, Symbol, Value};

/// Annotations of a dead letter: the queue that gave it up, why, and what the consumer said.
const FROM: &str = "x-opt-dead-letter-from";
const REASON: &str = "x-opt-dead-letter-reason";
const DESCRIPTION: &str = "x-opt-dead-letter-description";

/// Octets that are kept of what the consumer said: a word of it for many messages is cheap to say.
const DESCRIPTION_MAX: usize = 1024;

/// Why a message is given up.
#[derive(Debug)]
pub(crate) enum Death {
    /// A consumer has rejected it, and may have said why (3.4.3).
    Rejected(Option<Box<AmqpError>>),
    /// Its time to live is over.
    Expired,
    /// Too many deliveries failed.
    Failed,
    /// Its only consumer can't have it.
    Undeliverable,
}

impl Death {
    fn annotations(self, from: &str) -> Fields {
        let (reason, description) = match self {
            Self::Rejected(Some(error)) => (error.condition, error.description),
            Self::Rejected(None) => (Symbol::from_static("rejected"), None),
            Self::Expired => (Symbol::from_static("expired"), None),
            Self::Failed => (Symbol::from_static("max-delivery-count"), None),
            Self::Undeliverable => (Symbol::from_static("undeliverable"), None),
        };
        let mut fields = vec![
            (Symbol::from_static(FROM), Value::from(from)),
            (Symbol::from_static(REASON), Value::Symbol(reason)),
        ];
        if let Some(mut text) = description {
            text.truncate(text.floor_char_boundary(DESCRIPTION_MAX));
            fields.push((Symbol::from_static(DESCRIPTION), Value::String(text)));
        }
        Fields(fields)
    }
}

impl Broker {
    /// Puts a message among the dead letters, if there is a place for them.
    pub(crate) fn dead_letter(&mut self, from: &str, mut message: Box<Message>, why: Death) {
        let Some(address) = self.config.nodes.dead_letter.clone() else { return };
        if address == from {
            return;
        }
        message.lay_out();
        message.merge(why.annotations(from));
        match self.resolve(&address, false) {
            Ok(Node::Queue(queue)) => {
                if let Err(error) = self.enqueue(queue, message) {
                    tracing::warn!(%from, %error, "a dead letter is lost");
                }
            }
            Ok(Node::Topic) => {
                for queue in self.subscriptions(&address) {
                    let _ = self.enqueue(queue, message.clone());
                }
            }
            Err(error) => tracing::warn!(%from, %error, "a dead letter is lost"),
        }
    }
}
