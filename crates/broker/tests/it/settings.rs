//! Settings from all places, their order, their mistakes, and the way back.

use hopline_broker::settings::{Overrides, SettingsError, load, print};
use hopline_broker::{
    Config, Direction, DurableMessages, ForwardConfig, ListenerConfig, Sampling, SideSink,
    TlsFiles, User,
};
use hopline_driver::Reconnect;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const NO_VARIABLES: &[(&str, &str)] = &[];
const GUIDE: &str = include_str!("../../../../docs/configuration.md");

/// A folder with a file of settings in it.
struct Folder(TempDir);

impl Folder {
    fn with(settings: &str) -> Self {
        let folder = Self(TempDir::new().unwrap());
        std::fs::write(folder.path("broker.toml"), settings).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn flags(&self) -> Overrides {
        Overrides { config: Some(self.path("broker.toml")), ..Overrides::default() }
    }

    fn load(&self) -> Result<Config, SettingsError> {
        with_variables(&self.flags(), NO_VARIABLES)
    }
}

fn with_variables(flags: &Overrides, variables: &[(&str, &str)]) -> Result<Config, SettingsError> {
    load(flags, |wanted| {
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| OsString::from(value))
    })
}

fn mistake(settings: &str) -> String {
    let folder = Folder::with(settings);
    let text = folder.load().unwrap_err().to_string();
    text.replace(&format!("{}/", folder.0.path().display()), "")
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn nothing_means_the_defaults() {
    assert_eq!(with_variables(&Overrides::default(), NO_VARIABLES).unwrap(), Config::default());
    assert_eq!(Folder::with("").load().unwrap(), Config::default());
}

#[test]
fn flags_win_over_variables_over_the_file() {
    let folder = Folder::with(
        "name = 'file'\ntimelines = 'off'\nanonymous = true\n[limits]\nconnections = 1\n\
         handle_max = 7\n[[listener]]\naddress = '127.0.0.1:1'\nbacklog = 5\n\
         [[user]]\nname = 'u'\npassword = 'p'",
    );
    let variables = [
        ("HOPLINE_NAME", "variable"),
        ("HOPLINE_TIMELINES", "1/100"),
        ("HOPLINE_ANONYMOUS", "off"),
        ("HOPLINE_LIMITS_CONNECTIONS", "2"),
        ("HOPLINE_LISTEN", "[::1]:2, localhost:3"),
        ("HOPLINE_NODELAY", "off"),
        ("HOPLINE_NODES_QUEUES", "a, b"),
        ("HOPLINE_NODES_TOPIC_PREFIXES", ""),
        ("HOPLINE_NODES_PRIORITY_QUEUES", "urgent,u/*"),
    ];
    let mut flags = folder.flags();
    flags.name = Some("flag".into());
    flags.listen = vec!["0.0.0.0:0".into()];

    let config = with_variables(&flags, &variables).unwrap();
    assert_eq!(config.name, "flag");
    assert_eq!(config.timelines, Sampling::OneIn(100));
    assert!(!config.anonymous);
    assert_eq!((config.limits.connections, config.limits.handle_max), (2, 7));
    assert_eq!(config.nodes.queues, ["a", "b"]);
    assert!(config.nodes.topic_prefixes.is_empty());
    assert_eq!(config.nodes.priority_queues, ["urgent", "u/*"]);
    let [listener] = config.listeners.as_slice() else { panic!("one listener") };
    assert_eq!(listener.address, "0.0.0.0:0");
    assert!(!listener.socket.nodelay, "the variable holds for listeners of flags too");
    assert_eq!(listener.socket.backlog, 5, "options outlast the address that they stood with");

    flags.listen.clear();
    flags.nodelay = Some(true);
    let config = with_variables(&flags, &variables).unwrap();
    let addresses: Vec<_> = config.listeners.iter().map(|it| it.address.as_str()).collect();
    assert_eq!(addresses, ["[::1]:2", "localhost:3"]);
    assert!(config.listeners.iter().all(|it| it.socket.nodelay));
}

#[test]
fn the_file_can_be_named_by_a_variable_and_by_a_flag_before_it() {
    let (one, other) = (Folder::with("name = 'one'"), Folder::with("name = 'other'"));
    let path = one.path("broker.toml");
    let variables = [("HOPLINE_CONFIG", path.to_str().unwrap())];
    assert_eq!(with_variables(&Overrides::default(), &variables).unwrap().name, "one");
    assert_eq!(with_variables(&other.flags(), &variables).unwrap().name, "other");
}

#[test]
fn times_sizes_and_off_are_written_as_people_do() {
    let config = Folder::with(
        "stop_timeout = '0s'\n[limits]\nidle_timeout = 'off'\nhandshake_timeout = '1m 30s'\n\
         max_frame_size = '64KiB'\nmax_message_size = 1_000_000\nchannel_max = '9'\n\
         [nodes]\nmax_octets = '1.5MiB'\nmax_delivery_count = 3\n\
         [[listener]]\nnotsent_lowat = 'off'\nsend_buffer = '1MB'\nkeepalive = '500s'\n\
         nodelay = 'off'\nuser_timeout = '500ms'",
    );
    let config = config.load().unwrap();
    assert_eq!(config.stop_timeout, Duration::ZERO);
    assert_eq!(config.limits.idle_timeout, None);
    assert_eq!(config.limits.handshake_timeout, Duration::from_secs(90));
    assert_eq!((config.limits.max_frame_size, config.limits.channel_max), (65_536, 9));
    assert_eq!(config.limits.max_message_size, 1_000_000);
    assert_eq!(config.nodes.max_octets, 3 << 19);
    assert_eq!(config.nodes.max_delivery_count, Some(3));
    let socket = &config.listeners[0].socket;
    assert_eq!((socket.notsent_lowat, socket.send_buffer), (None, Some(1_000_000)));
    assert_eq!(socket.keepalive, Some(Duration::from_secs(500)));
    assert_eq!(socket.user_timeout, Some(Duration::from_millis(500)));
    assert!(!socket.nodelay);
}

#[test]
fn mistakes_in_the_file_are_told_by_line_and_cure() {
    let cases: &[(&str, &[&str])] = &[
        ("name = 'a'\nnayme = 'b'", &["broker.toml:2: unknown key `nayme`", "mean `name`?"]),
        ("[[listener]]\n\nnodeley = true", &["broker.toml:3: ", "mean `nodelay`?"]),
        ("\n[limit]\nconnections = 1", &["broker.toml:2: ", "mean `limits`?"]),
        ("[[forward]]\nfrom = 'q'", &["broker.toml:1: ", "`to`"]),
        ("[[forward]]\nfrom = 'q'\nto = 'r'", &["broker.toml:1: ", "has to be the URL"]),
        ("[[forward]]\nfrom = 'amqp://h/q'\nto = 'amqp://h/q'", &["both URLs", "name of a"]),
        ("[[forward]]\nfrom = 'q'\nto = 'amqp://h/q'\nca = 'c'", &["toml:1: ", "write amqps"]),
        (
            "[[forward]]\nfrom = 'q'\nto = 'amqp://h'",
            &["broker.toml:3: ", "amqp://host:5672/queue"],
        ),
        ("[[forward]]\nfrom = 'q'\nto = 'http://h/q'", &["broker.toml:3: ", "amqps"]),
        ("[[forward]]\nfrom = '$x'\nto = 'amqp://h/q'", &["broker.toml:2: ", "reserved"]),
        ("[[forward]]\nfrom = 'q'\nto = 'amqp://h/q'\nnodely = 1", &["mean `nodelay`?"]),
        ("[[user]]\nxyz = 1", &["broker.toml:2: ", "the keys here are name, password"]),
        ("\n\nname = ", &["broker.toml:3: "]),
        ("name = 'a'\nname = 'b'", &["broker.toml:2: ", "duplicate key"]),
        ("\ntimelines = '1/0'", &["broker.toml:2: ", "1/N, such as 1/100"]),
        ("stop_timeout = 5", &["broker.toml:1: ", "with its unit, such as 500ms"]),
        ("[limits]\nmax_frame_size = 511", &["broker.toml:2: ", "from 512 to 4294967295"]),
        ("[limits]\nmax_frame_size = '4GiB'", &["broker.toml:2: ", "to 4294967295"]),
        ("[limits]\nchannel_max = 65536", &["broker.toml:2: ", "from 0 to 65535"]),
        ("[limits]\nconnections = -1", &["broker.toml:2: ", "from 1 to"]),
        ("[limits]\nconnections = 1.5", &["broker.toml:2: ", "a whole number"]),
        ("[limits]\nidle_timeout = '1ms'", &["broker.toml:2: ", "from 10ms", ", or off"]),
        ("[[listener]]\nkeepalive = '10h'", &["broker.toml:2: ", "from 1s to"]),
        ("[[listener]]\naddress = '::1:5672'", &["broker.toml:2: ", "[::]:5672"]),
        ("[[listener]]\naddress = '127.0.0.1'", &["broker.toml:2: ", "write HOST:PORT"]),
        ("[listener]\naddress = '127.0.0.1:1'", &["broker.toml:1: ", "expected a sequence"]),
        ("[[listener]]\n[listener.tls]\nkey = 'k'", &["broker.toml:2: ", "`certificate`"]),
        ("name = ''", &["broker.toml:1: ", "not empty"]),
        ("[[user]]\nname = 'u'", &["broker.toml:1: ", "`password`"]),
        ("[[user]]\nname = 'u'\npassword = ''", &["broker.toml:3: ", "not empty"]),
        ("[[user]]\nname = 'u'\npassword = '********'", &["broker.toml:3: ", "the mask"]),
    ];
    for (settings, parts) in cases {
        assert_says(&mistake(settings), parts);
    }
    let long = format!("name = '{}'", "n".repeat(65));
    assert_says(&mistake(&long), &["broker.toml:1: ", "64 octets at most"]);
}

#[test]
fn what_only_the_whole_can_tell_is_told_too() {
    assert_says(&mistake("anonymous = false"), &["nobody may connect", "add a [[user]]"]);
    let user = "[[user]]\nname = 'ann'\npassword = 'one'\n";
    let text = mistake(&format!("{user}{}", user.replace("one", "two")));
    assert_says(&text, &["two [[user]] of the name \"ann\""]);
    let anybody = user.replace("ann", "anonymous");
    assert_says(&mistake(&anybody), &["\"anonymous\"", "rename it"]);
    Folder::with(&format!("anonymous = false\n{anybody}")).load().unwrap();
    let forward = "[[forward]]\nname = 'f'\nfrom = 'q'\nto = 'amqp://h/q'\n";
    assert_says(&mistake(&forward.repeat(2)), &["two [[forward]] of the name \"f\""]);
    let stamps = "[[listener]]\nkernel_timestamps = 'all'\n";
    assert_says(&mistake(stamps), &["127.0.0.1:5672", "set side_records to a file", "receive"]);
    assert_says(&mistake(&format!("{forward}kernel_timestamps = '1/5'")), &["of f asks"]);
    let side = Folder::with(&format!("side_records = 'side'\n{stamps}"));
    assert_eq!(side.load().unwrap().side_records, SideSink::File(side.path("side")));
    let timeline = Folder::with(&format!("side_records = '$timeline'\n{stamps}"));
    assert_eq!(timeline.load().unwrap().side_records, SideSink::Timeline);
    let tls = "[[listener]]\ntls = { certificate = 'none.pem', key = 'none.key' }";
    let error = Folder::with(tls).load().unwrap_err();
    assert_says(&error.to_string(), &["127.0.0.1:5672", "[listener.tls]"]);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_says(&cause, &["/none.pem"]);
    let trust = "[[forward]]\nname = 'f'\nfrom = 'q'\nto = 'amqps://h/q'\nca = 'none.pem'";
    let error = Folder::with(trust).load().unwrap_err();
    assert_says(&error.to_string(), &["\"f\"", "correct its `ca`"]);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_says(&cause, &["/none.pem"]);
}

#[test]
fn a_mistake_tells_no_password() {
    for line in ["password = 'hunter2", "pasword = 'hunter2'", "password = 'hunter2' 'x'"] {
        let folder = Folder::with(&format!("[[user]]\nname = 'u'\n{line}"));
        let error = folder.load().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = Folder::with("");
    let missing = Overrides { config: Some(folder.path("gone.toml")), ..Overrides::default() };
    let error = with_variables(&missing, NO_VARIABLES).unwrap_err();
    assert_says(&error.to_string(), &["gone.toml", "can't be read"]);
    std::fs::write(folder.path("broker.toml"), [b'#', 0xff]).unwrap();
    assert!(matches!(folder.load().unwrap_err(), SettingsError::Read { .. }));
}

#[test]
fn mistakes_in_variables_and_flags_are_told_by_name_and_cure() {
    let variables: &[(&str, &str, &str)] = &[
        ("HOPLINE_NAME", "", "not empty"),
        ("HOPLINE_NODELAY", "maybe", "write on or off"),
        ("HOPLINE_LISTEN", "", "write HOST:PORT"),
        ("HOPLINE_LISTEN", "127.0.0.1:1,5672", "write HOST:PORT"),
        ("HOPLINE_TIMELINES", "some", "write all, carried, off or 1/N"),
        ("HOPLINE_LIMITS_IDLE_TIMEOUT", "60", "with its unit"),
        ("HOPLINE_NODES_MAX_OCTETS", "0", "from 1 to"),
    ];
    for (name, value, cure) in variables {
        let error = with_variables(&Overrides::default(), &[(*name, *value)]).unwrap_err();
        assert_says(&error.to_string(), &["environment variable", name, cure]);
    }
    let listen = Overrides { listen: vec!["nowhere".into()], ..Overrides::default() };
    let error = with_variables(&listen, NO_VARIABLES).unwrap_err();
    assert_says(&error.to_string(), &["the flag --listen is \"nowhere\"", "write HOST:PORT"]);
    let timelines = Overrides { timelines: Some("x".into()), ..Overrides::default() };
    let error = with_variables(&timelines, NO_VARIABLES).unwrap_err();
    assert_says(&error.to_string(), &["the flag --timelines is \"x\"", "write all"]);
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let odd = |name: &str| (name == "HOPLINE_NAME").then(|| OsString::from_vec(vec![0xff]));
    let error = load(&Overrides::default(), odd).unwrap_err();
    assert_says(&error.to_string(), &["HOPLINE_NAME", "UTF-8"]);
}

/// A configuration in which nothing has its default.
fn unlike_the_default(tls: TlsFiles) -> Config {
    let mut config = Config { name: "ünlike \"it\"".into(), ..Config::default() };
    config.anonymous = false;
    config.timelines = Sampling::OneIn(7);
    config.stop_timeout = Duration::from_millis(1_500);
    config.limits.idle_timeout = None;
    config.limits.handshake_timeout = Duration::from_secs(61);
    config.nodes.auto_create = false;
    config.nodes.deny = vec!["secret/*".into(), "a\\b".into()];
    config.nodes.topic_prefixes.clear();
    config.nodes.priority_queues = vec!["urgent/*".into()];
    config.nodes.group_queues = vec!["grouped".into()];
    config.nodes.dead_letter = Some("dead".into());
    config.nodes.max_delivery_count = Some(5);
    config.nodes.durable_messages = DurableMessages::Reject;
    config.limits.connections_per_address = 12;
    let ca = Some(tls.certificate.clone());
    let mut listener = ListenerConfig { tls: Some(tls), ..ListenerConfig::default() };
    listener.address = "[::1]:0".into();
    listener.socket.nodelay = false;
    listener.socket.send_buffer = Some(4_096);
    listener.socket.notsent_lowat = None;
    listener.socket.keepalive = Some(Duration::from_secs(30));
    listener.socket.user_timeout = Some(Duration::from_millis(2_500));
    listener.socket.reuse_port = true;
    listener.socket.kernel_timestamps = "1/16".parse().unwrap();
    config.side_records = SideSink::File("/side".into());
    config.listeners.push(listener);
    config.users = vec![User { name: "u".into(), password: "hunter2".into() }];
    let mut out = ForwardConfig {
        name: "out".into(),
        local: "q".into(),
        remote: "amqps://ann:hunter2@[::1]:1/a/b%20c".parse().unwrap(),
        direction: Direction::Out,
        socket: config.listeners[1].socket.clone(),
        ca,
        reconnect: Reconnect { first: Duration::from_millis(5), ..Reconnect::default() },
    };
    out.socket.reuse_port = false;
    let remote = "amqp://h/q".parse().unwrap();
    let incoming = ForwardConfig { name: "in".into(), remote, ..out.clone() };
    config.forwards = vec![out, ForwardConfig { direction: Direction::In, ca: None, ..incoming }];
    config
}

#[test]
fn what_is_printed_is_read_back_the_same_but_for_passwords() {
    let folder = Folder::with("");
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path("c.pem"), pair.cert.pem()).unwrap();
    std::fs::write(folder.path("k.pem"), pair.signing_key.serialize_pem()).unwrap();
    let tls = TlsFiles { certificate: folder.path("c.pem"), key: folder.path("k.pem") };
    for config in [Config::default(), unlike_the_default(tls)] {
        let text = print(&config);
        assert!(!text.contains("hunter2"));
        std::fs::write(folder.path("broker.toml"), text.replace("********", "hunter2")).unwrap();
        assert_eq!(folder.load().unwrap(), config, "{text}");
    }
    let beside = "[[listener]]\ntls = { certificate = 'c.pem', key = 'k.pem' }";
    std::fs::write(folder.path("broker.toml"), beside).unwrap();
    let config = folder.load().unwrap();
    let tls = config.listeners[0].tls.as_ref().unwrap();
    assert_eq!(tls.certificate, folder.path("c.pem"), "paths are seen from the file's folder");
    let beside = "[[forward]]\nfrom = 'q'\nto = 'amqps://h/q'\nca = 'c.pem'";
    std::fs::write(folder.path("broker.toml"), beside).unwrap();
    let config = folder.load().unwrap();
    assert_eq!(config.forwards[0].ca, Some(folder.path("c.pem")), "here too");
}

/// The keys of a table, those of tables in it with its name before.
fn keys(table: &toml::Table, prefix: &str, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        let tables = match value {
            toml::Value::Table(table) => vec![table],
            toml::Value::Array(values) => values.iter().filter_map(|it| it.as_table()).collect(),
            _ => Vec::new(),
        };
        match tables.as_slice() {
            [] => _ = found.insert(format!("{prefix}{key}")),
            some => some.iter().for_each(|it| keys(it, &format!("{prefix}{key}."), found)),
        }
    }
}

