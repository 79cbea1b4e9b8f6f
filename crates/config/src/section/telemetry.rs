//! Receivers of spans. Sends nothing.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Telemetry: `[telemetry]`.
pub(crate) struct TelemetrySection;

impl Section for TelemetrySection {
    type Form = file::TelemetryForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.telemetry = reading.telemetry(&form.telemetry);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
