//! From the section `[audit]` to what is recorded. Does not make the directory.

use super::Lowering;
use crate::config::file;
use crate::config::problem::Flaw;
use crate::config::resolved::Audit;

/// Less would be taken away before anybody has read it.
const LEAST: u64 = 1 << 20;

impl Lowering<'_> {
    pub(super) fn audit(&mut self, section: &file::Audit) -> Audit {
        let defaults = Audit::default();
        let keep_bytes = self.size(section.keep_size.as_ref()).map_or(defaults.keep_bytes, |bytes| bytes as u64);
        if let Some(text) = section.keep_size.as_ref().filter(|_| keep_bytes < LEAST) {
            let flaw = Flaw::new(text.span(), "the record keeps at least 1MiB");
            self.flaws.push(flaw.help("`enabled = false` records nothing"));
        }
        Audit {
            enabled: section.enabled.unwrap_or(defaults.enabled),
            path: section.path.as_ref().map(|path| self.directory(path)),
            arguments: section.arguments.unwrap_or_default(),
            keep_bytes,
            keep_for: self.duration(section.keep_for.as_ref()),
        }
    }
}
