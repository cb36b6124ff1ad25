use super::*;
use hopline_driver::engine::wire::message::{Message, Properties, Timestamp};
use hopline_driver::engine::wire::{Symbol, Value};
use proptest::prelude::*;

fn bare(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode_bare(&mut out);
    out
}

fn matches(selector: &str, message: &Message) -> bool {
    let compiled = Selector::parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
    let subject = Subject { header: message.header.clone(), bare: &bare(message) };
    compiled.matches(&subject).0
}

fn refusal(selector: &str) -> String {
    Selector::parse(selector).map(|_| selector).expect_err("refused").to_string()
}

fn message() -> Message {
    let application_properties = vec![
        ("colour".into(), Value::from("red")),
        ("quote".into(), Value::from("it's")),
        ("n".into(), Value::Int(7)),
        ("big".into(), Value::Ulong(u64::MAX)),
        ("odd".into(), Value::Long((1 << 53) + 1)),
        ("weight".into(), Value::Double(2.5)),
        ("nan".into(), Value::Double(f64::NAN)),
        ("price".into(), Value::Decimal32([0xb2 & 0x7f, 0x00, 0x00, 0x0f])),
        ("yes".into(), Value::Boolean(true)),
        ("no".into(), Value::Boolean(false)),
        ("none".into(), Value::Null),
        ("c".into(), Value::Char('\u{1f600}')),
        ("uuid".into(), Value::Uuid([0x11; 16])),
        ("octets".into(), Value::Binary(vec![0xff].into())),
        ("x-opt-key".into(), Value::Ubyte(1)),
        ("a.b$c_d".into(), Value::Short(-3)),
        ("größe".into(), Value::Float(0.5)),
    ];
    let properties = Properties {
        message_id: Some(Value::Ulong(42)),
        user_id: Some(b"ann"[..].into()),
        to: Some("q".into()),
        subject: Some("news".into()),
        correlation_id: Some(Value::Uuid([0x22; 16])),
        content_type: Some(Symbol::from_static("text/plain")),
        creation_time: Some(Timestamp(1_000)),
        group_id: Some("g".into()),
        group_sequence: Some(u32::MAX),
        ..Properties::default()
    };
    let header = Header { durable: true, priority: 9, ttl: Some(5_000), ..Header::default() };
    Message { header, properties, application_properties, ..Message::data("body") }
}

#[test]
fn what_is_true_and_what_is_not() {
    let message = message();
    let cases = [
        ("colour = 'red'", true),
        ("colour <> 'red'", false),
        ("COLOUR = 'red'", false),
        ("quote = 'it''s'", true),
        ("n = 7 AND weight = 2.5", true),
        ("n = 7.0 and n = 7L and n = 7e0 And n = 70E-1", true),
        ("n BETWEEN 7 AND 7", true),
        ("n not between 1 and 6", true),
        ("n IN (1, 7, -3)", true),
        ("\"a.b$c_d\" IN (-3) AND a.b$c_d = -3", true),
        ("colour IN ('green', 'red')", true),
        ("colour NOT IN ('green', 'blue')", true),
        ("colour LIKE 'r_d' AND colour NOT LIKE '%x%'", true),
        ("\"x-opt-key\" = 1", true),
        ("größe < 1", true),
        ("1 + 2 * 3 = n", true),
        ("(1 + 2) * 3 = n + 2", true),
        ("n - 1 - 2 = 4", true),
        ("n / 2 = 3 AND n / 2.0 = 3.5", true),
        ("-n = -7 AND +n = 7 AND - -n = 7", true),
        ("yes", true),
        ("NOT no", true),
        ("yes = TRUE and no = false", true),
        ("yes AND no OR yes", true),
        ("no AND no OR yes AND yes", true),
        ("no OR NOT no AND no", false),
        ("NOT n = 8", true),
        ("c = '\u{1f600}' AND c LIKE '_'", true),
        ("uuid = '11111111-1111-1111-1111-111111111111'", true),
        ("octets IS NOT NULL AND NOT octets = 'x'", true),
        ("none IS NULL and missing is null and n IS NOT NULL", true),
        ("price = 1.5", true),
        (".5 < 57.", true),
    ];
    for (selector, expected) in cases {
        assert_eq!(matches(selector, &message), expected, "{selector}");
    }
}

#[test]
fn null_is_neither_true_nor_false() {
    let message = message();
    let unknown = ["missing = 1", "missing <> 1", "none", "missing LIKE '%'", "missing IN ('a')"];
    let unknown = unknown.into_iter().chain(["missing BETWEEN 1 AND 2", "missing + 1 = 2"]);
    for selector in unknown.chain(["n / 0 = 1", "n * colour = 1", "n", "colour"]) {
        assert!(!matches(selector, &message), "{selector}");
        assert!(!matches(&format!("NOT ({selector})"), &message), "NOT {selector}");
        assert!(matches(&format!("{selector} OR yes"), &message), "{selector} OR yes");
        assert!(!matches(&format!("{selector} AND yes"), &message), "{selector} AND yes");
        assert!(matches(&format!("NOT ({selector} AND no)"), &message), "{selector} AND no");
        assert!(!matches(&format!("NOT ({selector} OR no)"), &message), "{selector} OR no");
    }
}

