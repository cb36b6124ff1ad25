#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| hopline_fuzz_targets::selector::run(octets));
