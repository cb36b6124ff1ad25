//! What the kernel does with the messages that the broker sends: side records to a file, or to
//! whoever consumes from `$timeline`.

use crate::broker::Broker;
use crate::lifetime::Lifetime;
use crate::message::Message;
use crate::server::Shared;
use crate::{Config, Error, SideSink};
use bytes::Bytes;
use hopline_driver::engine::wire::message::{self, Body, Properties};
use hopline_driver::engine::wire::{AmqpError, DeliveryTag, Serial, Symbol, condition};
use hopline_driver::engine::{Delivery, LinkId};
use hopline_driver::timeline::record::Record;
use hopline_driver::{SideFile, SideReader, SideRecords, side_records};
use std::rc::Rc;
use std::time::Duration;

/// The address that side records can be consumed from, if the settings say so. Nobody else may
/// send there.
pub(crate) const ADDRESS: &str = "$timeline";

/// How often consumers get what there is.
const EVERY: Duration = Duration::from_millis(10);

/// Records that are published in one go.
const BATCH: usize = 256;

/// After so many rounds a summary follows, if there was anything: once a second.
const SUMMARY: u32 = 100;

/// Where side records go.
#[derive(Debug)]
pub(crate) enum Side {
    Off,
    File(SideFile),
    Timeline(SideRecords, SideReader),
}

impl Side {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        Ok(match &config.side_records {
            SideSink::Off => Side::Off,
            SideSink::Timeline => {
                let (records, reader) = side_records(&config.name);
                Side::Timeline(records, reader)
            }
            SideSink::File(path) => {
                let file = SideFile::create(path, &config.name);
                let failed = |source| Error::SideRecords { path: path.clone(), source };
                Side::File(file.map_err(failed)?)
            }
        })
    }

    pub(crate) fn records(&self) -> Option<SideRecords> {
        match self {
            Side::Off => None,
            Side::File(file) => Some(file.records().clone()),
            Side::Timeline(records, _) => Some(records.clone()),
        }
    }
}

/// Nobody sends to the address of side records.
pub(crate) fn check_target(address: &str) -> Result<(), AmqpError> {
    if address == ADDRESS {
        let text = "only the broker sends to $timeline: consume from it";
        return Err(AmqpError::new(condition::NOT_ALLOWED, text));
    }
    Ok(())
}

/// Publishes side records until the broker is gone.
pub(crate) async fn publish(shared: Rc<Shared>, mut reader: SideReader) {
    let _ = shared.broker.borrow_mut().create_topic(ADDRESS, Lifetime::Permanent);
    let mut told = reader.summary();
    for round in 1_u32.. {
        tokio::time::sleep(EVERY).await;
        while shared.broker.borrow_mut().publish_some(&mut reader) {
            tokio::task::yield_now().await;
        }
        if round.is_multiple_of(SUMMARY) && reader.summary() != told {
            told = reader.summary();
            let mut broker = shared.broker.borrow_mut();
            broker.publish_side(&Record::SideSummary(told.clone()));
            broker.settle();
        }
    }
}

impl Broker {
    /// Publishes some of what waits; whether there may be more.
    fn publish_some(&mut self, reader: &mut SideReader) -> bool {
        let mut left = BATCH;
        while let Some(record) = (left > 0).then(|| reader.take()).flatten() {
            left -= 1;
            self.publish_side(&record);
        }
        self.settle();
        left == 0
    }

    /// One record, one message. A subscription that is full goes without.
    fn publish_side(&mut self, record: &Record) {
        let queues = self.subscriptions(ADDRESS);
        if queues.is_empty() {
            return;
        }
        let Some(message) = message(record, self.wall_offset_ns, self.clock.now()) else { return };
        for queue in queues {
            let _ = self.enqueue(queue, message.clone());
        }
    }
}

fn message(
    record: &Record,
    wall_offset_ns: i64,
    now: hopline_driver::timeline::Instant,
) -> Option<Box<Message>> {
    let mut line = Vec::new();
    record.write_line(&mut line).ok()?;
    line.pop();
    let content_type = Some(Symbol::from_static("application/json"));
    let message = message::Message {
        properties: Properties { content_type, ..Properties::default() },
        body: Body::Data(vec![Bytes::from(line)]),
        ..message::Message::default()
    };
    let mut payload = Vec::new();
    message.encode_bare(&mut payload);
    let mut delivery = Delivery {
        link: LinkId::default(),
        id: Serial(0),
        tag: DeliveryTag::new(b"")?,
        format: 0,
        settled: true,
        state: None,
        payload: payload.into(),
        received: now,
        arrived: None,
        transfers: 1,
    };
    Message::read(&mut delivery, wall_offset_ns).ok()
}
