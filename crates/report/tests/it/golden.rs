//! Whole reports of hand-written records, compared letter by letter.
//!
//! After a wanted change: `BLESS=1 cargo test -p hopline-report --test it golden`, then read the
//! diff.

use std::fs;
use std::path::PathBuf;

use hopline_report::{Format, Options, Outcome, Wanted, run};

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name].iter().collect()
}

/// What the report says on both outputs, and how it went.
fn report(input: &str, wanted: Wanted, format: Format) -> (String, String, Outcome) {
    let records = fs::read(data(&format!("{input}.jsonl"))).unwrap();
    let (mut out, mut log) = (Vec::new(), Vec::new());
    let options = Options { wanted, format, ..Options::default() };
    let outcome = run(&options, &records[..], &mut out, &mut log).unwrap();
    (String::from_utf8(out).unwrap(), String::from_utf8(log).unwrap(), outcome)
}

fn check(name: &str, got: &str) {
    let path = data(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, got).unwrap();
    }
    let want = fs::read_to_string(&path).unwrap();
    assert_eq!(got, want, "{}", path.display());
}

fn check_all_forms(input: &str, wanted: &Wanted) {
    for (format, extension) in [(Format::Text, "txt"), (Format::Json, "json"), (Format::Csv, "csv")]
    {
        let (out, _, outcome) = report(input, wanted.clone(), format);
        assert_eq!(outcome, Outcome::Complete);
        check(&format!("{input}.{extension}"), &out);
    }
}

#[test]
fn the_chain_of_three_nodes() {
    let asked = "00000000000000000000000000abc003".parse().unwrap();
    check_all_forms(
        "chain",
        &Wanted { first: 1, slowest: 1, ids: vec![asked], ..Wanted::default() },
    );
}

#[test]
fn two_hosts_and_everything_that_can_be_odd() {
    check_all_forms("odd", &Wanted { first: 10, ..Wanted::default() });
    let (_, log, _) = report("odd", Wanted::default(), Format::Text);
    check("odd.log", &log);
}

#[test]
fn the_two_traces_of_the_field_report() {
    check_all_forms("field-report", &Wanted { first: 2, ..Wanted::default() });
}
