//! Changes of capabilities by admins, kept so that connecting again does not undo them. Does not know who is an admin.

use crate::capability::{Capabilities, Pattern, PatternError};

/// Patterns added and removed since a participant first came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ruling {
    added: Vec<Pattern>,
    removed: Vec<Pattern>,
}

impl Ruling {
    /// Adds a change. A pattern both removed and added is added.
    pub(super) fn then(&self, add: &[Pattern], remove: &[Pattern]) -> Self {
        let with = |old: &[Pattern], without: &[Pattern], more: &[Pattern]| {
            let mut list: Vec<Pattern> = old.iter().filter(|p| !without.contains(p) && !more.contains(p)).cloned().collect();
            list.extend_from_slice(more);
            list
        };
        let gone: Vec<Pattern> = remove.iter().filter(|p| !add.contains(p)).cloned().collect();
        Self { added: with(&self.added, &gone, add), removed: with(&self.removed, add, &gone) }
    }

    /// Applies the changes to given capabilities.
    pub(super) fn apply(&self, given: &Capabilities) -> Result<Capabilities, PatternError> {
        given.with(&self.added, &self.removed)
    }
}
