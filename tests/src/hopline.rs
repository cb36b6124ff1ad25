use hopline_timeline::Timeline;
use hopline_timeline::record::{MessageRecord, Record};

use crate::{Finished, PATIENCE, Process, Program};

/// A `hopline-broker` on a loopback port of its own; it is killed when this is dropped.
#[derive(Debug)]
pub struct HoplineBroker {
    /// The broker's process, for its output and for signals.
    pub process: Process,
    host: String,
}

/// What `hopline-subscribe` wrote with `--timeline -`.
#[derive(Debug)]
pub struct Subscribed {
    /// All records, in the order of writing.
    pub records: Vec<Record>,
    /// How the program ended.
    pub finished: Finished,
}

impl HoplineBroker {
    /// Starts a broker with these options beside `--listen`.
    ///
    /// # Panics
    /// If it does not say within [`PATIENCE`] what it listens on.
    pub fn start(options: &[&str]) -> HoplineBroker {
        HoplineBroker::start_at("127.0.0.1:0", options)
    }

    /// The same at `HOST:PORT`: where another one was before.
    ///
    /// # Panics
    /// If it does not say within [`PATIENCE`] what it listens on.
    pub fn start_at(host: &str, options: &[&str]) -> HoplineBroker {
        let mut command = Program::Broker.command();
        let mut process = Process::start(command.args(["--listen", host]).args(options));
        let said = process.wait_for_text_after("listening on ", PATIENCE);
        let end = said.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
        HoplineBroker { process, host: said[..end.unwrap_or(said.len())].to_owned() }
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The URL of an address there.
    pub fn url(&self, address: &str) -> String {
        format!("amqp://{}/{address}", self.host)
    }

    /// Stops it by SIGTERM.
    ///
    /// # Panics
    /// If it does not end within [`PATIENCE`].
    pub fn terminate(self) -> Finished {
        self.process.terminate(PATIENCE)
    }
}

/// Runs `hopline-publish` to its end.
///
/// # Panics
/// Unless it ends with status 0 within [`PATIENCE`].
pub fn publish(url: &str, options: &[&str]) -> Finished {
    let mut command = Program::Publish.command();
    Process::start(command.args(options).arg(url)).finish(PATIENCE).success()
}

/// Runs `hopline-subscribe` until it has received `count` messages.
///
/// # Panics
/// Unless it ends with status 0 within [`PATIENCE`] and has recorded each message.
pub fn subscribe(url: &str, count: usize, options: &[&str]) -> Subscribed {
    let mut command = Program::Subscribe.command();
    command.args(["--timeline", "-", "--count", &count.to_string()]).args(options).arg(url);
    let finished = Process::start(&mut command).finish(PATIENCE).success();
    let records = finished.stdout.lines().map(|line| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in the line {line}"))
    });
    let subscribed = Subscribed { records: records.collect(), finished };
    assert_eq!(subscribed.messages().count() + subscribed.untimed(), count);
    subscribed
}

impl Subscribed {
    /// The records of messages that carried a timeline.
    pub fn messages(&self) -> impl Iterator<Item = &MessageRecord> {
        self.records.iter().filter_map(|record| match record {
            Record::Message(message) => Some(message),
            _ => None,
        })
    }

    /// The timelines of the messages that carried one.
    ///
    /// # Panics
    /// If a record contradicts itself.
    pub fn timelines(&self) -> Vec<Timeline> {
        self.messages().map(|message| message.timeline().expect("a sound record")).collect()
    }

    /// How many messages carried no timeline.
    pub fn untimed(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, Record::Untimed(_))).count()
    }
}
