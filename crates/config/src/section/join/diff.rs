//! Differences of the gate's place in a larger tree. Dials nobody.

use crate::diff::{self, Change};
use crate::resolved::Config;

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::value("node and parents", old.join != new.join).into_iter().collect()
}
