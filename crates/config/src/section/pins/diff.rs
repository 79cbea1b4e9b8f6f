//! Differences of pinning. Pins nothing.

use crate::diff::{self, Change};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::value("pins", old.pins != new.pins).into_iter().collect()
}
