//! Looks for bytes that break the check of the arguments that rules read. The check itself is not here but in `sim::decoders`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sim::decoders::run("arguments", data));
