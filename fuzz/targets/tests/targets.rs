//! Every target runs over its seeds, over seeds that were cut or changed, and over what once
//! showed a fault; and the fuzzer has a stub for each.
#![allow(clippy::unwrap_used)]

use hopline_fuzz_targets::{Target, seeds, targets};
use std::fs;
use std::path::{Path, PathBuf};

/// Changed inputs that are tried for each target.
const CHANGED: u64 = 400;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// Some octets changed, and the end cut off every other time.
    fn change(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut octets = seed.to_vec();
        if self.below(2) == 0 {
            octets.truncate(self.below(seed.len()));
        }
        for _ in 0..self.below(4) {
            let at = self.below(octets.len());
            if let Some(octet) = octets.get_mut(at) {
                *octet = self.below(256) as u8;
            }
        }
        octets
    }
}

fn fuzz() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), ".."].iter().collect()
}

/// What is asked for by `TARGET=frames`, or all.
fn wanted() -> impl Iterator<Item = &'static Target> {
    let only = std::env::var("TARGET").ok();
    targets().filter(move |target| only.as_ref().is_none_or(|name| name == target.name))
}

#[test]
fn every_target_holds_over_its_seeds() {
    for target in wanted() {
        let seeds = seeds::of(target.name);
        assert!(!seeds.is_empty(), "{}", target.name);
        for (number, seed) in seeds.iter().enumerate() {
            println!("{} seed {number}", target.name);
            (target.run)(seed);
        }
    }
}

#[test]
fn every_target_holds_over_seeds_that_were_changed() {
    for target in wanted() {
        let seeds = seeds::of(target.name);
        for number in 0..CHANGED {
            println!("{} change {number}", target.name);
            let mut random = Random(number);
            let seed = random.below(seeds.len());
            (target.run)(&random.change(&seeds[seed]));
        }
    }
}

#[test]
fn what_once_showed_a_fault_shows_none() {
    for target in wanted() {
        let Ok(folder) = fs::read_dir(fuzz().join("regressions").join(target.name)) else {
            continue;
        };
        for entry in folder {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            (target.run)(&fs::read(path).unwrap());
        }
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_fuzzer_has_a_stub_for_each_target() {
    let mut stubs: Vec<_> = targets().map(|target| format!("{}.rs", target.name)).collect();
    stubs.sort();
    assert_eq!(file_names(&fuzz().join("fuzz_targets")), stubs);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for Target { name, .. } in targets() {
        let stub = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        let call =
            format!("fuzz_target!(|octets: &[u8]| hopline_fuzz_targets::{name}::run(octets))");
        assert!(stub.contains(&call), "{name}: the stub does not call it");
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}

#[test]
fn every_regression_belongs_to_a_target() {
    let folders = file_names(&fuzz().join("regressions"));
    for folder in folders.iter().filter(|name| *name != "README.md") {
        assert!(targets().any(|target| target.name == *folder), "{folder}");
    }
}
