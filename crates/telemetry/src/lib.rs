//! The view from outside: metrics for Prometheus, spans for OpenTelemetry, and the log.
//!
//! Records no audit: the audit has its own writer. Never holds arguments or results of calls above TRACE.

pub mod log;
pub mod metrics;
pub mod otlp;
pub mod span;
pub mod trace_context;
pub mod traffic;

/// The longest text from outside that is kept in a span or a log field, in bytes.
const TEXT_LIMIT: usize = 256;

/// Cuts `text` to at most [`TEXT_LIMIT`] bytes, between characters.
fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_LIMIT)]
}
