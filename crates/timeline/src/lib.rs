//! Instants, stages and stamps: the timeline that a message carries from node to node, so that
//! whoever receives it can tell where its time went.
//!
//! The timeline is the value of one message annotation, [`ANNOTATION`], an AMQP 1.0 `binary`
//! (spec section 1.6.19, annotations 3.2.3). Its format is drawn in `docs/timeline.md`.
//!
//! - Writing: [`new_timeline`] begins one, an [`Appender`] adds a [`Node`]'s record and its
//!   stamps, [`fill`] puts in later what is not known before the write.
//! - Reading: [`Timeline::parse`], then [`Timeline::hops`], [`Timeline::stays`] and
//!   [`Timeline::delay`].
//! - Handing on to a report: the [`record`] module, one JSON object a line.
//!
//! This crate reads no clock and does no input or output: instants and octets are arguments.
//!
//! ```
//! use hopline_timeline::{
//!     Appender, ClockDomain, Instant, Node, Stage, Timeline, TimelineId, fill, new_timeline,
//! };
//!
//! let publisher = Node::new("publisher-1", ClockDomain::default()).record();
//! let mut annotation = Vec::with_capacity(128);
//! new_timeline(TimelineId([7; 16]), &mut annotation);
//! let mut appender = Appender::new(&mut annotation, 0).expect("just begun");
//! appender.node(&publisher);
//! appender.stamp(Stage::Create, 0, Instant::from_nanos(1_000));
//! let send = appender.stamp(Stage::Send, 0, Instant::UNFILLED).expect("far from the limit");
//!
//! // Just before the write that takes these octets:
//! fill(&mut annotation[send..], Instant::from_nanos(1_250));
//!
//! let timeline = Timeline::parse(&annotation)?;
//! assert_eq!(timeline.delay_ns(&timeline.stamps[0], &timeline.stamps[1]), Some(250));
//! # Ok::<(), hopline_timeline::TimelineError>(())
//! ```

#![forbid(unsafe_code)]

mod append;
mod encode;
mod error;
#[cfg(feature = "fe2o3")]
pub mod fe2o3;
mod id;
mod instant;
mod journey;
mod node;
mod peer_clock;
pub mod record;
mod scan;
mod stage;
mod tie;
mod timeline;

pub use append::{Appender, MAX_OCTETS, MAX_STAMPS, fill, is_timeline, new_timeline};
pub use error::TimelineError;
pub use id::TimelineId;
pub use instant::Instant;
pub use journey::{Delay, Reading, Span, Unmeasured};
pub use node::{ClockDomain, ClockKind, MAX_NAME_OCTETS, Node, clean_name};
pub use peer_clock::{ClockOffset, PeerClock};
pub use stage::{Stage, UNSTAMPED_PEER, UPPER_BOUND, Wait, receive_detail};
pub use timeline::{Reserved, Stamp, Timeline};

/// The message annotation that carries the timeline, an AMQP symbol.
pub const ANNOTATION: &str = "x-opt-hopline-timeline";
