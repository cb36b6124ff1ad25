//! The documents that list what is tested name tests that are there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The cells of the rows of a document's tables.
fn rows(document: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("docs").join(document)).expect("the document");
    let cells = |line: &str| {
        let line = line.trim_matches('|').replace("\\|", "\u{1}");
        line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
    };
    text.lines().filter(|line| line.starts_with("| ")).map(cells).collect()
}

/// The file of a test `crate/file::function` or `crate/src/path::function`.
fn file_of(place: &str) -> Option<PathBuf> {
    let (krate, file) = place.split_once('/')?;
    let folder = match krate {
        "tests" => root().join("tests"),
        "publisher" | "subscriber" => root().join("bins").join(krate),
        _ => root().join("crates").join(krate),
    };
    let base = if file.starts_with("src/") { folder } else { folder.join("tests") };
    let forms = [format!("{file}.rs"), format!("{file}/mod.rs"), format!("it/{file}.rs")];
    forms.into_iter().map(|form| base.join(form)).find(|path| path.exists())
}

/// What is wrong with a cell that names tests.
fn complaint(cell: &str) -> Option<String> {
    if cell.is_empty() {
        return Some("names no test".into());
    }
    for name in cell.split(',').map(str::trim) {
        let Some((place, function)) = name.split_once("::") else {
            return Some(format!("{name} is not crate/file::function"));
        };
        let Some(file) = file_of(place) else { return Some(format!("{name}: no such file")) };
        let text = fs::read_to_string(file).expect("readable");
        if !text.contains(&format!("fn {function}(")) {
            return Some(format!("{name}: no such test"));
        }
    }
    None
}

/// How many behaviours there are, by section.
const BEHAVIOURS: [(&str, usize); 17] = [
    ("HDR", 11),
    ("SASL", 20),
    ("OPEN", 31),
    ("BEGIN", 11),
    ("ATTACH", 23),
    ("FLOW", 27),
    ("XFER", 29),
    ("DISP", 22),
    ("DET", 13),
    ("END", 8),
    ("CLOSE", 9),
    ("MSG", 20),
    ("TXN", 19),
    ("ADDR", 20),
    ("FILT", 10),
    ("WS", 4),
    ("TIME", 12),
];

#[test]
fn each_behaviour_has_a_verdict_and_a_test() {
    let mut counts = BTreeMap::<String, usize>::new();
    let mut complaints = Vec::new();
    for row in rows("protocol.md") {
        let Some((section, number)) = row[0].rsplit_once('-') else { continue };
        if number.parse::<u32>().is_err() || row.len() != 5 {
            continue;
        }
        *counts.entry(section.to_owned()).or_default() += 1;
        let [id, _, behaviour, verdict, test] = row.as_slice() else { unreachable!() };
        let is_known = ["done", "refused", "choice"].contains(&verdict.as_str());
        if behaviour.is_empty() || !is_known {
            complaints.push(format!("{id}: no verdict"));
        }
        // What is not offered at all has nothing to test.
        if !(verdict == "refused" && test == "-") {
            complaints.extend(complaint(test).map(|text| format!("{id}: {text}")));
        }
    }
    assert!(complaints.is_empty(), "{} rows:\n{}", complaints.len(), complaints.join("\n"));
    let expected = BEHAVIOURS.map(|(section, n)| (section.to_owned(), n));
    assert_eq!(counts, BTreeMap::from(expected));
}

#[test]
fn each_bug_of_others_has_a_test_or_a_reason() {
    let mut complaints = Vec::new();
    let mut n = 0;
    for row in rows("known-bugs.md") {
        let [number, _, input, test] = row.as_slice() else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        n += 1;
        let has_reason = test.strip_prefix("-:").is_some_and(|why| !why.trim().is_empty());
        let wrong = match (input.is_empty(), has_reason) {
            (true, _) => Some("no input".to_owned()),
            (false, true) => None,
            (false, false) => complaint(test),
        };
        complaints.extend(wrong.map(|text| format!("{number}: {text}")));
    }
    assert!(complaints.is_empty(), "{} rows:\n{}", complaints.len(), complaints.join("\n"));
    assert_eq!(n, 136);
}
