//! What the fuzzer runs, as functions that the tests run too.
//!
//! A target is a module whose `run` takes any octets and panics where a promise is broken.
//! `fuzz/fuzz_targets` holds a stub for each; [`targets`] lists them for those that run all: the
//! example `seeds`, which writes inputs to begin with, and the tests, which run every target over
//! its seeds, over seeds that are cut or changed, and over `fuzz/regressions`: inputs that once
//! showed a fault.
//!
//! Features: `broker` for the targets that drive the broker, `seeds` for the inputs to begin with.
//! Tests and examples have both; the fuzzer has no `seeds`: it finds them in files.

#![forbid(unsafe_code)]

#[cfg(feature = "broker")]
pub mod broker;
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
#[cfg(feature = "broker")]
pub mod selector;
pub mod timeline;

#[path = "../../../crates/engine/tests/it/support/mod.rs"]
mod engine_support;
#[cfg(feature = "seeds")]
#[path = "../../../crates/wire/tests/it/common/mod.rs"]
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
    ($name:ident { $($target:ident),* $(,)? }) => {
        const $name: &[Target] =
            &[$(Target { name: stringify!($target), run: $target::run }),*];
    };
}

targets!(ALWAYS {
    frames,
    performatives,
    sections,
    sasl,
    timeline,
    report_input,
    engines,
    mangled,
});

#[cfg(feature = "broker")]
targets!(WITH_BROKER { broker, selector });
#[cfg(not(feature = "broker"))]
targets!(WITH_BROKER {});

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    ALWAYS.iter().chain(WITH_BROKER)
}
