//! Looks for bytes that break the check of routes, their cursors and the cursors of pages. The check itself is not here but in `sim::decoders`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sim::decoders::run("route", data));
