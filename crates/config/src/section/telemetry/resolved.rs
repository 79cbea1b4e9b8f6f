//! Receivers of spans, checked. Sends nothing.

/// Where spans go, and how much is logged.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Telemetry {
    /// OTLP/HTTP endpoint, e.g. `http://localhost:4318`.
    pub otlp: Option<url::Url>,
}
