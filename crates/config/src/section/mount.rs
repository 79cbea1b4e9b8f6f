//! Servers behind the gate. Starts none.

mod diff;
pub(crate) mod family;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;
pub(crate) mod tool;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::section::Section;

/// Servers behind the gate: `[mount.NAME]`.
pub(crate) struct MountSection;

impl Section for MountSection {
    type Form = file::MountForm;

    const MOUNTS: Option<&'static str> = Some("mount");

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.mounts.extend(reading.mounts(form));
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }
}
