//! `banyan.toml` as it is edited here: its comments and order stay. What it means is not known here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use config::secret::SystemSources;
use toml_edit::{DocumentMut, Item, Table};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::{places, private};

/// `banyan.toml`; an empty one where there is none.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) toml: DocumentMut,
    is_new: bool,
}

impl Document {
    /// That which is in use, or the one that would be.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        let path = match places::config_file(place.config.as_deref())? {
            Some(path) => path,
            None => places::config_dir()?.join(places::CONFIG_NAME),
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, "read", &error)),
        };
        let is_new = text.is_none();
        let toml = parsed(&text.unwrap_or_default(), &path)?;
        Ok(Self { path, toml, is_new })
    }

    /// The section `[name]`, empty where there is none.
    pub(crate) fn section(&mut self, name: &str) -> Result<&mut Table, Failure> {
        let path = self.path.display();
        let section = self.toml.entry(name).or_insert(Item::Table(Table::new()));
        section
            .as_table_mut()
            .ok_or_else(|| Failure::Failed(format!("`{name}` in {path} is not written as [{name}]\n  write it so, then try again")))
    }

    /// Whether a gate would take it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        gateway::parts::sections().parse(&self.toml.to_string(), &self.path, &SystemSources)?;
        Ok(())
    }

    /// Writes it where it was, or where it will be found.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let text = self.toml.to_string();
        if !self.is_new {
            return private::replace(&self.path, &text).map_err(|e| failed(&self.path, "written", &e));
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
        }
        private::write_new(&self.path, &text).map_err(|e| failed(&self.path, "written", &e))
    }
}

/// A `banyan.toml` that is to be edited. What is wrong with one is said as `banyan check` says it: its lines may hold secrets.
pub(crate) fn parsed(text: &str, path: &Path) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| match gateway::parts::sections().parse(text, path, &SystemSources) {
        Err(shown) => shown.into(),
        Ok(_) => Failure::Failed(format!("{} is no TOML: {}\n  mend it, then try again", path.display(), error.message())),
    })
}

/// What became of a file.
pub(crate) fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(told(path, what, error))
}

/// Why a file that was named can't be read.
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let text = told(path, "read", error);
    if error.kind() == ErrorKind::NotFound { Failure::NotFound(text) } else { Failure::Failed(text) }
}

fn told(path: &Path, what: &str, error: &std::io::Error) -> String {
    let advice = advice(error).map(|advice| format!("\n  {advice}")).unwrap_or_default();
    format!("{} can't be {what}: {error}{advice}", path.display())
}

/// What to do about a file that can't be read or written.
fn advice(error: &std::io::Error) -> Option<&'static str> {
    const ADVICE: [(ErrorKind, &str); 7] = [
        (ErrorKind::InvalidData, "it is no text: name another file"),
        (ErrorKind::IsADirectory, "it is a directory: name a file"),
        (ErrorKind::NotADirectory, "something on the way to it is no directory: see how its path is written"),
        (ErrorKind::NotFound, "see how its path is written, and from where"),
        (ErrorKind::PermissionDenied, "let your user have it, or run this as the user whose it is"),
        (ErrorKind::ReadOnlyFilesystem, "it lies where nothing can be written: name another place"),
        (ErrorKind::StorageFull, "the disk is full: make room, then try again"),
    ];
    ADVICE.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, advice)| *advice)
}
