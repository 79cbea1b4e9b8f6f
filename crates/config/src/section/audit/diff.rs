//! Differences of the record. Records nothing.

use crate::diff::{self, Change};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::value("audit", old.audit != new.audit).map(Change::at_restart).into_iter().collect()
}
