//! Files that may hold secrets: readable by their owner only, never seen half written. Does not know the content.

use std::io;
use std::path::Path;

use runtime::whole::{self, Readers};

/// Makes a new file.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    whole::create(path, text.as_bytes())
}

/// Replaces a file whole and keeps its permissions, so that a watching gate never reads half of it.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    whole::replace(path, text.as_bytes(), Readers::Same)
}
