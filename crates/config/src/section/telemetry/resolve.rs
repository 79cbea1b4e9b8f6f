//! Resolves `[telemetry]`. Connects to nobody.

use super::file;
use super::resolved::Telemetry;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn telemetry(&mut self, telemetry: &file::Telemetry) -> Telemetry {
        Telemetry { otlp: telemetry.otlp.as_ref().and_then(|otlp| self.address(otlp)) }
    }
}