#[test]
fn unlike_types_are_false_both_ways() {
    let message = message();
    for selector in
        ["colour = 7", "colour <> 7", "n = 'red'", "n <> 'red'", "yes <> 1", "n LIKE '7'"]
    {
        assert!(!matches(selector, &message), "{selector}");
        assert!(matches(&format!("NOT {selector}"), &message), "NOT {selector}");
    }
    assert!(!matches("colour > n", &message), "texts have no order");
}

#[test]
fn numbers_at_their_limits() {
    let message = message();
    for selector in [
        "odd = 9007199254740993",
        "odd <> 9007199254740992.0",
        "odd > 9007199254740992.0",
        "big = 18446744073709551615",
        "big > 9223372036854775807 and big < 1E300",
        "big + 1 > big AND big * 2 > big",
        "nan <> nan AND NOT nan = nan AND NOT nan < 1 AND NOT nan >= 1",
        "-9223372036854775808 < n",
    ] {
        assert!(matches(selector, &message), "{selector}");
    }
    assert!(!matches("big * big * big * big > 0", &message), "no number is as large");
}

#[test]
fn fields_of_header_and_properties() {
    let message = message();
    for selector in [
        "amqp.durable AND amqp.priority = 9 AND amqp.ttl = 5000 AND NOT amqp.first_acquirer",
        "amqp.delivery_count = 0 AND JMSXDeliveryCount = 1 AND NOT JMSRedelivered",
        "JMSDeliveryMode = 'PERSISTENT' AND JMSPriority > 4",
        "amqp.message_id = 42 AND JMSMessageID = 'ID:AMQP_ULONG:42'",
        "amqp.correlation_id = '22222222-2222-2222-2222-222222222222'",
        "JMSCorrelationID = 'ID:AMQP_UUID:22222222-2222-2222-2222-222222222222'",
        "amqp.user_id = 'ann' AND JMSXUserID = 'ann'",
        "amqp.to = 'q' AND JMSDestination = 'q' AND amqp.subject = 'news' AND JMSType = 'news'",
        "amqp.content_type = 'text/plain' AND amqp.content_encoding IS NULL",
        "amqp.creation_time = 1000 AND JMSTimestamp BETWEEN 999 AND 1001",
        "amqp.absolute_expiry_time IS NULL AND JMSExpiration IS NULL",
        "amqp.group_id = 'g' AND JMSXGroupID = 'g' AND JMSXGroupSeq = 4294967295",
        "amqp.reply_to IS NULL AND JMSReplyTo IS NULL AND amqp.reply_to_group_id IS NULL",
    ] {
        assert!(matches(selector, &message), "{selector}");
    }
    let plain = Message::data("");
    assert!(matches("JMSDeliveryMode = 'NON_PERSISTENT' AND JMSPriority = 4", &plain));
    assert!(matches("amqp.message_id IS NULL AND JMSMessageID IS NULL", &plain));
}

#[test]
fn ids_as_jms_spells_them() {
    let ids = [
        (Value::from("ID:abc"), "ID:abc"),
        (Value::from("abc"), "ID:AMQP_NO_PREFIX:abc"),
        (Value::Ulong(0), "ID:AMQP_ULONG:0"),
        (Value::Uuid([0xab; 16]), "ID:AMQP_UUID:abababab-abab-abab-abab-abababababab"),
        (Value::Binary(vec![0x0a, 0xff].into()), "ID:AMQP_BINARY:0AFF"),
    ];
    for (id, expected) in ids {
        let message_id = Some(id.clone());
        let properties = Properties { message_id, ..Properties::default() };
        let message = Message { properties, ..Message::data("") };
        assert!(matches(&format!("JMSMessageID = '{expected}'"), &message), "{id:?}");
        assert!(matches("JMSMessageID LIKE 'ID:%'", &message), "{id:?}");
    }
    let correlation_id = Some(Value::from("abc"));
    let properties = Properties { correlation_id, ..Properties::default() };
    let message = Message { properties, ..Message::data("") };
    assert!(matches("JMSCorrelationID = 'abc' AND amqp.correlation_id = 'abc'", &message));
}

