//! `banyan.toml` as edited here: comments and order stay. The meaning of a section is not known here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use config::resolved::Config;
use config::secret::SystemSources;
use toml_edit::{DocumentMut, Item, Table};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::{places, private};

/// `banyan.toml`; empty if missing.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) toml: DocumentMut,
    /// Comments of a file that holds nothing else: sections come after them.
    comments: String,
    is_new: bool,
}

impl Document {
    /// Opens the configuration in use, or the place of a new one.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        match places::config_file(place.config.as_deref())? {
            Some(path) => Self::at(path),
            None => Self::at(places::config_dir()?.join(places::CONFIG_NAME)),
        }
    }

    /// Opens the configuration in a file, or the place of a new one.
    pub(crate) fn at(path: PathBuf) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, "read", &error)),
        };
        let is_new = text.is_none();
        let mut toml = parsed(&text.unwrap_or_default(), &path)?;
        let comments = if toml.is_empty() { toml.trailing().as_str().unwrap_or_default().to_owned() } else { String::new() };
        if !comments.is_empty() {
            toml.set_trailing("");
        }
        Ok(Self { path, toml, comments, is_new })
    }

    /// Checks if the file was there before.
    pub(crate) const fn is_there(&self) -> bool {
        !self.is_new
    }

    /// Gives the section `[name]`, empty if missing.
    pub(crate) fn section(&mut self, name: &str) -> Result<&mut Table, Failure> {
        let path = self.path.display();
        let section = self.toml.entry(name).or_insert(Item::Table(Table::new()));
        section
            .as_table_mut()
            .ok_or_else(|| Failure::Failed(format!("`{name}` in {path} is not written as [{name}]\n  write it so, then try again")))
    }

    /// Checks that a gate would take the document.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.parsed().map(drop)
    }

    /// The document as a gate would take it.
    pub(crate) fn parsed(&self) -> Result<Config, Failure> {
        Ok(gateway::parts::sections().parse(&self.text(), &self.path, &SystemSources)?)
    }

    fn text(&self) -> String {
        let gap = if self.comments.is_empty() || self.comments.ends_with("\n\n") { "" } else { "\n" };
        format!("{}{gap}{}", self.comments, self.toml)
    }

    /// Writes the document to its place, old or new.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let text = self.text();
        if !self.is_new {
            return private::replace(&self.path, &text).map_err(|e| failed(&self.path, "written", &e));
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
        }
        private::write_new(&self.path, &text).map_err(|e| failed(&self.path, "written", &e))
    }
}

/// Parses a `banyan.toml` for editing. Faults are worded as by `banyan check`: lines of the file may hold secrets.
pub(crate) fn parsed(text: &str, path: &Path) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| match gateway::parts::sections().parse(text, path, &SystemSources) {
        Err(shown) => shown.into(),
        Ok(_) => Failure::Failed(format!("{} is no TOML: {}\n  mend it, then try again", path.display(), error.message())),
    })
}

/// Words a failure with a file.
pub(crate) fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(worded(path, what, error))
}

/// Words the failure to read a named file.
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let text = worded(path, "read", error);
    if error.kind() == ErrorKind::NotFound { Failure::NotFound(text) } else { Failure::Failed(text) }
}

fn worded(path: &Path, what: &str, error: &std::io::Error) -> String {
    let advice = advice(error).map(|advice| format!("\n  {advice}")).unwrap_or_default();
    format!("{} can't be {what}: {error}{advice}", path.display())
}

/// Advises on a file that can't be read or written.
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
