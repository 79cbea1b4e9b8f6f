//! Views of particular clients. Shows no tool.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Views of particular clients: `names`, `[profile.NAME]`.
pub(crate) struct ProfileSection;

impl Section for ProfileSection {
    type Form = file::ProfileForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.names = form.names.map_or(config.names, resolve::name_style);
        config.profiles = reading.profiles(&form.profile);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
