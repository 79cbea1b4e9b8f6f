//! The form of `[telemetry]`. Checks no address.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of telemetry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TelemetryForm {
    /// Receiver of traces.
    pub telemetry: Telemetry,
}

/// Receiver of traces.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// Address of an OTLP/HTTP collector.
    #[schemars(example = "http://localhost:4318")]
    pub otlp: Option<At<String>>,
}
