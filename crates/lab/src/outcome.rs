//! What an experiment ends with.

use crate::Error;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// The result of an experiment, whole or until it was interrupted.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Tables and verdict, for people.
    pub text: String,
    /// One JSON object, schema 1: `experiment`, `complete`, `settings`, `rounds`, `summary` and
    /// `verdict`. Nanoseconds are strings, as in records; statistics are numbers. Fields may be
    /// added; none changes its meaning within a schema.
    pub document: Value,
    /// All rounds were made.
    pub is_complete: bool,
}

impl Outcome {
    pub(crate) fn new(
        experiment: &str,
        settings: &impl Serialize,
        (rounds, summary): (Value, Value),
        (table, verdict): (String, String),
        is_complete: bool,
    ) -> Self {
        let note =
            if is_complete { "" } else { "interrupted: only what was measured until then\n" };
        let document = json!({
            "hopline": "lab",
            "schema": 1,
            "experiment": experiment,
            "version": env!("CARGO_PKG_VERSION"),
            "complete": is_complete,
            "settings": serde_json::to_value(settings).unwrap_or_default(),
            "rounds": rounds,
            "summary": summary,
            "verdict": verdict,
        });
        let text = format!("{table}\n{note}verdict: {verdict}\n");
        Self { text, document, is_complete }
    }

    /// Writes the JSON document to a file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        std::fs::write(path, format!("{:#}\n", self.document)).map_err(Error::file(path))
    }
}
