//! The copy and the change of a client's file. Does not decide what is written.

use std::fs;
use std::io;
use std::path::Path;

use runtime::whole::{self, Readers};

/// Makes a copy for its owner only; refuses to write over another file.
pub(super) fn backup(path: &Path, text: &str) -> io::Result<()> {
    whole::create(path, text.as_bytes())
}

/// Tells if the file holds this text; `None` stands for a missing file.
pub(super) fn unchanged(path: &Path, text: Option<&str>) -> io::Result<bool> {
    match fs::read(path) {
        Ok(bytes) => Ok(text.is_some_and(|text| text.as_bytes() == bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(text.is_none()),
        Err(error) => Err(error),
    }
}

/// Puts the text in the file's place, with the permissions of the file; `None` removes it.
pub(super) fn replace(path: &Path, text: Option<&str>) -> io::Result<()> {
    match text {
        Some(text) => whole::replace(path, text.as_bytes(), Readers::Same),
        None => fs::remove_file(path),
    }
}
