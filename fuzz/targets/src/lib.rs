//! What the fuzzer runs, as functions that the tests run too.
//!
//! A target is a module whose `run` takes any octets and panics where a promise is broken.
//! `fuzz/fuzz_targets` holds a stub for each; [`TARGETS`] lists them for those that run all: the
//! program `seeds`, which writes inputs to begin with, and the tests, which run every target over
//! its seeds, over seeds that are cut or changed, and over `fuzz/regressions`: inputs that once
//! showed a fault.
//!
//! The feature `seeds` is on by default. The fuzzer does without: it finds the seeds in files.

#![forbid(unsafe_code)]

pub mod engines;
pub mod frames;
mod input;
pub mod mangled;
mod memory;
mod oracle;
pub mod performatives;
pub mod report_input;
pub mod sasl;
pub mod sections;
#[cfg(feature = "seeds")]
pub mod seeds;
pub mod timeline;

#[path = "../../../crates/engine/tests/support/mod.rs"]
mod engine_support;
#[cfg(feature = "seeds")]
#[path = "../../../crates/wire/tests/common/mod.rs"]
mod wire_values;

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of the module, of the stub and of the folder of its corpus.
    pub name: &'static str,
    /// Takes any octets; panics where a promise is broken.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident),+ $(,)?) => {
        /// All targets.
        pub const TARGETS: &[Target] =
            &[$(Target { name: stringify!($name), run: $name::run }),+];
    };
}

targets!(frames, performatives, sections, sasl, timeline, report_input, engines, mangled);
