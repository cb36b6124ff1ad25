//! Records and bodies: where they are written.

use crate::args::Args;
use crate::live::Live;
use hopline_messenger::driver::{Clock, node};
use hopline_messenger::timeline::Timeline;
use hopline_messenger::timeline::record::{
    ConnectionRecord, HeaderRecord, MessageInfo, MessageRecord, Record, Schema, SummaryRecord,
    UntimedRecord,
};
use hopline_messenger::{Body, Messenger, Received, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Octets of a message-id that a record shows.
const ID_MAX: usize = 256;

/// Where records go.
pub(crate) struct Output {
    records: Option<BufWriter<Box<dyn Write>>>,
    line: Vec<u8>,
    print: bool,
    address: String,
}

impl Output {
    /// Opens the file of records and writes their header.
    pub(crate) fn open(args: &Args, messenger: &Messenger) -> io::Result<Self> {
        let records: Option<Box<dyn Write>> = match &args.timeline {
            None => None,
            Some(file) if file.as_os_str() == "-" => Some(Box::new(io::stdout())),
            Some(file) => Some(Box::new(File::create(file)?)),
        };
        let address = node_of(&args.url);
        let mut output = Self {
            records: records.map(BufWriter::new),
            line: Vec::new(),
            print: args.print,
            address: address.clone(),
        };
        let socket = messenger.connections().into_iter().find_map(|connection| connection.socket);
        output.write(&Record::Header(HeaderRecord {
            schema: Schema,
            node: args.name.clone(),
            clock: node(args.name.clone()).clock.into(),
            resolution_ns: Clock.resolution_ns(),
            socket: socket.map(|(options, local, peer)| options.record(local, peer)),
            address,
        }))?;
        Ok(output)
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let Some(records) = &mut self.records else { return Ok(()) };
        self.line.clear();
        record.write_line(&mut self.line).map_err(io::Error::other)?;
        records.write_all(&self.line)
    }

    /// Writes down one message.
    pub(crate) fn message(
        &mut self,
        seq: u64,
        received: &Received,
        timeline: Option<&Timeline>,
    ) -> io::Result<()> {
        if self.print {
            print_body(received)?;
        }
        if self.records.is_none() {
            return Ok(());
        }
        let octets = received.encoded().len() as u64;
        let record = match timeline {
            Some(timeline) => {
                let info = MessageInfo {
                    seq,
                    address: self.address.clone(),
                    octets,
                    message_id: message_id(received),
                    redelivered: received.delivery_count() > 0,
                };
                Record::Message(MessageRecord::new(info, timeline))
            }
            None => Record::Untimed(UntimedRecord {
                schema: Schema,
                seq,
                address: self.address.clone(),
                octets,
                why: received.has_annotation().then(|| "not a timeline of version 1".to_owned()),
            }),
        };
        self.write(&record)
    }

    /// Gives out what is written so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.records.as_mut().map_or(Ok(()), BufWriter::flush)
    }

    /// Writes what passed over the connections, and the summary.
    pub(crate) fn finish(mut self, accounts: &[ConnectionRecord], live: &Live) -> io::Result<()> {
        for account in accounts {
            self.write(&Record::Connection(account.clone()))?;
        }
        self.write(&Record::Summary(SummaryRecord {
            schema: Schema,
            received: live.received,
            timelines: live.timelines,
            malformed: live.malformed,
            duration_ns: u64::try_from(live.took().as_nanos()).unwrap_or(u64::MAX),
        }))?;
        self.flush()
    }
}

/// The node of a URL: what is behind the host.
fn node_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split_once('/').map_or(String::new(), |(_, node)| node.to_owned())
}

fn message_id(received: &Received) -> Option<String> {
    let text = match received.message().ok()?.properties.message_id? {
        Value::String(text) => text,
        Value::Ulong(n) => n.to_string(),
        Value::Uuid(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
        Value::Binary(octets) => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
        _ => return None,
    };
    Some(text.chars().take(ID_MAX).collect())
}

fn print_body(received: &Received) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match received.message() {
        Ok(message) => match message.octets() {
            Some(octets) => out.write_all(&octets)?,
            None => match message.body {
                Body::Value(Value::String(text)) => out.write_all(text.as_bytes())?,
                body => write!(out, "{body:?}")?,
            },
        },
        Err(error) => write!(out, "({error})")?,
    }
    out.write_all(b"\n")?;
    out.flush()
}
