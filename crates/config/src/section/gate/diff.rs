//! Differences of approvals. Asks nobody.

use crate::diff::{self, Change};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::value("approvals", old.gate != new.gate).into_iter().collect()
}
