//! An AMQP 1.0 messenger to embed: put, get, settle; each message carries the timeline of its way.
//!
//! The model is that of Proton's Messenger, made safe: [`Messenger::put`] never blocks,
//! [`Messenger::get`] neither; what waits is a future that may be dropped; errors belong to one
//! call. A messenger can be cloned and used from several tasks and threads.
//!
//! ```no_run
//! use hopline_messenger::{Message, Messenger};
//!
//! # async fn example() -> Result<(), hopline_messenger::Error> {
//! let messenger = Messenger::builder().name("shop").build();
//! messenger.subscribe("amqp://127.0.0.1/orders").await?;
//! messenger.put("amqp://127.0.0.1/orders", Message::data("one coffee"))?;
//! messenger.send().await?;
//! let order = messenger.next().await?;
//! println!("{:?} came by {:?}", order.message()?.octets(), order.timeline());
//! messenger.accept(&order)?;
//! messenger.stop().await
//! # }
//! ```
//!
//! Addresses are URLs, `amqp[s]://[user[:password]@]host[:port]/node`. `amqp://~host:port` listens
//! for peers that connect without a broker between; what is put to a plain name, without `amqp://`,
//! goes to peers that attached a receiver to it. There is one connection per host and user, and on
//! it one link per address; a connection that is lost is made anew by the next put to it, while
//! subscriptions are told by [`Messenger::next`] and made anew by the application; with
//! [`Builder::reconnect`] both are made again by themselves.
//!
//! A message is in the store from [`Messenger::put`] until its outcome; the store is bounded
//! ([`Builder::store`]), so is what waits for [`Messenger::get`] ([`Builder::credit`]), and so are
//! the windows in which [`Messenger::status`] knows messages. A subscription with 16,384 messages
//! without outcome gets no more until some are settled.

#![forbid(unsafe_code)]

mod accounts;
mod connection;
mod error;
mod failures;
mod foreign;
mod incoming;
mod links;
mod messenger;
mod options;
mod outgoing;
mod put;
mod receive;
mod receiving;
mod reconnect;
mod routes;
mod sending;
mod shared;
mod state;
mod tracker;
mod window;

pub use error::Error;
pub use hopline_driver as driver;
pub use hopline_driver::Reconnect;
pub use hopline_driver::SocketOptions;
pub use hopline_driver::engine::wire::message::{Body, Header, Message, Properties};
pub use hopline_driver::engine::wire::{AmqpError, DeliveryState, Fields, Symbol, Value};
pub use hopline_timeline as timeline;
pub use incoming::Received;
pub use messenger::{ConnectionInfo, Messenger, Span};
pub use options::{Builder, Sampling, TopUp};
pub use outgoing::PutOptions;
pub use state::Outcome;
pub use tracker::{Counts, Status, Tracker};

slotmap::new_key_type! {
    /// A connection.
    struct PeerId;
    /// Where messages of one address go.
    struct SenderId;
    /// A source of messages.
    struct SubscriptionId;
}
