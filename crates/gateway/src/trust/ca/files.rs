//! Files that only their owner reads, never seen half written. Does not know what is in them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::CaError;

pub(in crate::trust) fn make_dir(dir: &Path) -> Result<(), CaError> {
    let failed = |source| CaError::File { file: dir.to_owned(), what: "written", source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)
}

pub(super) fn read(file: &Path) -> Result<String, CaError> {
    fs::read_to_string(file).map_err(|source| CaError::File { file: file.to_owned(), what: "read", source })
}

/// Writes `text` beside `file` and puts it in its place. Whoever reads sees the old text or the new one.
pub(in crate::trust) fn write(file: &Path, text: &str) -> Result<(), CaError> {
    let failed = |source| CaError::File { file: file.to_owned(), what: "written", source };
    let new = file.with_added_extension("new");
    _ = fs::remove_file(&new);
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(failed)?;
    open.write_all(text.as_bytes()).and_then(|()| open.sync_all()).map_err(failed)?;
    fs::rename(&new, file).map_err(failed)
}
