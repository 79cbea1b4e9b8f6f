//! What a run of calls came to, as one line of JSON. Does not compare runs.

use std::time::Duration;

use serde_json::{Value, json};

/// Latencies and failures.
#[derive(Default)]
pub(crate) struct Outcome {
    nanoseconds: Vec<u64>,
    to_first_byte: Vec<u64>,
    bytes: usize,
    shed: usize,
    shed_text: Option<String>,
    errors: Vec<String>,
}

impl Outcome {
    pub(crate) fn answered(&mut self, took: Duration, to_first_byte: Duration, size: usize) {
        self.nanoseconds.push(nanoseconds(took));
        self.to_first_byte.push(nanoseconds(to_first_byte));
        self.bytes += size;
    }

    pub(crate) fn shed(&mut self, text: String) {
        self.shed += 1;
        self.shed_text.get_or_insert(text);
    }

    pub(crate) fn failed(&mut self, error: &anyhow::Error) {
        self.errors.push(format!("{error:#}"));
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        self.nanoseconds.append(&mut other.nanoseconds);
        self.to_first_byte.append(&mut other.to_first_byte);
        self.bytes += other.bytes;
        self.shed += other.shed;
        self.shed_text = self.shed_text.take().or(other.shed_text);
        self.errors.append(&mut other.errors);
    }

    /// Calls that were answered with a result.
    pub(crate) fn calls(&self) -> usize {
        self.nanoseconds.len()
    }

    /// Calls, calls a second, microseconds at some percentiles, and the first error.
    pub(crate) fn json(mut self, took: Duration) -> Value {
        self.nanoseconds.sort_unstable();
        self.to_first_byte.sort_unstable();
        let (seconds, calls) = (took.as_secs_f64(), self.calls());
        let micros = |share| percentile(&self.nanoseconds, share);
        json!({
            "calls": calls, "seconds": seconds, "rate": calls as f64 / seconds, "bytes": self.bytes,
            "p50_us": micros(0.5), "p90_us": micros(0.9), "p99_us": micros(0.99), "p999_us": micros(0.999), "max_us": micros(1.0),
            "first_byte_us": percentile(&self.to_first_byte, 0.5),
            "shed": self.shed, "shed_text": self.shed_text, "errors": self.errors.len(), "first_error": self.errors.first(),
        })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Microseconds below which `share` of the sorted nanoseconds lie.
fn percentile(sorted: &[u64], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |n| *n as f64 / 1000.0)
}

/// Prints a line for `bench/run`.
#[expect(clippy::print_stdout, reason = "standard output is this tool's interface")]
pub(crate) fn line(text: &str) {
    println!("{text}");
}
