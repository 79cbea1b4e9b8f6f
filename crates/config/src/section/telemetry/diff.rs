//! Differences of telemetry. Sends nothing.

use crate::diff::{self, Change};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::value("telemetry", old.telemetry != new.telemetry).map(Change::at_restart).into_iter().collect()
}
