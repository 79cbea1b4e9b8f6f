//! The cost of deciding whether a participant may send a kind, beside the least that any such check does: comparing the beginnings of as
//! many texts. Prints nanoseconds as JSON, for `bench/run`.

use std::hint::black_box;
use std::time::Instant;

use room_proto::capability::{Capabilities, PatternError};
use room_proto::kind::Kind;

const ROUNDS: u32 = 200_000;
const KINDS: [&str; 4] =
    ["chat", "mcp/request:tools/call:read_file", "mcp/proposal:tools/call:write_file", "mcp/request:resources/read:file:///var/log/syslog"];
/// The last has a star inside, and so needs more than a look at the beginning.
const PATTERNS: [&str; 4] = ["mcp/response:*", "mcp/proposal:tools/*", "chat", "mcp/request:*/list"];

#[expect(clippy::print_stdout, reason = "standard output is what a benchmark is for")]
fn main() -> Result<(), PatternError> {
    let capabilities = Capabilities::read(PATTERNS)?;
    let allowed = |kind: &str| capabilities.cover(Kind::new(kind));
    let begins = |kind: &str| PATTERNS.iter().any(|pattern| kind.starts_with(pattern.trim_end_matches('*')));
    assert_eq!(KINDS.map(allowed), [true, false, true, false], "these capabilities cover something else");
    println!(r#"{{"check_ns":{},"floor_ns":{}}}"#, each(allowed), each(begins));
    Ok(())
}

/// Nanoseconds for each kind: the median of several rounds.
#[expect(clippy::disallowed_methods, reason = "time is what is measured")]
fn each(check: impl Fn(&str) -> bool) -> f64 {
    let mut rounds: Vec<f64> = (0..9)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..ROUNDS {
                for kind in KINDS {
                    black_box(check(black_box(kind)));
                }
            }
            began.elapsed().as_nanos() as f64 / f64::from(ROUNDS) / KINDS.len() as f64
        })
        .collect();
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}
