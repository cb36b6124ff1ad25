//! The document's examples, and what the readers show of a timeline.

use std::fmt::Write as _;
use std::path::PathBuf;

use hopline_timeline::{Stage, Timeline};

/// Where a file of the checkout is.
pub(crate) fn checkout_path(path: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", path].iter().collect()
}

/// The text of a file of the checkout.
pub(crate) fn checkout_file(path: &str) -> String {
    std::fs::read_to_string(checkout_path(path)).unwrap()
}

/// The text of the timeline's document.
pub(crate) fn document() -> String {
    checkout_file("docs/timeline.md")
}

/// The document's fenced blocks of a language, each with the line feed at its end.
pub(crate) fn fenced(language: &str) -> Vec<String> {
    let text = document();
    let opening = format!("\n```{language}\n");
    let blocks = text.split(&opening).skip(1);
    blocks.map(|rest| format!("{}\n", rest.split("\n```\n").next().unwrap())).collect()
}

/// The octets of the document's example: the words of two hexadecimal digits that begin a line.
pub(crate) fn example() -> Vec<u8> {
    let is_octet = |word: &&str| word.len() == 2 && word.bytes().all(|c| c.is_ascii_hexdigit());
    let blocks = fenced("hex");
    let words = blocks[0].lines().flat_map(|line| line.split(' ').take_while(is_octet));
    words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

/// What the readers in Python and JavaScript show of a timeline.
pub(crate) fn shown(timeline: &Timeline) -> String {
    let mut text = format!("timeline {}", timeline.id);
    if timeline.overflow {
        write!(text, " overflow, {} dropped", timeline.dropped).unwrap();
    }
    text.push('\n');
    for stamp in &timeline.stamps {
        let node = &timeline.nodes[stamp.node];
        let host = hopline_timeline::TimelineId(node.clock.host);
        let at = stamp.at.map_or("-".to_owned(), |at| at.as_nanos().to_string());
        let (kind, stage) = (node.clock.kind.code(), Stage::name_of(stamp.stage));
        writeln!(text, "{} {kind}:{host} {stage} {} {at}", node.name, stamp.detail).unwrap();
    }
    text
}
