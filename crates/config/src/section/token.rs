//! Bearer tokens, kept as hashes. Makes none.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;
mod revoke;

use crate::diff::Change;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::revoked::RefusedFile;
use crate::section::Section;

/// Bearer tokens: `[[token]]`.
pub(crate) struct TokenSection;

impl Section for TokenSection {
    type Form = file::TokenForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.tokens = reading.tokens(&form.token);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        revoke::keep(&mut left.tokens, refused);
    }
}
