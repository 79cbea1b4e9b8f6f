//! The gate's place in a larger tree. Dials nobody.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// The larger tree: `[node]`, `[[parent]]`.
pub(crate) struct JoinSection;

impl Section for JoinSection {
    type Form = file::JoinForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.join = reading.join(form.node.as_ref(), &form.parent);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
