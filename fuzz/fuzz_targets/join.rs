//! Looks for texts that break the check of tokens for joining. The check itself is not here but in `sim::decoders`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sim::decoders::run("join", data));
