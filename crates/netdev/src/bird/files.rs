//! Files of BIRD: the one that BIRD starts with, and beside that one a file for each configuration that was loaded under a name. Asks no BIRD.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use net_proto::bird;
use net_proto::fault::{Code, Fault};
use runtime::whole::{self, Readers};

/// Longest configuration file, in bytes.
const LONGEST: u64 = 16 << 20;

/// The configuration file, and the place beside the file.
#[derive(Clone, Debug)]
pub(super) struct BirdFiles {
    file: PathBuf,
}

impl BirdFiles {
    pub(super) const fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The configuration that BIRD starts with.
    pub(super) fn start(&self) -> Result<String, Fault> {
        read(&self.file)
    }

    /// Moment of the last write to the file that BIRD starts with.
    pub(super) fn written_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.file).and_then(|facts| facts.modified()).ok()
    }

    /// The configuration that was loaded under this name.
    ///
    /// # Errors
    /// -32084: the file is gone or another.
    pub(super) fn loaded(&self, name: &str) -> Result<String, Fault> {
        let file = self.named(name);
        let text = if bird::is_plain(name) { read(&file).ok() } else { None };
        let whole = text.as_deref().and_then(|text| bird::without_change(text, name)).map(str::to_owned);
        whole.ok_or_else(|| {
            let (lost, start) = (file.display(), self.file.display());
            let detail =
                format!("BIRD runs what was loaded from {lost}, which is gone or another: `birdc configure` loads {start} instead");
            Fault::new(Code::ConfigIncompatible, detail).at("running")
        })
    }

    /// Writes the file of a configuration to be loaded under this name.
    pub(super) fn write_loaded(&self, name: &str, text: &str) -> Result<PathBuf, Fault> {
        let file = self.named(name);
        self.write(&file, &bird::with_change(text, name))?;
        Ok(file)
    }

    pub(super) fn save(&self, text: &str) -> Result<(), Fault> {
        self.write(&self.file, text)
    }

    /// A file beside the configuration file, where relative includes are found.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.file.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        name.into()
    }

    /// Removes the files of earlier changes, but not of the configuration that runs, which BIRD itself may return to.
    pub(super) fn clear(&self, running: Option<&str>, token: &str) {
        let kept = [Some(token), running].map(|name| name.map(|name| self.named(name)));
        let begin = self.named("");
        let all = self.file.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
        for file in all.map(|entry| entry.path()) {
            let is_ours = file.to_str().zip(begin.to_str()).and_then(|(file, begin)| file.strip_prefix(begin)).is_some_and(bird::is_plain);
            if is_ours && !kept.iter().flatten().any(|one| *one == file) {
                // A file that is left is removed by the next change.
                drop(std::fs::remove_file(file));
            }
        }
    }

    /// Writes a file for the readers of the configuration file.
    pub(super) fn write(&self, file: &Path, text: &str) -> Result<(), Fault> {
        let written = (|| {
            let like = std::fs::metadata(&self.file)?;
            if file != self.file {
                whole::replace_for_now(file, b"", Readers::Owner)?;
                std::fs::set_permissions(file, like.permissions())?;
            }
            whole::replace(file, text.as_bytes(), Readers::Same)?;
            std::os::unix::fs::chown(file, Some(like.uid()), Some(like.gid()))
        })();
        written.map_err(|error| Fault::new(Code::AccessDenied, format!("{} can't be written: {error}", file.display())))
    }

    fn named(&self, name: &str) -> PathBuf {
        self.beside(&format!("banyan-{name}"))
    }
}

fn read(file: &Path) -> Result<String, Fault> {
    let unread = |why: String| Fault::new(Code::Unreachable, format!("{} can't be read: {why}", file.display()));
    if std::fs::metadata(file).is_ok_and(|facts| facts.len() > LONGEST) {
        return Err(unread(format!("it is longer than {LONGEST} bytes")));
    }
    std::fs::read_to_string(file).map_err(|error| unread(error.to_string()))
}
