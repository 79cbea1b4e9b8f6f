//! Files that only their owner may read, replaced whole. Does not know their contents.

use std::fs;
use std::path::Path;

use runtime::whole::{self, Readers};

use crate::ca::CaError;

/// Makes a directory for its owner only.
pub fn make_dir(dir: &Path) -> Result<(), CaError> {
    let failed = |source| CaError::File { file: dir.to_owned(), what: "written", source };
    whole::make_dirs(dir, 0o700).map_err(failed)
}

/// Reads a file of the authority.
pub fn read(file: &Path) -> Result<String, CaError> {
    fs::read_to_string(file).map_err(|source| CaError::File { file: file.to_owned(), what: "read", source })
}

/// Replaces the content of `file` by `text`. A reader sees the old text or the new one, whole.
pub fn write(file: &Path, text: &str) -> Result<(), CaError> {
    let failed = |source| CaError::File { file: file.to_owned(), what: "written", source };
    whole::replace(file, text.as_bytes(), Readers::Owner).map_err(failed)
}
