//! The record of calls and decisions. Records nothing.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// The record: `[audit]`.
pub(crate) struct AuditSection;

impl Section for AuditSection {
    type Form = file::AuditForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.audit = reading.audit(&form.audit);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
