//! Files present whole or not at all, also after a loss of power: the text is brought to the disk beside the file and then takes
//! the file's name, and the name is brought to the disk too. The only place that renames its own output. Does not know the content.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The permitted readers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The owner only, from the first byte on.
    Owner,
    /// The readers of the replaced file; the owner only for a new file.
    Same,
    /// The readers permitted by the system.
    Others,
}

/// Puts a file in its place, and returns once the file is on the disk. A reader meanwhile sees all of the old file or all of the new; two
/// writers take turns.
///
/// # Errors
/// When the file can't be written. The old file is then still there, unless only the new name could not be brought to the disk.
pub fn replace(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    put(path, content, readers, true)?;
    sync_dir(dir_of(path))
}

/// Replaces a file that can be made again: a loss of power may take the file, or leave half of it.
pub fn replace_for_now(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    put(path, content, readers, false)
}

/// Makes a new file for its owner, and returns once the file is on the disk.
///
/// # Errors
/// When the file can't be written, or exists. A half-written file is removed.
pub fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    fill(&file, content, true).inspect_err(|_| _ = fs::remove_file(path))?;
    sync_dir(dir_of(path))
}

/// Brings a file to the disk after [`replace_for_now`].
pub fn keep(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    sync_dir(dir_of(path))
}

/// Makes a directory and missing ones above, with names that last.
pub fn make_dirs(dir: &Path, mode: u32) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists()).collect();
    DirBuilder::new().recursive(true).mode(mode).create(dir)?;
    missing.into_iter().rev().try_for_each(|made| sync_dir(dir_of(made)))
}

/// Brings the names in a directory to the disk.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn put(path: &Path, content: &[u8], readers: Readers, is_kept: bool) -> io::Result<()> {
    let (new, file) = beside(path, if readers == Readers::Others { 0o666 } else { 0o600 })?;
    let readable = || match readers {
        Readers::Owner => file.set_permissions(Permissions::from_mode(0o600)),
        Readers::Same => like(path, &file),
        Readers::Others => Ok(()),
    };
    let done = readable().and_then(|()| fill(&file, content, is_kept)).and_then(|()| fs::rename(&new, path));
    done.inspect_err(|_| _ = fs::remove_file(&new))
}

fn fill(mut file: &File, content: &[u8], is_kept: bool) -> io::Result<()> {
    file.write_all(content)?;
    if is_kept { file.sync_all() } else { Ok(()) }
}

/// Gives the new file the permissions of the old file, or permissions for the owner only.
fn like(old: &Path, new: &File) -> io::Result<()> {
    match fs::metadata(old) {
        Ok(old) => new.set_permissions(old.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => new.set_permissions(Permissions::from_mode(0o600)),
        Err(error) => Err(error),
    }
}

/// Opens the empty file that will take the place of `path`. Other writers of the place wait meanwhile, in any process; the leftover
/// of a killed writer is written over, so that there is never more than one leftover.
fn beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let new = path.with_added_extension("banyan-new");
    loop {
        // Not through a link: the directory may be one that somebody else filled.
        let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).custom_flags(no_link).open(&new)?;
        file.lock()?;
        // Whoever held it has renamed it.
        if fs::symlink_metadata(&new).is_ok_and(|there| is_same(&there, &file)) {
            file.set_len(0)?;
            return Ok((new, file));
        }
    }
}

fn is_same(there: &Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|held| (held.dev(), held.ino()) == (there.dev(), there.ino()))
}

fn dir_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::thread;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn of_many_that_write_at_once_one_counts_and_nobody_sees_half_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let whole = |letter: u8| vec![letter; 1 << 16];
        replace(&path, &whole(b'a'), Readers::Owner).unwrap();
        thread::scope(|all| {
            for letter in b'a'..b'e' {
                let (path, text) = (&path, whole(letter));
                all.spawn(move || (0..20).for_each(|_| replace(path, &text, Readers::Owner).unwrap()));
            }
            for _ in 0..200 {
                let seen = fs::read(&path).unwrap();
                assert!(seen.len() == 1 << 16 && seen.iter().all(|byte| *byte == seen[0]));
            }
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "what was written beside it is gone");
    }

    #[test]
    fn only_those_may_read_a_file_who_may() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, b"1", Readers::Same).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"2", Readers::Same).unwrap();
        assert_eq!(mode(&path), 0o640);
        replace(&path, b"3", Readers::Owner).unwrap();
        assert_eq!(mode(&path), 0o600);
        let new = dir.path().join("new");
        create(&new, b"4").unwrap();
        assert_eq!(mode(&new), 0o600);
        assert_eq!(create(&new, b"5").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&new).unwrap(), b"4");
    }

    #[test]
    fn what_can_not_take_its_place_leaves_the_old_one_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        make_dirs(&taken.join("a/b"), 0o700).unwrap();
        assert_eq!(mode(&taken.join("a")), 0o700);
        assert!(replace(&taken, b"x", Readers::Others).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(replace(&dir.path().join("missing/file"), b"x", Readers::Owner).is_err());
    }

    #[test]
    fn what_a_killed_writer_left_is_written_over_and_readable_by_no_more_than_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let (path, left) = (dir.path().join("file.json"), dir.path().join("file.json.banyan-new"));
        for readers in [Readers::Owner, Readers::Same] {
            fs::write(&left, "longer than what comes").unwrap();
            fs::set_permissions(&left, Permissions::from_mode(0o666)).unwrap();
            replace(&path, b"{}", readers).unwrap();
            assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (b"{}".as_slice(), 0o600));
            assert!(!left.exists());
        }
    }

    #[test]
    fn a_link_that_somebody_laid_beside_it_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, prey) = (dir.path().join("file"), dir.path().join("prey"));
        fs::write(&prey, "mine").unwrap();
        symlink(&prey, dir.path().join("file.banyan-new")).unwrap();
        assert!(replace(&path, b"x", Readers::Owner).is_err());
        assert_eq!(fs::read(&prey).unwrap(), b"mine");
    }
}
