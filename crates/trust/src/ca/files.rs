//! Files that only their owner reads, never seen half written. Does not know what is in them.

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

/// Puts `text` in the place of `file`. Whoever reads sees the old text or the new one.
pub fn write(file: &Path, text: &str) -> Result<(), CaError> {
    let failed = |source| CaError::File { file: file.to_owned(), what: "written", source };
    whole::replace(file, text.as_bytes(), Readers::Owner).map_err(failed)
}
