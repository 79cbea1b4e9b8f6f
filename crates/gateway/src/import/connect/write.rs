//! Writes a file in one piece, so that nobody ever sees half of it. Does not decide what is written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Makes a copy that only its owner may read; refuses to write over another.
pub(super) fn backup(path: &Path, text: &str) -> io::Result<()> {
    create(path)?.write_all(text.as_bytes())
}

/// Whether the file holds this text; `None` means that it is not there.
pub(super) fn unchanged(path: &Path, text: Option<&str>) -> io::Result<bool> {
    match fs::read(path) {
        Ok(bytes) => Ok(text.is_some_and(|text| text.as_bytes() == bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(text.is_none()),
        Err(error) => Err(error),
    }
}

/// Puts the text in the file's place, with the permissions of the file; `None` removes it.
pub(super) fn replace(path: &Path, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else { return fs::remove_file(path) };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".banyan-{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = write(&temporary, path, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        fs::remove_file(&temporary).ok();
    }
    written
}

fn write(temporary: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = create(temporary)?;
    file.write_all(text.as_bytes())?;
    if let Ok(existing) = fs::metadata(path) {
        fs::set_permissions(temporary, existing.permissions())?;
    }
    file.sync_all()
}

fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
