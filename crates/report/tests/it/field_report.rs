//! The two traces of the field report that Hopline began with: Nagle's algorithm on, and off.

use hopline_report::{Options, Wanted, run};

const RECORDS: &[u8] = include_bytes!("../data/field-report.jsonl");

/// Stage, milliseconds with Nagle's algorithm, milliseconds with TCP_NODELAY.
const FIELD_REPORT: [(&str, &str, &str); 10] = [
    ("PUBLISH", "0.000", "0.000"),
    ("SERIALIZE", "0.197", "0.185"),
    ("RECEIVE", "1.113", "0.359"),
    ("DESERIALIZE", "0.079", "0.052"),
    ("REPUBLISH", "0.773", "0.209"),
    ("SERIALIZE", "1.164", "0.165"),
    ("RECEIVE", "38.010", "0.333"),
    ("DESERIALIZE", "0.070", "0.047"),
    ("QUEUE_EVENT", "0.126", "0.158"),
    ("NEXT_EVENT", "0.047", "0.011"),
];

fn traces() -> Vec<Vec<String>> {
    let options =
        Options { wanted: Wanted { first: 2, ..Wanted::default() }, ..Options::default() };
    let mut out = Vec::new();
    run(&options, RECORDS, &mut out, std::io::sink()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let blocks = text.split("\n\n").filter(|block| block.starts_with("+ e2e: "));
    blocks.map(|block| block.lines().map(str::to_owned).collect()).collect()
}

#[test]
fn the_printout_shows_the_same_differences() {
    let traces = traces();
    let (slow, fast): (Vec<_>, Vec<_>) =
        FIELD_REPORT.iter().map(|(stage, slow, fast)| ((stage, slow), (stage, fast))).unzip();
    for (trace, want) in traces.iter().zip([slow, fast]) {
        let got: Vec<_> = trace[1..]
            .iter()
            .map(|line| line.trim_start().split_once(": ").unwrap())
            .map(|(stage, rest)| (stage, rest.split("  ").next().unwrap()))
            .collect();
        let want: Vec<_> = want.iter().map(|(stage, delta)| (**stage, **delta)).collect();
        assert_eq!(got, want);
    }
}

/// The field report's own sums, 41.858 and 2.015, hold 0.279 and 0.496 that no line accounts for.
/// Here the lines always add up.
#[test]
fn the_first_line_has_the_sum_of_the_others_and_the_time_since_the_first_message() {
    let traces = traces();
    assert!(traces[0][0].starts_with("+ e2e: 41.579 TIMELINE CREATE: P00:00:00.000000  "));
    assert!(traces[1][0].starts_with("+ e2e: 1.519 TIMELINE CREATE: P00:00:17.495230  "));
}

#[test]
fn the_lines_end_where_the_first_one_s_period_does() {
    for trace in traces() {
        let width = trace[0].split("  ").next().unwrap().len();
        for line in &trace[1..] {
            let indent = line.len() - line.trim_start().len();
            let text = line.trim_start().split("  ").next().unwrap();
            assert_eq!(indent + text.len(), width, "{line}");
        }
    }
}
