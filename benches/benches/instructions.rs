//! How many instructions each case takes for a message, held to what `instructions.toml` says:
//! `cargo bench --bench instructions`, and with `-- --record` to write that file anew.
//!
//! Each case runs under valgrind twice, once longer than the other: what both have in common, such
//! as the start of the program, is not counted. The same compiler makes the same instructions; only
//! what the C library chooses by the kind of the processor is told to be the plainest everywhere.

mod cases;

use cases::{CASES, Case};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use toml::{Table, Value};

/// Messages of the longer run, beyond those of the shorter one.
const MESSAGES: u32 = 6_400;

/// By how many per cent a figure may be above what is recorded.
const TOLERANCE: f64 = 3.0;

/// How the C library copies memory is not to depend on the processor.
const PLAIN: &str = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM";

const RECORD: &str = "cargo bench -p hopline-benches --bench instructions -- --record";

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).filter(|it| it != "--bench").collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", name, times] => run(name, times.parse().expect("a number")),
        ["--record"] => return record(&count_all()),
        [] => return check(&count_all()),
        _ => {
            eprintln!("instructions takes nothing, or --record");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn run(name: &str, times: u32) {
    let case = CASES.iter().find(|case: &&Case| case.name == name).expect("a case");
    let mut once = (case.prepare)();
    (0..times).for_each(|_| once());
}

/// Instructions for a message, by case.
fn count_all() -> BTreeMap<&'static str, f64> {
    CASES.iter().map(|case| (case.name, count(case))).collect()
}

fn count(case: &Case) -> f64 {
    let more = MESSAGES / case.messages;
    let few = more / 4;
    let beyond = count_run(case.name, few + more) - count_run(case.name, few);
    beyond as f64 / f64::from(more * case.messages)
}

/// Instructions of a whole run.
fn count_run(name: &str, times: u32) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    valgrind.env("GLIBC_TUNABLES", PLAIN).arg(env::current_exe().expect("a program"));
    let told = valgrind.args(["run", name, &times.to_string()]).output();
    let told = told.unwrap_or_else(|error| {
        panic!("valgrind can't be run ({error}): install it, such as by scripts/test")
    });
    let log = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{name} failed under valgrind:\n{log}");
    let refs = log.lines().find_map(|line| line.split_once("I   refs:"));
    let digits = refs.map(|(_, refs)| refs.trim().replace(',', ""));
    digits.and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("no count in:\n{log}"))
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.toml")
}

/// The compiler, as it tells itself.
fn compiler() -> String {
    let told = Command::new("rustc").arg("--version").output().expect("rustc runs");
    String::from_utf8_lossy(&told.stdout).trim().to_owned()
}

fn record(counts: &BTreeMap<&str, f64>) -> ExitCode {
    let mut text = format!(
        "# Instructions for a message. Written by: {RECORD}\ncompiler = {:?}\n\n[cases]\n",
        compiler()
    );
    for (name, count) in counts {
        text += &format!("{name} = {count:.1}\n");
    }
    fs::write(file(), &text).expect("a file that can be written");
    print!("{text}");
    ExitCode::SUCCESS
}

fn check(counts: &BTreeMap<&str, f64>) -> ExitCode {
    let text = fs::read_to_string(file()).expect("instructions.toml");
    let recorded: Table = text.parse().expect("TOML");
    let of = |name: &str| recorded["cases"].get(name).and_then(Value::as_float);
    let mut beyond = 0;
    for (name, count) in counts {
        let Some(before) = of(name) else {
            println!("{name}: {count:.1}, not recorded: {RECORD}");
            beyond += 1;
            continue;
        };
        let change = (count / before - 1.0) * 100.0;
        let remark = match change {
            more if more > TOLERANCE => " TOO MANY",
            less if less < -TOLERANCE => " fewer: record it, so that it stays so",
            _ => "",
        };
        beyond += usize::from(change > TOLERANCE);
        println!("{name}: {count:.1}, recorded {before:.1} ({change:+.1} %){remark}");
    }
    if recorded.get("compiler").and_then(Value::as_str) != Some(&compiler()) {
        println!("not held to it: recorded with {}, this is {}", recorded["compiler"], compiler());
        return ExitCode::SUCCESS;
    }
    if beyond > 0 {
        eprintln!(
            "error: {beyond} cases take over {TOLERANCE} % more instructions for a message than \
                   recorded. Find out why; if it is worth it, record it: {RECORD}"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
