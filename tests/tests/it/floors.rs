//! Dependencies between Hopline's crates only point down, along the edges that
//! `docs/architecture.md` draws, and never in a circle.

use std::fs;
use std::path::PathBuf;

use hopline_tests::workspace_root;
use toml::{Table, Value};

/// A crate's floor, its name, and the crates that it may lean on.
const FLOORS: &[(u8, &str, &[&str])] = &[
    (1, "hopline-wire", &[]),
    (1, "hopline-timeline", &[]),
    (2, "hopline-engine", &["hopline-wire", "hopline-timeline"]),
    (2, "hopline-report", &["hopline-timeline"]),
    (3, "hopline-driver", &["hopline-engine", "hopline-timeline"]),
    (4, "hopline-messenger", &["hopline-driver", "hopline-timeline"]),
    (4, "hopline-broker", &["hopline-driver", "hopline-timeline"]),
    (5, "hopline-lab", &["hopline-messenger", "hopline-report", "hopline-timeline"]),
    (5, "hopline-bin-publisher", &["hopline-messenger", "hopline-timeline"]),
    (5, "hopline-bin-subscriber", &["hopline-messenger", "hopline-timeline"]),
    (5, "hopline-bin-broker", &["hopline-broker", "hopline-timeline"]),
    (5, "hopline-bin-report", &["hopline-report", "hopline-timeline"]),
    (6, "hopline-bin-lab", &["hopline-lab"]),
];

/// Features for tests and fuzzers, which change what the product does or shows.
const TESTS_ONLY: &[&str] = &["fuzzing", "simulation"];

/// A crate's manifest.
struct Manifest(Table);

impl Manifest {
    fn all() -> Vec<Manifest> {
        let folders = ["crates", "bins"].map(|it| workspace_root().join(it));
        let entries = folders.iter().flat_map(|it| fs::read_dir(it).expect("a readable folder"));
        let manifests = entries.map(|entry| entry.expect("an entry").path().join("Cargo.toml"));
        manifests.filter(|path| path.exists()).map(Manifest::read).collect()
    }

    fn read(path: PathBuf) -> Manifest {
        let text = fs::read_to_string(&path).expect("a readable manifest");
        let table = text.parse();
        Manifest(table.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    fn name(&self) -> &str {
        self.0["package"]["name"].as_str().expect("a package has a name")
    }

    /// Which of Hopline's crates a kind of dependencies holds, those of single targets included.
    fn edges(&self, kind: &str) -> Vec<String> {
        let targets = self.0.get("target").and_then(Value::as_table);
        let of_targets = targets.into_iter().flat_map(Table::values).filter_map(|it| it.get(kind));
        let tables = self.0.get(kind).into_iter().chain(of_targets).filter_map(Value::as_table);
        let names = tables.flatten().map(|(key, value)| {
            value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
        });
        names.filter(|name| name.starts_with("hopline")).collect()
    }
}

fn floor(name: &str) -> (u8, &'static [&'static str]) {
    let found = FLOORS.iter().find(|(_, known, _)| *known == name);
    let (floor, _, below) = found.unwrap_or_else(|| {
        panic!("{name} has no floor: draw it in docs/architecture.md, then list it here")
    });
    (*floor, below)
}

#[test]
fn dependencies_follow_the_edges_of_the_architecture() {
    let manifests = Manifest::all();
    assert_eq!(manifests.len(), FLOORS.len(), "a crate is listed that does not exist");
    for manifest in &manifests {
        let (_, below) = floor(manifest.name());
        for edge in manifest.edges("dependencies") {
            assert!(below.contains(&edge.as_str()), "{} may not use {edge}", manifest.name());
        }
        assert!(manifest.edges("build-dependencies").is_empty(), "{}", manifest.name());
    }
}

#[test]
fn tests_never_reach_up() {
    for manifest in Manifest::all() {
        let (here, _) = floor(manifest.name());
        for edge in manifest.edges("dev-dependencies") {
            let (there, _) = floor(&edge);
            assert!(there <= here, "tests of {} reach up to {edge}", manifest.name());
        }
    }
}

#[test]
fn only_tests_ask_for_what_is_for_tests() {
    for manifest in Manifest::all() {
        for kind in ["dependencies", "target"] {
            let asked = manifest.0.get(kind).map(Value::to_string).unwrap_or_default();
            let is_asked_for = TESTS_ONLY.iter().any(|feature| asked.contains(feature));
            assert!(!is_asked_for, "{} asks for it: {asked}", manifest.name());
        }
        let features = manifest.0.get("features").and_then(Value::as_table);
        let default = features.and_then(|it| it.get("default")).map(Value::to_string);
        let default = default.unwrap_or_default();
        assert!(!TESTS_ONLY.iter().any(|it| default.contains(it)), "{}", manifest.name());
    }
}

#[test]
fn the_floors_themselves_point_down() {
    for (here, name, below) in FLOORS {
        for edge in *below {
            assert!(floor(edge).0 < *here, "{name} -> {edge}");
        }
    }
}

#[test]
fn every_crate_takes_over_the_lints_of_the_workspace() {
    for manifest in Manifest::all() {
        let inherited = manifest.0.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(inherited, Some(&Value::Boolean(true)), "{}", manifest.name());
    }
}

#[test]
fn the_architecture_page_names_every_crate() {
    let page = workspace_root().join("docs/architecture.md");
    let text = fs::read_to_string(&page).expect("docs/architecture.md is there");
    for manifest in Manifest::all() {
        // A program goes by the name that is typed.
        let bins = manifest.0.get("bin").and_then(Value::as_array);
        let typed = bins.and_then(|bins| bins[0].get("name")).and_then(Value::as_str);
        let name = typed.unwrap_or(manifest.name());
        assert!(text.contains(name), "docs/architecture.md does not mention {name}");
    }
}
