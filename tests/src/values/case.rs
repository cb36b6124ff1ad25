use std::fs;

use serde_json::{Value, json};

use super::unhex;
use crate::workspace_root;

/// A message: its octets, written by hand, and what they mean.
#[derive(Clone, Debug)]
pub struct Case {
    /// Tells it from the others.
    pub name: String,
    /// All its sections.
    pub octets: Vec<u8>,
    /// The message as text.
    pub text: Value,
}

/// The cases of `tests/values`: the messages, and each of the values as a body.
///
/// # Panics
/// If a line can't be read, or a name occurs twice.
pub fn cases() -> Vec<Case> {
    let values = lines("values.txt").into_iter().map(|(name, octets, text)| Case {
        name,
        octets: [vec![0x00, 0x53, 0x77], octets].concat(),
        text: json!({ "body": ["value", text] }),
    });
    let messages = lines("messages.txt").into_iter();
    let messages = messages.map(|(name, octets, text)| Case { name, octets, text });
    let cases: Vec<_> = values.chain(messages).collect();
    let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None, "a name that occurs twice");
    cases
}

fn lines(file: &str) -> Vec<(String, Vec<u8>, Value)> {
    let path = workspace_root().join("tests/values").join(file);
    let text = fs::read_to_string(&path).expect("a readable file");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(read_line).collect()
}

fn read_line(line: &str) -> (String, Vec<u8>, Value) {
    let (name, rest) = line.split_once(' ').expect("three columns");
    let (octets, text) = rest.trim_start().split_once(' ').expect("three columns");
    let text = serde_json::from_str(&repeated(text));
    let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
    (name.to_owned(), unhex(&repeated(octets)), text)
}

/// The text with each `(X*N)` replaced by N times X.
fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once('(') else { return text.to_owned() };
    let (part, rest) = rest.split_once('*').expect("a bracket with a *");
    let (times, rest) = rest.split_once(')').expect("a bracket that ends");
    let times = times.parse().expect("a number behind the *");
    format!("{before}{}{}", part.repeat(times), repeated(rest))
}