#[test]
fn the_guide_lists_each_key_and_each_variable() {
    let tls = TlsFiles { certificate: "c".into(), key: "k".into() };
    let mut found = BTreeSet::new();
    keys(&print(&unlike_the_default(tls)).parse().unwrap(), "", &mut found);
    assert!(found.contains("listener.tls.certificate") && found.contains("user.password"));
    let asked = RefCell::new(BTreeSet::new());
    load(&Overrides::default(), |name| {
        asked.borrow_mut().insert(name.to_owned());
        None
    })
    .unwrap();
    assert!(asked.borrow().contains("HOPLINE_LIMITS_CONNECTIONS"));
    for name in found.iter().chain(asked.borrow().iter()) {
        assert!(GUIDE.contains(&format!("| `{name}` |")), "docs/configuration.md lacks `{name}`");
    }
}

#[test]
fn the_guide_tells_the_true_defaults() {
    let start = GUIDE.find("```toml\n").unwrap() + "```toml\n".len();
    let end = start + GUIDE[start..].find("```").unwrap();
    let example = &GUIDE[start..end];
    assert_eq!(Folder::with(example).load().unwrap(), Config::default());
    let (mut written, mut printed) = (BTreeSet::new(), BTreeSet::new());
    keys(&example.parse().unwrap(), "", &mut written);
    keys(&print(&Config::default()).parse().unwrap(), "", &mut printed);
    printed.remove("user");
    printed.remove("forward");
    assert_eq!(written, printed);
}
