//! Receivers of spans, checked. Sends nothing.

/// Receiver of spans.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Telemetry {
    /// OTLP/HTTP endpoint, e.g. `http://localhost:4318`.
    pub otlp: Option<url::Url>,
}
