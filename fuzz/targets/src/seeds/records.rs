use flate2::{Compression, write::GzEncoder};
use std::io::Write;

/// Records of the report's own tests: three nodes, everything odd, traces of the field.
const RECORDS: [&str; 3] = [
    include_str!("../../../../crates/report/tests/data/chain.jsonl"),
    include_str!("../../../../crates/report/tests/data/odd.jsonl"),
    include_str!("../../../../crates/report/tests/data/field-report.jsonl"),
];

/// The records of the report's tests: each file, each line, one file with
/// commands to a terminal in its names, and one file packed.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seed = |choice: u8, octets: &[u8]| [&[choice], octets].concat();
    let files = RECORDS.iter().enumerate().map(|(n, file)| seed(20 + n as u8, file.as_bytes()));
    let lines = RECORDS.iter().flat_map(|file| file.lines()).enumerate();
    let lines = lines.map(|(n, line)| seed(n as u8, line.as_bytes()));
    let escapes = RECORDS[1].replace("\"name\":\"", "\"name\":\"\\u001b[2J\\u009b1m");
    let escapes = (0..3).map(|choice| seed(20 + choice, escapes.as_bytes()));
    let packed = seed(21, &gzip(RECORDS[1].as_bytes()));
    files.chain(lines).chain(escapes).chain([packed]).collect()
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(octets).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}
