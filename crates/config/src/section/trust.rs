//! Certificates and signed tokens of others. Reads no key.

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

/// Certificates and signed tokens: `tls`, `resource`, `[issuer.NAME]`, `[authority.NAME]`.
pub(crate) struct TrustSection;

impl Section for TrustSection {
    type Form = file::TrustForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        config.trust = reading.trust(form);
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        if let RefusedFile::Table(file) = refused {
            revoke::keep(&mut left.trust, file);
        }
    }
}