#[test]
fn what_is_no_selector_is_refused() {
    let wrong = [
        "",
        " ",
        "'text'",
        "5",
        "1 + 1",
        "a = ",
        "= a",
        "a b",
        "a = 'open",
        "\"open",
        "a = 1 AND",
        "(a = 1",
        "a = 1)",
        "a ==",
        "a != 1",
        "a = 1 AND OR b = 2",
        "a LIKE b",
        "a LIKE 1",
        "a LIKE 'x' ESCAPE",
        "a LIKE 'x' ESCAPE ''",
        "a LIKE 'x' ESCAPE 'ab'",
        "a LIKE 'x!' ESCAPE '!'",
        "a IS 1",
        "a IS NOT",
        "a IN ()",
        "a IN ('x'",
        "a IN 'x'",
        "a IN (b)",
        "a IN (1 + 1)",
        "a IN (1,)",
        "a IN (TRUE)",
        "a BETWEEN 1",
        "a BETWEEN 1 OR 2",
        "a BETWEEN 'x' AND 'y'",
        "a NOT 1",
        "NOT",
        "a AND 5",
        "5 OR a",
        "'x' AND a",
        "a + 'x' = 1",
        "a < 'x'",
        "TRUE > a",
        "1 < 2 < 3",
        "a = NOT b",
        "null = null",
        "1x = 1",
        "1.5.2 = a",
        "1e = 1",
        "18446744073709551616 = a",
        "a ; b",
        "a = #",
        "amqp.colour = 'red'",
        "0x10 = a",
        "\u{0} = 1",
        "escape = 1",
        "between",
        "1.5L = 1",
        "LIKE 'x'",
    ];
    for selector in wrong {
        let text = refusal(selector);
        assert!(text.starts_with("the selector is wrong at octet "), "{selector}: {text}");
    }
}

#[test]
fn limits_and_what_is_just_below() {
    let long = |octets: usize| format!("a = '{}'", "x".repeat(octets - 6));
    assert!(Selector::parse(&long(TEXT)).is_ok());
    assert!(refusal(&long(TEXT + 1)).contains("longer than 16384 octets"));

    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Selector::parse(&nested(NESTING - 1)).is_ok());
    for deep in
        [nested(NESTING), "NOT ".repeat(NESTING) + "a", "-".repeat(8_000), "(".repeat(8_000)]
    {
        assert!(refusal(&deep).contains("nests deeper"), "{deep}");
    }

    let steps = |n: usize| vec!["a"; n].join(" OR ");
    assert!(Selector::parse(&steps(OPS / 2)).is_ok());
    assert!(refusal(&steps(OPS / 2 + 1)).contains("more parts"));
    let sum = format!("{} = 499", vec!["1"; 499].join("+"));
    assert!(matches(&sum, &Message::data("")));
}

#[test]
fn an_evaluation_is_bounded() {
    let text = "x".repeat(1 << 18);
    let properties = vec![("a".into(), Value::from(text.clone())), ("b".into(), Value::from(text))];
    let message = Message { application_properties: properties, ..Message::data("") };
    assert!(matches("a = b", &message));
    let many = vec!["a = b"; 200].join(" AND ");
    let bare = bare(&message);
    let subject = Subject { header: Header::default(), bare: &bare };
    let (is_match, cost) = Selector::parse(&many).unwrap().matches(&subject);
    assert!(!is_match);
    assert_eq!(cost, FUEL);
}

#[test]
fn sections_that_do_not_decode_match_nothing() {
    let good = bare(&Message {
        properties: Properties { subject: Some("s".into()), ..Properties::default() },
        application_properties: vec![("a".into(), Value::from("x"))],
        ..Message::data("")
    });
    let never = Selector::parse("missing IS NULL AND amqp.to IS NULL").unwrap();
    let run = |bare: &[u8]| never.matches(&Subject { header: Header::default(), bare }).0;
    assert!(run(&good));
    let at = good.iter().position(|octet| *octet == b's').unwrap();
    let mut broken = good.clone();
    broken[at] = 0xff;
    assert!(!run(&broken), "no UTF-8");
    let at = good.windows(2).position(|pair| pair == [0xa1, 1]).unwrap();
    let mut broken = good.clone();
    broken[at] = 0x01;
    assert!(!run(&broken), "no constructor");
    // A key of application-properties is a string.
    let at = good.windows(3).position(|three| three == [0xa1, 1, b'a']).unwrap();
    let mut broken = good;
    broken[at] = 0xa0;
    assert!(!run(&broken), "a binary as key");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = Selector::parse(&text);
    }

    #[test]
    fn no_row_of_tokens_panics(tokens in proptest::collection::vec(
        prop::sample::select(vec![
            "a", "n", "colour", "'x'", "''", "7", "1.5", "TRUE", "NULL", "NOT", "AND", "OR", "LIKE",
            "IN", "BETWEEN", "IS", "ESCAPE", "(", ")", ",", "=", "<>", "<", "+", "-", "*", "/",
            "amqp.to", "JMSMessageID", "\"q\"",
        ]),
        0..24,
    )) {
        if let Ok(selector) = Selector::parse(&tokens.join(" ")) {
            let message = message();
            let subject = Subject { header: message.header.clone(), bare: &bare(&message) };
            selector.matches(&subject);
        }
    }

    #[test]
    fn no_octets_panic(octets in proptest::collection::vec(any::<u8>(), 0..80), flip: bool) {
        let selector = Selector::parse("a = 1 OR amqp.to = 'x' OR JMSMessageID LIKE '%'").unwrap();
        let front = if flip { [0x00, 0x53, 0x73] } else { [0x00, 0x53, 0x74] };
        let bare = [&front[..], &octets].concat();
        selector.matches(&Subject { header: Header::default(), bare: &bare });
    }
}
