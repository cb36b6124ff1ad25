//! Files for other tools: read back by the rules of their formats.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, sink};
use std::path::Path;

use crate::support::{Chain, MS, US};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hopline_report::{Error, Exports, Options, TRACE_LIMIT, run};
use serde_json::Value;

fn export(exports: Exports, lines: &str) {
    let options = Options { exports, ..Options::default() };
    run(&options, lines.as_bytes(), &mut sink(), sink()).unwrap();
}

fn lines(chains: impl IntoIterator<Item = Chain>) -> String {
    (0..).zip(chains).map(|(seq, chain)| chain.line(seq)).collect()
}

/// Counts by the index of their value, by the rules of the format's version 2.
fn decode(histogram: &str) -> BTreeMap<u64, u64> {
    let packed = STANDARD.decode(histogram).unwrap();
    let be = |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet));
    assert_eq!(be(&packed[..4]), 0x1c84_9314);
    assert_eq!(be(&packed[4..8]) as usize, packed.len() - 8);
    let mut plain = Vec::new();
    ZlibDecoder::new(&packed[8..]).read_to_end(&mut plain).unwrap();
    assert_eq!(be(&plain[..4]), 0x1c84_9313);
    assert_eq!(be(&plain[4..8]) as usize, plain.len() - 40);
    let [offset, digits] = [8, 12].map(|at| be(&plain[at..at + 4]));
    assert_eq!((offset, digits, be(&plain[16..24])), (0, 3, 1));
    let (mut at, mut counts, mut octets) = (0, BTreeMap::new(), plain[40..].iter());
    while let Some(first) = octets.next() {
        let (mut number, mut shift, mut octet) = (u64::from(first & 0x7f), 7, *first);
        while octet & 0x80 != 0 {
            octet = *octets.next().unwrap();
            number |= u64::from(octet & 0x7f) << shift;
            shift += 7;
        }
        match (number >> 1, number & 1) {
            (zeros, 1) => at += zeros + 1,
            (count, _) => {
                counts.insert(at, count);
                at += 1;
            }
        }
    }
    counts
}

/// The place of a value below 2,048 is the value; above, each doubling has 1,024.
fn place(ns: u64) -> u64 {
    let doublings = (0..).find(|n| ns >> n < 2_048).unwrap();
    doublings * 1_024 + (ns >> doublings)
}

#[test]
fn the_interval_log_holds_every_hop_second_by_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.hlog");
    // 100 messages a second; those of the third second take longer.
    let takes = |n| if n < 200 { 20 * US } else { 3 * MS };
    let chains = (0..300).map(|n| Chain::default().takes("RECEIVE", takes(n)));
    export(Exports { hlog: Some(path.clone()), ..Exports::default() }, &lines(chains));
    let log = fs::read_to_string(path).unwrap();
    assert!(log.contains("#[Histogram log format version 1.3]\n"), "{log}");
    let hops: Vec<_> = log.lines().filter(|line| line.starts_with("Tag=hop-broker-sub,")).collect();
    let head = |line: &str| line.split(',').take(4).collect::<Vec<_>>().join(",");
    let heads: Vec<_> = hops.iter().map(|line| head(line)).collect();
    let want = ["0.000,1.000,0.020", "1.000,1.000,0.020", "2.000,1.000,3.000"];
    assert_eq!(heads, want.map(|rest| format!("Tag=hop-broker-sub,{rest}")));
    let counts = |line: &str| decode(line.rsplit(',').next().unwrap());
    assert_eq!(counts(hops[0]), BTreeMap::from([(place(20_000), 100)]));
    assert_eq!(counts(hops[2]), BTreeMap::from([(place(3_000_000), 100)]));
}

#[test]
fn percentile_tables_have_a_file_for_each_hop_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("tables");
    let chains = (1..=100).map(|n| Chain::default().takes("RECEIVE", n * US));
    export(Exports { hgrm: Some(into.clone()), ..Exports::default() }, &lines(chains));
    let table = fs::read_to_string(into.join("hop-broker-sub.hgrm")).unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["1.000", "0.000000000000", "1", "1.00"]);
    assert!(rows.iter().any(|row| row[..3] == ["50.015", "0.500000000000", "50"]), "{table}");
    assert!(rows.iter().any(|row| row[..] == ["100.031", "1.000000000000", "100"]), "{table}");
    assert!(table.contains("Total count    =          100]"), "{table}");
    for name in ["stay-broker-RECEIVE-SEND", "end_to_end-DUE-NEXT_EVENT", "hop-pub-broker"] {
        assert!(into.join(format!("{name}.hgrm")).exists(), "{name}");
    }
}

#[test]
fn a_name_from_the_input_leads_to_no_other_folder() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("tables");
    let hostile = lines([Chain::default()]).replace("\"broker\"", "\"../../x,y\"");
    let hlog = folder.path().join("log");
    let exports =
        Exports { hgrm: Some(into.clone()), hlog: Some(hlog.clone()), ..Exports::default() };
    export(exports, &hostile);
    assert!(into.join("hop-pub-______x_y.hgrm").exists());
    assert!(fs::read_to_string(hlog).unwrap().contains("\nTag=hop-pub-______x_y,0.000,"));
}

