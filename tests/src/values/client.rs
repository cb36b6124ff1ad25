use std::process::Command;

use serde_json::Value;

use super::unhex;
use crate::programs::peer_command;
use crate::{PATIENCE, Process, Program};

/// A library that is not ours, as it sends and receives values.
#[derive(Copy, Clone, Eq, PartialEq, Debug)]
pub enum ValueClient {
    /// Qpid Proton for Python.
    Proton,
    /// rhea for Node.js.
    Rhea,
    /// fe2o3-amqp for Rust.
    Fe2o3,
}

/// What a client said of one message.
#[derive(Clone, Debug)]
pub struct Line {
    /// The octets that it encoded, or that came; absent where it could not encode them, or where
    /// the library does not show what came.
    pub octets: Option<Vec<u8>>,
    /// The message that it decoded, as text.
    pub text: Option<Value>,
    /// Why it could not encode or decode.
    pub error: Option<String>,
}

impl ValueClient {
    /// All of them.
    pub const ALL: [ValueClient; 3] = [ValueClient::Proton, ValueClient::Rhea, ValueClient::Fe2o3];

    /// What the table of deviations calls it.
    pub const fn name(self) -> &'static str {
        match self {
            ValueClient::Proton => "proton",
            ValueClient::Rhea => "rhea",
            ValueClient::Fe2o3 => "fe2o3",
        }
    }

    /// Has it build, encode and send messages from their texts; a line for each.
    ///
    /// # Panics
    /// If what it could build was not accepted.
    pub fn send<'a>(
        self,
        host: &str,
        address: &str,
        texts: impl Iterator<Item = &'a Value>,
    ) -> Vec<Line> {
        let mut process = Process::start(self.command().args(["send", host, address]));
        let texts: Vec<_> = texts.map(|text| format!("{text}\n")).collect();
        process.write(texts.concat().as_bytes());
        self.lines(process, texts.len())
    }

    /// Has it look at the first `count` messages of a queue, and leave them there.
    ///
    /// # Panics
    /// If they don't come.
    pub fn browse(self, host: &str, address: &str, count: usize) -> Vec<Line> {
        let count_text = count.to_string();
        let mut command = self.command();
        self.lines(Process::start(command.args(["browse", host, address, &count_text])), count)
    }

    fn lines(self, process: Process, count: usize) -> Vec<Line> {
        let finished = process.finish(PATIENCE).success();
        let lines: Vec<_> = finished.stdout.lines().map(Line::read).collect();
        assert_eq!(lines.len(), count, "{}: {}", finished.name, finished.stderr);
        lines
    }

    fn command(self) -> Command {
        match self {
            ValueClient::Proton => peer_command("proton_values"),
            ValueClient::Rhea => peer_command("rhea_values"),
            ValueClient::Fe2o3 => Program::Fe2o3Values.command(),
        }
    }
}

impl Line {
    fn read(line: &str) -> Line {
        let fields: Value = serde_json::from_str(line).expect("a client prints JSON");
        Line {
            octets: fields["octets"].as_str().map(unhex),
            text: fields.get("message").cloned(),
            error: fields["error"].as_str().map(str::to_owned),
        }
    }
}
