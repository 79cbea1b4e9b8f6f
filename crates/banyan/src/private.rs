//! Files that may hold secrets: readable by their owner only, never seen half written. Does not know the content.

use std::io;
use std::path::Path;

use runtime::whole::{self, Readers};

/// Makes a new file.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    whole::create(path, text.as_bytes())
}

/// Replaces a file whole and keeps its permissions, so that a watching gate never reads half of it. A symbolic link stays: its target is
/// replaced.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    whole::replace(&std::fs::canonicalize(path)?, text.as_bytes(), Readers::Same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbolic_link_stays_and_its_target_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
