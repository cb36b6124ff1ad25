//! URLs as users write them.

use hopline_driver::Url;

/// Scheme, user, password, `~`, host, port, address.
type Parts<'a> = (bool, Option<&'a str>, Option<&'a str>, bool, &'a str, u16, Option<&'a str>);

fn parts(url: &Url) -> Parts<'_> {
    let (user, password) = (url.user.as_deref(), url.password.as_deref());
    (url.tls, user, password, url.listen, &url.host, url.port, url.address.as_deref())
}

#[test]
fn urls_that_are_understood() {
    let cases: &[(&str, Parts<'_>)] = &[
        ("amqp://localhost", (false, None, None, false, "localhost", 5672, None)),
        ("amqp://localhost/", (false, None, None, false, "localhost", 5672, None)),
        ("amqp://localhost/q", (false, None, None, false, "localhost", 5672, Some("q"))),
        ("amqps://localhost/q", (true, None, None, false, "localhost", 5671, Some("q"))),
        ("AMQPS://h:1/q", (true, None, None, false, "h", 1, Some("q"))),
        ("amqp://h:65535/q", (false, None, None, false, "h", 65535, Some("q"))),
        ("amqp://u@h/q", (false, Some("u"), None, false, "h", 5672, Some("q"))),
        ("amqp://u:p@h/q", (false, Some("u"), Some("p"), false, "h", 5672, Some("q"))),
        ("amqp://u:@h/q", (false, Some("u"), Some(""), false, "h", 5672, Some("q"))),
        ("amqp://u:a:b@h", (false, Some("u"), Some("a:b"), false, "h", 5672, None)),
        ("amqp://u:a@b@h", (false, Some("u"), Some("a@b"), false, "h", 5672, None)),
        (
            "amqp://u%40x:p%2F%3A%25@h/q%20%C3%A9",
            (false, Some("u@x"), Some("p/:%"), false, "h", 5672, Some("q é")),
        ),
        ("amqp://h/a/b?c#d@e:f", (false, None, None, false, "h", 5672, Some("a/b?c#d@e:f"))),
        ("amqp://h//queues/q", (false, None, None, false, "h", 5672, Some("/queues/q"))),
        ("amqp://h/é", (false, None, None, false, "h", 5672, Some("é"))),
        ("amqp://127.0.0.1:9/q", (false, None, None, false, "127.0.0.1", 9, Some("q"))),
        ("amqp://[::1]/q", (false, None, None, false, "::1", 5672, Some("q"))),
        (
            "amqps://u:p@[2001:db8::1]:9/q",
            (true, Some("u"), Some("p"), false, "2001:db8::1", 9, Some("q")),
        ),
        ("amqp://[fe80::1%eth0]:9", (false, None, None, false, "fe80::1%eth0", 9, None)),
        ("amqp://~0.0.0.0:5673", (false, None, None, true, "0.0.0.0", 5673, None)),
        ("amqp://~[::]:0/q", (false, None, None, true, "::", 0, Some("q"))),
        ("amqps://u:p@~host", (true, Some("u"), Some("p"), true, "host", 5671, None)),
    ];
    for (text, expected) in cases {
        let url: Url = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parts(&url), *expected, "{text}");
    }
}

#[test]
fn urls_that_are_not() {
    let cases = [
        ("", "scheme is missing"),
        ("localhost:5672/q", "scheme is missing"),
        ("http://h/q", "scheme is neither amqp nor amqps"),
        ("://h/q", "scheme is neither"),
        ("amqp://", "host is missing"),
        ("amqp:///q", "host is missing"),
        ("amqp://u@/q", "host is missing"),
        ("amqp://~/q", "host is missing"),
        ("amqp://:5672/q", "host is missing"),
        ("amqp://@h/q", "user is empty"),
        ("amqp://:p@h/q", "user is empty"),
        ("amqp://u%00:p@h/q", "user or password contains a NUL"),
        ("amqp://u:p%00@h/q", "user or password contains a NUL"),
        ("amqp://h:/q", "port is no number"),
        ("amqp://h:x/q", "port is no number"),
        ("amqp://h:+1/q", "port is no number"),
        ("amqp://h:-1/q", "port is no number"),
        ("amqp://h:65536/q", "port is no number"),
        ("amqp://h:0/q", "port is 0"),
        ("amqp://::1/q", "host has more than one `:`"),
        ("amqp://u:pa/ss@h/q", "port is no number"),
        ("amqp://[::1]5672/q", "port must follow"),
        ("amqp://[::1/q", "host has more than one `:`"),
        ("amqp://[localhost]/q", "host is no IPv6 address"),
        ("amqp://[]/q", "host is no IPv6 address"),
        ("amqp://[:é:]/q", "host is no IPv6 address"),
        ("amqp://::1]/q", "host contains"),
        ("amqp://a b/q", "host contains"),
        ("amqp://h?x/q", "host contains"),
        ("amqp://~~h/q", "host contains"),
        ("amqp://u:50%@h/q", "password has a `%`"),
        ("amqp://u%:p@h/q", "user has a `%`"),
        ("amqp://h/q%2", "address has a `%`"),
        ("amqp://h/q%zé", "address has a `%`"),
        ("amqp://h/%ff", "address is not UTF-8"),
        ("amqp://u:%ff@h/q", "password is not UTF-8"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Url>().expect_err(text).to_string();
        assert!(error.starts_with(&format!("the URL's {expected}")), "{text}: {error}");
        let form = "write amqp[s]://[user[:password]@]host[:port][/address]";
        assert!(error.ends_with(form), "{text}: {error}");
    }
}

#[test]
fn no_password_is_ever_shown() {
    let url: Url = "amqps://me:secret@h/q".parse().unwrap();
    assert_eq!(url.to_string(), "amqps://me:***@h:5671/q");
    assert_eq!(format!("{url:?}"), "Url(amqps://me:***@h:5671/q)");
    for text in [
        "amqp://me:sec/ret@h/q",
        "secret@h",
        "secret://h",
        "amqp://me:secret@h:x",
        "amqp://me:secret%@h",
    ] {
        let error = text.parse::<Url>().expect_err(text);
        for shown in [error.to_string(), format!("{error:?}")] {
            assert!(!shown.contains("sec") && !shown.contains("ret@"), "{text}: {shown}");
        }
    }
}

#[test]
fn what_is_displayed_can_be_parsed_again() {
    for text in [
        "amqp://h",
        "amqps://u%40%3A%2F@[::1]:99/a%20b/%25/é?#",
        "amqp://~0.0.0.0:0/q",
        "amqp://%7Eu@~h/q%0A",
    ] {
        let url: Url = text.parse().unwrap();
        let again: Url = url.to_string().parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(again, url, "{text} shown as {url}");
    }
}

#[test]
fn host_and_port_are_as_a_listener_takes_them() {
    let host_port = |text: &str| text.parse::<Url>().unwrap().host_port();
    assert_eq!(host_port("amqp://~[::1]:9"), "[::1]:9");
    assert_eq!(host_port("amqp://localhost"), "localhost:5672");
}
