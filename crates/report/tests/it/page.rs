//! The page for a browser: as text, and in a real browser where there is one.

use std::fs;
use std::io::sink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Chain, MS};
use hopline_report::{Exports, Options, run};

fn write_page(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("page.html");
    let exports = Exports { html: Some(path.clone()), ..Exports::default() };
    let options = Options { exports, ..Options::default() };
    run(&options, lines.as_bytes(), &mut sink(), sink()).unwrap();
    path
}

fn page(lines: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::read_to_string(write_page(folder.path(), lines)).unwrap()
}

/// Some ordinary messages, some without credit, some in the network.
fn lines() -> String {
    let chain = |n: u64| match n {
        50 | 51 => Chain::default().takes("DEQUEUE", 30 * MS).waits("DEQUEUE", "no-credit"),
        70 => Chain::default().takes("RECEIVE", 90 * MS),
        _ => Chain::default(),
    };
    (0..200).map(|n| chain(n).line(n)).collect()
}

#[test]
fn the_page_shows_all_that_was_asked_for_and_needs_nothing_from_outside() {
    let page = page(&lines());
    for part in [
        "An ordinary message: 68.0 us",
        "Slowest, no. 1: 90.0 ms",
        "Slowest, no. 2: 30.1 ms",
        "no consumer had granted credit",
        "class=\"dot late k",
        "class=\"curve k0\"",
        "prefers-color-scheme: dark",
        "Settings in force",
        "clock of broker",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["<script", "http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// The account of a connection, as programs write it at its end.
const ACCOUNT: &str = r#"{"hopline":"connection","schema":1,"node":"broker",
"local":"10.0.0.1:5672","peer":"10.0.0.2:38718",
"nodelay":true,
"io":{"reads":"363","octets_read":"9804","writes":"553","octets_written":"251673",
"short_writes":"0"},
"frames":{"transfers_in":"0","transfers_out":"600","flows_in":"10","flows_out":"0",
"dispositions_in":"361","dispositions_out":"0"},
"held":{"nagle":"0","cork":"0","receive_window":"0","congestion":"0","unknown":"0"},
"waited":{"no_credit_ns":"2242616","no_window_ns":"0"},
"tcp":{"segments_out":563,"segments_in":461,"data_segments_out":556,"data_segments_in":367,
"retransmits":3,"rtt_us":609,"min_rtt_us":4,
"busy_us":"516000","window_limited_us":"0","send_buffer_limited_us":"0","unsent_octets":0}}"#;

#[test]
fn the_account_of_a_connection_is_a_line_with_others_below() {
    let page = page(&(lines() + &ACCOUNT.replace('\n', "") + "\n"));
    let (_, settings) = page.split_once("Settings in force").unwrap();
    let below = "<li>broker: connection 10.0.0.1:5672 to 10.0.0.2:38718, nodelay on<ul><li>";
    assert!(settings.contains(below), "{settings}");
    for part in ["writes 553", "transfers out 600", "retransmits 3"] {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    assert!(!page.contains('\u{fffd}'), "{settings}");
}

#[test]
fn names_from_the_input_can_t_become_markup() {
    let hostile = lines().replace("\"broker\"", "\"<script>alert(1)</script>'\\\"\"");
    let page = page(&hostile);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&#39;&quot;"));
    assert!(!page.contains("<script"));
}

#[test]
fn without_messages_the_page_says_so() {
    assert!(page("").contains("nothing to measure"));
}

#[test]
fn the_page_does_not_grow_with_the_run() {
    let of = |n: u64| page(&(0..n).map(|n| Chain::default().line(n)).collect::<String>()).len();
    assert!(of(3_000) < of(1_000) * 3 / 2);
}

fn browser() -> Option<Command> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok());
    found.map(|name| {
        let mut command = Command::new(name);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        command.args(["--allow-file-access-from-files", "--enable-logging=stderr"]);
        command
    })
}

/// Shows the page in a frame of a phone's width and says how wide its contents are, and the least
/// size of text in its pictures.
const FRAME: &str = "<body><iframe src=page.html width=360 height=800 style='border:0'></iframe>
<script>onload = () => {
  const page = document.querySelector('iframe').contentDocument;
  const picture = page.querySelector('svg').getBoundingClientRect().width;
  const shown = page.querySelectorAll('svg circle, svg polyline, .track i').length;
  document.body.textContent =
    `width=${page.documentElement.scrollWidth} text=${12 * picture / 400} shown=${shown}`;
}</script>";

#[test]
fn a_browser_shows_it_at_a_phone_s_width_without_a_complaint() {
    let Some(mut browser) = browser() else {
        return println!("skipped: no Chromium on this machine");
    };
    let folder = tempfile::tempdir().unwrap();
    write_page(folder.path(), &lines());
    let frame = folder.path().join("frame.html");
    fs::write(&frame, FRAME).unwrap();
    browser.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    let told =
        browser.arg("--dump-dom").arg(format!("file://{}", frame.display())).output().unwrap();
    let (dom, log) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    let number = |name: &str| {
        let (_, rest) = dom.split_once(&format!("{name}=")).unwrap();
        let digits = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next();
        digits.unwrap().parse::<f64>().unwrap()
    };
    assert!(number("width") <= 360.0, "{dom}");
    assert!(number("text") >= 9.0, "{dom}");
    assert!(number("shown") > 100.0, "{dom}");
    assert!(!log.contains("CONSOLE"), "{log}");
}
