//! Looks for bytes that break the check of what clients of MEW say and hear. The check itself is not here but in `sim::decoders`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sim::decoders::run("mew", data));
