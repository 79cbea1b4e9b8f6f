//! Looks for bytes that break a check of `sim::decoders`: the one that the variable `DECODER` names. The checks themselves are not here.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sim::decoders::{Check, named};

static CHECK: OnceLock<Check> = OnceLock::new();

fn chosen() -> Check {
    let name = std::env::var("DECODER").unwrap_or_default();
    named(&name).unwrap_or_else(|| panic!("DECODER is `{name}`, and has to be a directory of fuzz/corpus"))
}

fuzz_target!(|data: &[u8]| CHECK.get_or_init(chosen)(data));
