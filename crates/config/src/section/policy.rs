//! Rules, groups and budgets. Judges no call.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Rules, groups and budgets: `[policy]`, `[group.NAME]`, `[budget.NAME]`.
pub(crate) struct PolicySection;

impl Section for PolicySection {
    type Form = file::PolicyForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.policy = form.policy.as_ref().and_then(|section| reading.policy(section));
        config.groups = reading.groups(&form.group);
        config.budgets = reading.budgets(&form.budget);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