fn otlp(folder: &Path, lines: &str) -> Vec<Value> {
    let path = folder.join("spans.jsonl");
    export(Exports { otlp: Some(path.clone()), ..Exports::default() }, lines);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every span with the name of its resource.
fn spans(request: &Value) -> Vec<(&str, &Value)> {
    let resources = request["resourceSpans"].as_array().unwrap();
    resources
        .iter()
        .flat_map(|resource| {
            let service = &resource["resource"]["attributes"][0]["value"]["stringValue"];
            let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
            spans.iter().map(|span| (service.as_str().unwrap(), span))
        })
        .collect()
}

#[test]
fn spans_of_opentelemetry_follow_the_rules_of_otlp_s_json() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Chain::default().takes("DEQUEUE", 30 * MS).waits("DEQUEUE", "no-credit");
    let chains = (0..20).map(|_| Chain::default()).chain([slow]);
    let requests = otlp(folder.path(), &lines(chains));
    assert_eq!(requests.len(), 21);
    let slowest = spans(&requests[0]);
    let mut told: Vec<_> =
        slowest.iter().map(|(node, span)| (*node, span["name"].as_str().unwrap())).collect();
    told.sort_unstable();
    let want = [
        ("broker", "hop broker -> sub"),
        ("broker", "stay broker"),
        ("pub", "end to end"),
        ("pub", "hop pub -> broker"),
        ("pub", "send lag"),
        ("pub", "stay pub"),
        ("sub", "stay sub"),
    ];
    assert_eq!(told, want);
    let root = slowest.iter().find(|(_, span)| span["name"] == "end to end").unwrap().1;
    let mut ids = std::collections::BTreeSet::new();
    for (_, span) in &slowest {
        assert_eq!(span["traceId"], "00000000000000000000000000000015");
        assert!(ids.insert(span["spanId"].as_str().unwrap().to_owned()));
        let is_root = span["name"] == "end to end";
        let parent = if is_root { &Value::from("") } else { &root["spanId"] };
        assert_eq!(&span["parentSpanId"], parent);
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let stay = slowest.iter().find(|(_, span)| span["name"] == "stay broker").unwrap().1;
    assert!(stay["attributes"].to_string().contains("no-credit"), "{stay}");
    assert_eq!(stay["events"][2]["name"], "DEQUEUE");
}

/// Nanoseconds beyond 2^53 in every file.
#[test]
fn times_of_64_bits_come_through_whole() {
    let folder = tempfile::tempdir().unwrap();
    let offset: i64 = 1_700_000_000_123_456_789;
    let far = lines([Chain::default()])
        .replace("\"wall_offset_ns\":\"0\"", &format!("\"wall_offset_ns\":\"{offset}\""));
    let create = (offset + 1_000 * MS).to_string();
    let requests = otlp(folder.path(), &far);
    let stay = spans(&requests[0]).into_iter().find(|(_, span)| span["name"] == "stay pub");
    assert_eq!(stay.unwrap().1["startTimeUnixNano"], create.as_str());

    let path = folder.path().join("trace.json");
    export(Exports { perfetto: Some(path.clone()), ..Exports::default() }, &far);
    let trace: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let stay = events.iter().find(|event| event["name"] == "stay pub").unwrap();
    assert_eq!(stay["args"]["start_unix_ns"], create.as_str());
    let due = (offset + 1_000 * MS - 2 * US).to_string();
    assert_eq!(trace["otherData"]["zero_unix_ns"], due.as_str());
    assert_eq!((stay["ts"].as_f64(), stay["dur"].as_f64()), (Some(2.0), Some(6.0)));
}

#[test]
fn perfetto_gets_the_slowest_messages_and_no_more_than_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let many = TRACE_LIMIT as i64 + 50;
    let chains = (0..many).map(|n| Chain::default().takes("RECEIVE", n * US));
    export(Exports { perfetto: Some(path.clone()), ..Exports::default() }, &lines(chains));
    let trace: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let hops = events.iter().filter(|event| event["name"] == "hop broker -> sub");
    let hops: Vec<_> = hops.map(|hop| hop["args"]["delay_ns"].as_str().unwrap()).collect();
    assert_eq!(hops.len(), TRACE_LIMIT);
    assert_eq!(hops[0], ((many - 1) * US).to_string());
}

#[test]
fn a_file_that_can_t_be_written_is_named() {
    let path = std::path::PathBuf::from("/nonexistent/folder/file");
    let each = [
        Exports { hlog: Some(path.clone()), ..Exports::default() },
        Exports { hgrm: Some("/proc/nothing".into()), ..Exports::default() },
        Exports { otlp: Some(path.clone()), ..Exports::default() },
        Exports { perfetto: Some(path), ..Exports::default() },
    ];
    for exports in each {
        let options = Options { exports, ..Options::default() };
        let told = run(&options, &b""[..], &mut sink(), sink());
        assert!(matches!(told, Err(Error::Export { .. })), "{told:?}");
    }
}
