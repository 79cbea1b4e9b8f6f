//! Bounds on callers and servers. Enforces none.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Bounds on callers and servers: `[limits]`.
pub(crate) struct LimitsSection;

impl Section for LimitsSection {
    type Form = file::LimitsForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.limits = reading.limits(&form.limits);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
