//! What a run of calls came to, as one line of JSON. Does not compare runs.

use std::time::Duration;

/// Latencies and failures.
#[derive(Default)]
pub(crate) struct Outcome {
    nanoseconds: Vec<u64>,
    bytes: usize,
    errors: Vec<String>,
}

impl Outcome {
    pub(crate) fn answered(&mut self, took: Duration, size: usize) {
        self.nanoseconds.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.bytes += size;
    }

    pub(crate) fn failed(&mut self, error: &anyhow::Error) {
        self.errors.push(format!("{error:#}"));
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        self.nanoseconds.append(&mut other.nanoseconds);
        self.bytes += other.bytes;
        self.errors.append(&mut other.errors);
    }

    /// Calls, calls a second, microseconds at some percentiles, and the first error.
    pub(crate) fn json(mut self, took: Duration) -> String {
        self.nanoseconds.sort_unstable();
        let seconds = took.as_secs_f64();
        let calls = self.nanoseconds.len();
        let micros = |share: f64| {
            let at = ((calls as f64 * share) as usize).min(calls.saturating_sub(1));
            self.nanoseconds.get(at).map_or(0.0, |n| *n as f64 / 1000.0)
        };
        serde_json::json!({
            "calls": calls, "seconds": seconds, "rate": calls as f64 / seconds, "bytes": self.bytes,
            "p50_us": micros(0.5), "p90_us": micros(0.9), "p99_us": micros(0.99), "p999_us": micros(0.999), "max_us": micros(1.0),
            "errors": self.errors.len(), "first_error": self.errors.first(),
        })
        .to_string()
    }
}

/// Prints a line for `bench/run`.
#[expect(clippy::print_stdout, reason = "standard output is this tool's interface")]
pub(crate) fn line(text: &str) {
    println!("{text}");
}
