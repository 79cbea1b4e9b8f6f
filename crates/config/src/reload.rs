//! Reads a changed file against the configuration in force. Does not put the new one in force: callers keep the last good configuration
//! until the answer is [`Reload::Applied`].

use std::path::Path;

use super::diff::{Change, diff};
use super::problem::ConfigError;
use super::resolved::Config;
use super::secret::Sources;

/// The consequence of a changed file.
#[derive(Debug)]
pub enum Reload {
    /// Take this configuration.
    Applied {
        /// The new configuration.
        config: Box<Config>,
        /// Never empty.
        changes: Vec<Change>,
    },
    /// Keep the old configuration, and tell somebody.
    Bad { error: ConfigError },
    /// Nothing: comments and spelling do not count.
    Unchanged,
}

/// Reads the file at `path` again, with the sections that `current` was read with.
pub fn reload(current: &Config, path: &Path, sources: &dyn Sources) -> Reload {
    let config = match current.sections.load(path, sources) {
        Ok(config) => config,
        Err(error) => return Reload::Bad { error },
    };
    let changes = diff(current, &config);
    if changes.is_empty() {
        return Reload::Unchanged;
    }
    if std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        return Reload::Bad { error: ConfigError::Empty { path: path.to_owned() } };
    }
    Reload::Applied { config: Box::new(config), changes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SystemSources;

    #[test]
    fn only_a_good_and_different_file_is_applied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("banyan.toml");
        let again = |current: &Config, text: &str| {
            std::fs::write(&path, text).unwrap();
            reload(current, &path, &SystemSources)
        };
        let Reload::Applied { config, changes } = again(&Config::default(), "[mount.a]\ncommand = \"x\"") else { panic!() };
        assert_eq!(changes.iter().map(Change::to_string).collect::<Vec<_>>(), ["+ mount a"]);

        assert!(matches!(again(&config, "# a word\n[mount.a]\ncommand = 'x'"), Reload::Unchanged));

        let Reload::Bad { error } = again(&config, "[mount.a]\ncomand = \"x\"") else { panic!() };
        assert!(error.to_string().contains("did you mean `command`?"), "{error}");

        let Reload::Bad { error } = again(&config, "") else { panic!() };
        assert!(error.to_string().contains("is empty"), "{error}");

        std::fs::remove_file(&path).unwrap();
        assert!(matches!(reload(&config, &path, &SystemSources), Reload::Bad { error: ConfigError::Read { .. } }));
    }
}
