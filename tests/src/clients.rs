use std::process::Command;

use hopline_timeline::{ANNOTATION, Timeline};
use serde_json::{Map, Value};

use crate::programs::peer_command;
use crate::{Finished, PATIENCE, Process, Program};

/// A client on a library that is not ours; `tests/peers/README.md` describes what they do.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum Client {
    /// Qpid Proton for Python.
    Proton,
    /// rhea for Node.js.
    Rhea,
    /// fe2o3-amqp for Rust.
    Fe2o3,
}

/// A message as a foreign client received it.
#[derive(Clone, PartialEq, Debug)]
pub struct Received {
    /// The message-id as text.
    pub message_id: Option<String>,
    /// The application property `n`.
    pub n: Option<u64>,
    /// The body's octets.
    pub body: Vec<u8>,
    /// The message annotations; binary values are in hexadecimal.
    pub annotations: Map<String, Value>,
    /// The header's durable flag.
    pub durable: bool,
    /// The header's priority.
    pub priority: u64,
    /// The header's delivery count.
    pub delivery_count: u64,
    /// Whether it came settled; `None` where the library does not tell.
    pub settled: Option<bool>,
}

impl Client {
    /// All of them.
    pub const ALL: [Client; 3] = [Client::Proton, Client::Rhea, Client::Fe2o3];

    /// What the client calls itself in the messages that it sends.
    pub fn name(self) -> &'static str {
        match self {
            Client::Proton => "proton",
            Client::Rhea => "rhea",
            Client::Fe2o3 => "fe2o3",
        }
    }

    /// Sends `count` messages; `options` are those of the peers' command line.
    ///
    /// # Panics
    /// Unless all were accepted, or sent settled if the options say so.
    pub fn send(self, host: &str, address: &str, count: usize, options: &[&str]) -> Finished {
        self.run("send", host, address, count, options)
    }

    /// Receives and accepts `count` messages.
    ///
    /// # Panics
    /// If they don't come.
    pub fn receive(self, host: &str, address: &str, count: usize) -> Vec<Received> {
        let finished = self.run("receive", host, address, count, &[]);
        let received: Vec<_> = finished.stdout.lines().map(Received::from_line).collect();
        assert_eq!(received.len(), count, "{}", finished.name);
        received
    }

    /// Receives and accepts `count` of the messages that a selector is true of.
    ///
    /// # Panics
    /// If they don't come.
    pub fn select(self, host: &str, address: &str, count: usize, selector: &str) -> Vec<Received> {
        let finished = self.run("receive", host, address, count, &["--selector", selector]);
        finished.stdout.lines().map(Received::from_line).collect()
    }

    fn run(
        self,
        verb: &str,
        host: &str,
        address: &str,
        count: usize,
        options: &[&str],
    ) -> Finished {
        let mut command = self.command();
        command.args([verb, host, address, "--count", &count.to_string()]).args(options);
        Process::start(&mut command).finish(PATIENCE).success()
    }

    fn command(self) -> Command {
        match self {
            Client::Proton => peer_command("proton_client"),
            Client::Rhea => peer_command("rhea_client"),
            Client::Fe2o3 => Program::Fe2o3Client.command(),
        }
    }
}

impl Received {
    /// The timeline that the message carries.
    ///
    /// # Panics
    /// If there is one that can't be read.
    pub fn timeline(&self) -> Option<Timeline> {
        let octets = octets_of(self.annotations.get(ANNOTATION)?.as_str());
        Some(Timeline::parse(&octets).expect("the annotation holds a timeline"))
    }

    fn from_line(line: &str) -> Received {
        let fields: Value = serde_json::from_str(line).expect("a client prints JSON");
        Received {
            message_id: fields["message_id"].as_str().map(str::to_owned),
            n: fields["n"].as_u64(),
            body: octets_of(fields["body"].as_str()),
            annotations: fields["annotations"].as_object().cloned().unwrap_or_default(),
            durable: fields["durable"] == true,
            priority: fields["priority"].as_u64().expect("a number"),
            delivery_count: fields["delivery_count"].as_u64().expect("a number"),
            settled: fields["settled"].as_bool(),
        }
    }
}

fn octets_of(hex: Option<&str>) -> Vec<u8> {
    let hex = hex.expect("octets in hexadecimal");
    let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(octet).collect()
}
