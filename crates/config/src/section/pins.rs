//! Treatment of new definitions. Pins none.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Pinned definitions: `[pins]`.
pub(crate) struct PinsSection;

impl Section for PinsSection {
    type Form = file::PinsForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.pins = reading.pins(&form.pins);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
