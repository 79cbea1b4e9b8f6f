//! Files that may hold secrets: readable by their owner only, never seen half written. Does not know what is in them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a file that is not there yet.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// Replaces a file whole and keeps its permissions, so that a gate that watches it never reads half of it.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mode = std::fs::metadata(path)?.permissions();
    let new = path.with_added_extension("new");
    _ = std::fs::remove_file(&new);
    write_new(&new, text)?;
    std::fs::set_permissions(&new, mode)?;
    std::fs::rename(&new, path)
}
