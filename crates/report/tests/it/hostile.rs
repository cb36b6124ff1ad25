//! Input that is broken, hostile or endless: a report all the same, and a count for what was left.

use std::io::{self, Read, Write};

use flate2::{Compression, write::GzEncoder};
use hopline_report::{DETAIL_LIMIT, Error, Format, Options, Outcome, Wanted, run};
use hopline_timeline::record::MAX_LINE_OCTETS;

const GOOD: &str = concat!(
    r#"{"hopline":"message","schema":1,"seq":0,"id":"ID","address":"q","octets":1,"node"#,
    r#"s":[{"name":"pub","kind":"monotonic","host":"0101010101010101010101010101010a",""#,
    r#"wall_offset_ns":"0","error_bound_ns":"0"}],"stamps":[{"node":0,"stage":"CREATE","#,
    r#""at_ns":"100"},{"node":0,"stage":"SEND","at_ns":"350"}]}"#,
);

fn good(id: u128) -> String {
    GOOD.replace("ID", &format!("{id:032x}"))
}

struct Told {
    outcome: Outcome,
    json: String,
    log: String,
}

impl Told {
    fn count(&self, name: &str) -> u64 {
        let (_, rest) = self.json.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    }
}

fn told(input: impl Read) -> Told {
    let options = Options { format: Format::Json, ..Options::default() };
    let (mut json, mut log) = (Vec::new(), Vec::new());
    let outcome = run(&options, input, &mut json, &mut log).unwrap();
    let [json, log] = [json, log].map(|octets| String::from_utf8(octets).unwrap());
    Told { outcome, json, log }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// One bad line between two good ones.
fn between_good_ones(bad: &[u8]) -> Told {
    let lines = [good(1).as_bytes(), bad, good(2).as_bytes()].join(&b'\n');
    told(&lines[..])
}

#[test]
fn a_malformed_line_is_named_and_the_rest_goes_on() {
    let mutations = [
        ("\"seq\":0", "\"seq\":-1"),
        ("\"seq\":0", "\"seq\":18446744073709551616"),
        ("\"seq\":0", "\"seq\":1e999"),
        ("\"seq\":0", "\"seq\":NaN"),
        ("\"seq\":0", "\"seq\":{}"),
        ("\"at_ns\":\"350\"", "\"at_ns\":350"),
        ("\"at_ns\":\"350\"", "\"at_ns\":\"9223372036854775808\""),
        ("\"at_ns\":\"350\"", "\"at_ns\":\"-9223372036854775809\""),
        ("\"at_ns\":\"350\"", "\"at_ns\":\"3.5\""),
        ("\"at_ns\":\"350\"", "\"at_ns\":\"NaN\""),
        ("\"node\":0", "\"node\":7"),
        ("\"node\":0", "\"node\":-1"),
        ("\"stage\":\"SEND\"", "\"stage\":\"#256\""),
        ("\"stage\":\"SEND\"", "\"stage\":\"\\ud800\""),
        ("\"stage\":\"SEND\"", "\"stage\":null"),
        ("\"id\":\"", "\"id\":\"x"),
        ("\"nodes\":[", "\"nodes\":[[],"),
        ("}]}", "}]"),
        ("{", "[{"),
    ];
    for (from, to) in mutations {
        let told = between_good_ones(good(3).replacen(from, to, 1).as_bytes());
        assert_eq!((told.count("messages"), told.count("malformed")), (2, 1), "{to}");
        assert!(told.log.starts_with("hopline-report: -:2: "), "{}", told.log);
        assert_eq!(told.log.lines().count(), 1, "{}", told.log);
        assert_eq!(told.outcome, Outcome::Complete);
    }
}

#[test]
fn octets_that_are_no_text_are_malformed() {
    let told = between_good_ones(b"\xff\xfe\x00{\x80\"");
    assert_eq!((told.count("messages"), told.count("malformed")), (2, 1));
    let inside = good(3).replace("pub", "p\u{fffd}b").into_bytes();
    let at = inside.windows(3).position(|octets| octets == "\u{fffd}".as_bytes()).unwrap();
    let mut inside = inside;
    inside[at] = 0xff;
    assert_eq!(between_good_ones(&inside).count("malformed"), 1);
}

#[test]
fn deep_nesting_costs_no_stack() {
    let deep = "[".repeat(100_000);
    assert_eq!(between_good_ones(deep.as_bytes()).count("malformed"), 1);
    let ignored = format!("{{\"hopline\":\"mystery\",\"x\":{}", "[".repeat(100_000));
    assert_eq!(between_good_ones(ignored.as_bytes()).count("malformed"), 1);
}

#[test]
fn a_huge_line_is_skipped_and_the_quotation_of_a_bad_one_is_short() {
    let huge = vec![b'['; 8 * MAX_LINE_OCTETS];
    let told = between_good_ones(&huge);
    assert_eq!((told.count("messages"), told.count("malformed")), (2, 1));
    assert!(told.log.contains(&MAX_LINE_OCTETS.to_string()), "{}", told.log);
    let stage = format!("\"stage\":\"{}", "\u{1b}x".repeat(1_000).replace('\u{1b}', "\\u001b"));
    let told = between_good_ones(good(3).replacen("\"stage\":\"", &stage, 1).as_bytes());
    assert_eq!(told.count("malformed"), 1);
    assert!(told.log.len() < 2_000 && !told.log.contains('\u{1b}'), "{}", told.log);
}

#[test]
fn an_endless_line_takes_no_more_memory_than_the_limit() {
    let endless = io::repeat(b'x').take(256 << 20);
    let told = told(endless);
    assert_eq!((told.count("malformed"), told.outcome), (1, Outcome::NotFound));
}

#[test]
fn complaints_are_bounded() {
    let many = "nonsense\n".repeat(1_000);
    let told = told(many.as_bytes());
    assert_eq!(told.count("malformed"), 1_000);
    assert!(told.log.contains("hopline-report: 990 more malformed lines"), "{}", told.log);
    // The detailed ones, the rest as a number, and that there was no message.
    assert_eq!(told.log.lines().count() as u64, DETAIL_LIMIT + 2);
}

#[test]
fn a_last_line_without_its_end_counts_if_it_is_whole_and_is_truncated_if_not() {
    let whole = told(good(1).as_bytes());
    assert_eq!((whole.count("messages"), whole.count("truncated")), (1, 0));
    let text = format!("{}\n{}", good(1), &good(2)[..200]);
    let cut = told(text.as_bytes());
    assert_eq!((cut.count("messages"), cut.count("truncated"), cut.count("malformed")), (1, 1, 0));
    assert!(cut.log.contains("-:2: "), "{}", cut.log);
    assert_eq!(cut.outcome, Outcome::Complete);
}

#[test]
fn gzip_is_read_like_plain_text_also_when_it_is_cut_off() {
    let text: String = (0..5_000).map(|id| good(id) + "\n").collect();
    let packed = gzip(&text);
    assert_eq!(told(&packed[..]).count("messages"), 5_000);
    let cut = told(&packed[..packed.len() * 9 / 10]);
    assert!((1_000..5_000).contains(&cut.count("messages")));
    assert_eq!((cut.count("truncated"), cut.outcome), (1, Outcome::Complete));
}

#[test]
fn a_damaged_gzip_is_read_as_far_as_it_goes_and_is_no_success() {
    let text: String = (0..5_000).map(|id| good(id) + "\n").collect();
    let mut packed = gzip(&text);
    let trailer = packed.len() - 8;
    packed[trailer] ^= 0xff;
    let told = told(&packed[..]);
    assert_eq!((told.count("messages"), told.outcome), (5_000, Outcome::Unread));
    assert!(told.log.contains("-:5001: reading stopped"), "{}", told.log);
}

#[test]
fn no_input_means_no_message_and_no_figure() {
    for (format, absent) in [(Format::Text, "no messages"), (Format::Json, "\"hops\":[]")] {
        let options = Options { format, ..Options::default() };
        let (mut out, mut log) = (Vec::new(), Vec::new());
        let outcome = run(&options, io::empty(), &mut out, &mut log).unwrap();
        assert_eq!(outcome, Outcome::NotFound);
        assert!(String::from_utf8(out).unwrap().contains(absent));
        assert!(String::from_utf8(log).unwrap().contains("no message"));
    }
}

#[test]
fn percentiles_of_a_leg_that_was_never_measured_are_absent() {
    let missing = good(1).replace("\"350\"", "null");
    let told = told(missing.as_bytes());
    assert_eq!((told.count("messages"), told.count("missing")), (1, 1));
    assert!(told.json.contains("\"count\":0,\"min_ns\":null,\"p50_ns\":null"), "{}", told.json);
}

#[test]
fn the_farthest_instants_neither_wrap_nor_panic() {
    let [least, greatest] = [i64::MIN + 1, i64::MAX];
    for (start, end) in [(least, greatest), (greatest, least), (greatest, greatest)] {
        let far = good(1).replace("\"100\"", &format!("\"{start}\""));
        let far = far.replace("\"350\"", &format!("\"{end}\""));
        assert_eq!(told(far.as_bytes()).count("messages"), 1);
    }
}

#[test]
fn a_reader_that_leaves_is_no_error_and_a_full_disk_is() {
    struct Failing(io::ErrorKind);
    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let asked = Wanted { first: 1, ..Wanted::default() };
    let options = Options { wanted: asked, ..Options::default() };
    let to = |kind| run(&options, good(1).as_bytes(), &mut Failing(kind), io::sink());
    assert_eq!(to(io::ErrorKind::BrokenPipe).unwrap(), Outcome::Complete);
    assert!(matches!(to(io::ErrorKind::StorageFull), Err(Error::Write(_))));
}

#[test]
fn no_form_hands_commands_of_a_name_to_the_terminal() {
    let hostile = good(1).replace("\"pub\"", r#""\u001b[2J\u009b1m\npub""#);
    let wanted = Wanted { first: 1, ..Wanted::default() };
    for format in [Format::Text, Format::Json, Format::Csv] {
        let options = Options { wanted: wanted.clone(), format, ..Options::default() };
        let (mut out, mut log) = (Vec::new(), Vec::new());
        run(&options, hostile.as_bytes(), &mut out, &mut log).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("[2J"), "the name is shown: {text}");
        // JSON has escapes of its own for those of ASCII, and is not read at a terminal.
        let is_command = |c: char| c.is_control() && (c.is_ascii() || format != Format::Json);
        assert!(!text.contains(|c| is_command(c) && c != '\n'), "{text:?}");
    }
}

#[test]
fn counts_of_the_input_that_go_beyond_all_numbers_stop_at_the_greatest() {
    let summary =
        r#"{"hopline":"side_summary","schema":1,"node":"b","records":"0","dropped":"MAX"}"#;
    let summary = summary.replace("MAX", &u64::MAX.to_string()) + "\n";
    let told = told((summary.clone() + &summary).as_bytes());
    assert_eq!(told.count("kernel_dropped"), u64::MAX);
}
