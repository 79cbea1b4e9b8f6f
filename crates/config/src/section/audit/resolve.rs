//! Resolves `[audit]`. Does not make the directory.

use super::file;
use super::resolved::{AT_LEAST, Audit};
use crate::problem::Flaw;
use crate::reading::FileReading;

/// Smallest record, in bytes: entries of a smaller one would be gone before anybody has read them.
const LEAST: u64 = 1 << 20;

impl FileReading<'_> {
    pub(super) fn audit(&mut self, section: &file::Audit) -> Audit {
        let defaults = Audit::default();
        let keep_bytes = self.size(section.keep_size.as_ref()).map_or(defaults.keep_bytes, |bytes| bytes as u64);
        if let Some(text) = section.keep_size.as_ref().filter(|_| keep_bytes < LEAST) {
            let flaw = Flaw::new(text.span(), "the record keeps at least 1MiB");
            self.flaws.push(flaw.help("`enabled = false` records nothing"));
        }
        let keep_for = self.duration(section.keep_for.as_ref());
        let keep_at_least = self.duration(section.keep_at_least.as_ref());
        if let (Some(least), Some(most), Some(text)) = (keep_at_least, keep_for, &section.keep_at_least)
            && least > most
        {
            let flaw = Flaw::new(text.span(), "no entry is kept longer than `keep_for`");
            self.flaws.push(flaw.help("`keep_at_least` is at most as long as `keep_for`"));
        }
        let full_bytes = self.size(section.full_size.as_ref()).map(|bytes| bytes as u64);
        if let Some(text) = section.full_size.as_ref().filter(|_| full_bytes.is_some_and(|full| full < keep_bytes)) {
            let flaw = Flaw::new(text.span(), "the record is full before it is as long as it is kept");
            self.flaws.push(flaw.help("`full_size` is at least `keep_size`"));
        }
        Audit {
            enabled: section.enabled.unwrap_or(defaults.enabled),
            path: section.path.as_ref().map(|path| self.path(path)),
            arguments: section.arguments.unwrap_or_default(),
            keep_bytes,
            keep_for,
            keep_at_least: keep_at_least.unwrap_or_else(|| keep_for.map_or(AT_LEAST, |most| most.min(AT_LEAST))),
            full_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use crate::parse;
    use crate::resolved::Audit;
    use crate::secret::SystemSources;

    fn audit(section: &str) -> Result<Audit, String> {
        let read = parse(&format!("[audit]\n{section}"), Path::new("banyan.toml"), &SystemSources);
        read.map(|config| config.audit).map_err(|problem| problem.to_string())
    }

    #[test]
    fn entries_are_kept_a_day_at_least_but_no_longer_than_at_most() {
        let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
        for (section, least) in [("", day), ("keep_for = \"1h\"", hour), ("keep_for = \"30d\"", day), ("keep_at_least = \"1h\"", hour)] {
            assert_eq!(audit(section).unwrap().keep_at_least, least, "{section}");
        }
        let told = audit("keep_at_least = \"2d\"\nkeep_for = \"1d\"").unwrap_err();
        assert!(told.contains("no entry is kept longer than `keep_for`"), "{told}");
    }

    #[test]
    fn a_full_record_is_no_smaller_than_keep_size() {
        assert_eq!(audit("").unwrap().full_bytes, None);
        assert_eq!(audit("keep_size = \"1MiB\"\nfull_size = \"2MiB\"").unwrap().full_bytes, Some(2 << 20));
        let told = audit("full_size = \"1MiB\"").unwrap_err();
        assert!(told.contains("`full_size` is at least `keep_size`"), "{told}");
    }
}
