//! What every source file keeps to, beyond the format and the lints.

use std::fs;
use std::path::{Path, PathBuf};

use hopline_tests::workspace_root;

const MAX_LINES: usize = 500;
const MAX_COLUMNS: usize = 100;

/// Marks of unfinished work. Written in two parts, so that this file passes its own test.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

/// Names of what only the driver may touch: sockets and the real clock.
const DRIVER_ONLY: &[&str] = &[
    "tokio::net",
    "socket2",
    "TcpStream",
    "TcpListener",
    "TcpSocket",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "Instant::now",
    "SystemTime",
];

/// Only the driver calls the system without a safe wrapper.
const UNSAFE: &[&str] = &["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// All Rust files below these folders of the checkout.
    fn below(folders: &[&str]) -> Vec<Source> {
        let mut paths = Vec::new();
        for folder in folders {
            collect(&workspace_root().join(folder), &mut paths);
        }
        assert!(!paths.is_empty(), "no Rust file below {folders:?}");
        paths.into_iter().map(Source::read).collect()
    }

    fn read(path: PathBuf) -> Source {
        let text = fs::read_to_string(&path).expect("a readable file of UTF-8");
        let path = path.strip_prefix(workspace_root()).expect("it is below").to_owned();
        Source { path, text }
    }

    /// Whether it goes into a library or a program.
    fn is_product(&self) -> bool {
        let is = |name| self.path.components().any(|it| it.as_os_str() == name);
        is("src") && !is("tests") && !self.path.ends_with("tests.rs")
    }

    fn is_of_driver(&self) -> bool {
        self.path.starts_with("crates/driver")
    }

    /// The numbered lines that hold code of the product: no comments, and not the tests that
    /// stand at the end of a file.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let product = lines.take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
        product.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn places_of<'a>(
        &'a self,
        names: &'a [&str],
        lines: impl Iterator<Item = (usize, &'a str)>,
    ) -> Vec<String> {
        let found = lines.filter_map(|(number, line)| {
            let name = names.iter().find(|name| line.contains(**name))?;
            Some(format!("{}:{number}: {name}", self.path.display()))
        });
        found.collect()
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn assert_none(places: Vec<String>, rule: &str) {
    assert!(places.is_empty(), "{rule}\n{}", places.join("\n"));
}

#[test]
fn files_are_short() {
    let sources = Source::below(&["crates", "bins"]);
    let long = sources.iter().filter(|it| it.is_product() && it.text.lines().count() > MAX_LINES);
    let places = long.map(|it| it.path.display().to_string()).collect();
    assert_none(places, &format!("split what has more than {MAX_LINES} lines"));
}

#[test]
fn lines_are_short() {
    let sources = Source::below(&["crates", "bins", "fuzz", "tests", "benches"]);
    let places = sources.iter().flat_map(|source| {
        let lines = source.text.lines().enumerate();
        let long = lines.filter(|(_, line)| line.chars().count() > MAX_COLUMNS);
        long.map(|(index, _)| format!("{}:{}", source.path.display(), index + 1))
    });
    assert_none(places.collect(), &format!("break lines of more than {MAX_COLUMNS} columns"));
}

#[test]
fn nothing_is_left_unfinished() {
    let sources = Source::below(&["crates", "bins", "fuzz", "tests", "benches"]);
    let places = sources.iter().flat_map(|source| {
        let lines = source.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        source.places_of(UNFINISHED, lines)
    });
    assert_none(places.collect(), "finish it, or leave it out");
}

#[test]
fn only_the_driver_has_sockets_and_a_clock() {
    let sources = Source::below(&["crates", "bins"]);
    // A live table goes by the seconds of whoever looks at it, which no stamp is compared with, and
    // the report has no way to the driver.
    let is_live_table = |it: &&Source| it.path.ends_with("bins/report/src/watch.rs");
    let others = sources.iter().filter(|it| it.is_product() && !it.is_of_driver());
    let others = others.filter(|it| !is_live_table(it));
    let places = others.flat_map(|it| it.places_of(DRIVER_ONLY, it.code()));
    assert_none(places.collect(), "sockets and time come from hopline-driver");
}

#[test]
fn only_the_driver_has_unsafe_code() {
    let sources = Source::below(&["crates", "bins"]);
    let others = sources.iter().filter(|it| it.is_product() && !it.is_of_driver());
    let places = others.flat_map(|it| it.places_of(UNSAFE, it.code()));
    assert_none(places.collect(), "unsafe code stands in hopline-driver only");
}

#[test]
fn every_crate_says_what_it_is() {
    let sources = Source::below(&["crates", "bins"]);
    let is_root =
        |it: &&Source| it.path.ends_with("src/lib.rs") || it.path.ends_with("src/main.rs");
    let silent = sources.iter().filter(is_root).filter(|it| !it.text.starts_with("//! "));
    let places = silent.map(|it| it.path.display().to_string()).collect();
    assert_none(places, "begin the crate with a line of documentation");
}
